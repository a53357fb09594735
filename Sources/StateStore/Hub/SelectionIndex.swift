internal import DequeModule
internal import StateJSON
internal import Synchronization

/// A selection that compares and hashes by its identity, because a client chooses how long its pointer is.
final class IndexedSelection: Sendable {
    let selection: Selection
    let pointers: [JSONPointer]
    let kept: KeptQuery?
    let place: IndexedSelection?
    /// Whether it stands for all queries on a place, which a commit then marks at once.
    let isPlaceOfQueries: Bool
    /// The processor time of its evaluations, in nanoseconds; negative before the first.
    private let nanoseconds = Atomic<Int64>(-1)

    init(
        _ selection: Selection, pointers: [JSONPointer], kept: KeptQuery? = nil, at place: IndexedSelection? = nil,
        isPlaceOfQueries: Bool = false
    ) {
        self.selection = selection
        self.pointers = pointers
        (self.kept, self.place, self.isPlaceOfQueries) = (kept, place, isPlaceOfQueries)
    }

    /// It falls slowly, because an evaluation that another thread has just made takes none; nil before the first.
    var time: Duration? {
        let known = nanoseconds.load(ordering: .relaxed)
        return known < 0 ? nil : .nanoseconds(known)
    }

    func note(_ time: Duration) {
        let known = nanoseconds.load(ordering: .relaxed)
        nanoseconds.store(max(Int64(time / .nanoseconds(1)), known - known / 8, 0), ordering: .relaxed)
    }

    func isChanged(by commits: some Sequence<Commit>) -> Bool {
        commits.contains { commit in
            commit.changedPointers.contains { changed in pointers.contains { changed.overlaps($0) } }
        }
    }
}

extension IndexedSelection: Hashable {
    static func == (left: IndexedSelection, right: IndexedSelection) -> Bool { left === right }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension Selection {
    var isComputed: Bool { isQuery || isViewWithArguments }

    var isViewWithArguments: Bool { if case .view(_, let arguments) = self { !arguments.isEmpty } else { false } }
}

/// The watches and the cached encodings of selections; a commit costs those that overlap its changed pointers.
struct SelectionIndex: Sendable {
    private struct Entry {
        /// The value, unless it is large and others have taken its room.
        var encoded: Encoded?
        var tag: String?
        var watches: Set<Watch.ID> = []
        var oneValue: Set<Watch.ID> = []
        var changedVersion: Version
        var comparedVersion: Version = 0
        var comparisonsCount = 0
        /// The number of the place in ``SelectionIndex/idle`` that counts: the newest one.
        var idleNumber: UInt64 = 0
        var queriesCount = 0
        var watchedQueries: Set<IndexedSelection> = []

        var isIdle: Bool { watches.isEmpty && comparisonsCount == 0 && queriesCount == 0 }

        mutating func setValue(_ encoded: Encoded?) { (self.encoded, tag) = (encoded, encoded?.tag) }
    }

    private var known: [Selection: IndexedSelection] = [:]
    private var placesByPointer: [JSONPointer: IndexedSelection] = [:]
    private let queryBudget: QueryBudget
    private var entries: [IndexedSelection: Entry] = [:]
    private var tree = PointerTree<IndexedSelection>()
    private let viewReads: [String: [JSONPointer]]
    var dirty: Set<IndexedSelection> = []
    var latestVersion: Version
    var hasEntries: Bool { !entries.isEmpty }
    /// The unwatched selections with values, and those with large ones, the longest unused first; some count no longer.
    private var idle: Deque<(selection: IndexedSelection, number: UInt64, bytes: Int)> = []
    private var idleBytes = 0
    private var idleNumber: UInt64 = 0
    /// The limits of these values; at a limit the index drops the oldest, never the newest.
    private let idleBytesMax: Int
    private let idleCountMax: Int

    init(
        viewReads: [String: [JSONPointer]], version: Version = 0, idleBytesMax: Int = 32 << 20,
        idleCountMax: Int = 4096, queryBudget: QueryBudget = QueryBudget(bytesMax: .max)
    ) {
        self.viewReads = viewReads
        self.queryBudget = queryBudget
        (self.idleBytesMax, self.idleCountMax) = (idleBytesMax, idleCountMax)
        latestVersion = version
    }

    subscript(selection: Selection) -> IndexedSelection? { known[selection] }

    func encoded(_ selection: Selection) -> Encoded? {
        guard let selection = known[selection] else { return nil }
        guard let kept = selection.kept, let place = selection.place else { return entries[selection]?.encoded }
        return entries[place].flatMap { kept.encoded(changed: $0.changedVersion) }
    }

    func tag(_ selection: Selection) -> String? {
        guard let selection = known[selection] else { return nil }
        guard let kept = selection.kept, let place = selection.place else { return entries[selection]?.tag }
        return entries[place].flatMap { kept.tag(changed: $0.changedVersion) }
    }

    /// A query on a place gets an entry, so ``idles(_:)`` follows; nil for any other selection.
    mutating func query(_ selection: Selection) -> IndexedSelection? {
        guard case .query(_, of: .pointer) = selection else { return nil }
        return add(selection)
    }

    func watchedQueries(at place: IndexedSelection) -> Set<IndexedSelection> { entries[place]?.watchedQueries ?? [] }

    mutating func note(_ encoded: Encoded, for selection: Selection) {
        let added = add(selection)
        entries[added]?.setValue(encoded)
        idles(added)
    }

    /// Keeps the value for the next one who asks, if nothing uses it or it is large, or removes an entry without one; a
    /// comparison under way keeps the entry, so that its count is right.
    mutating func idles(_ selection: IndexedSelection) {
        guard let index = entries.index(forKey: selection) else { return }
        let entry = entries.values[index]
        let answerBytes = selection.kept.map(\.answerBytesCount) ?? entry.encoded?.body.count ?? 0
        guard entry.isIdle || answerBytes > Encoded.smallBytesMax else { return }
        guard selection.kept?.isKnown ?? (entry.tag != nil) else { return removeEntry(selection) }
        let bytes =
            answerBytes
            + (entry.isIdle ? (selection.kept?.membersBytesCount ?? 0) + selection.selection.queryBytesCount : 0)
        // A value that is kept for whoever asks next is in nobody's share.
        if entry.isIdle {
            entry.encoded?.uncount()
            selection.kept?.uncount()
        }
        forgetBytes(of: entry)
        idleNumber += 1
        entries.values[index].idleNumber = idleNumber
        idle.append((selection, idleNumber, bytes))
        idleBytes += bytes
        while idle.count > 1, idle.count > idleCountMax || idleBytes > idleBytesMax, let oldest = idle.popFirst() {
            idleBytes -= oldest.bytes
            guard let entry = entries[oldest.selection], entry.idleNumber == oldest.number else { continue }
            if entry.isIdle {
                removeEntry(oldest.selection)
            } else if oldest.bytes > Encoded.smallBytesMax {
                drop(oldest.selection)
            }
        }
    }

    mutating func drop(_ selection: IndexedSelection) {
        entries[selection]?.encoded = nil
        selection.kept?.dropAnswer()
    }

    private mutating func forgetBytes(of entry: Entry) {
        guard let first = idle.first?.number, entry.idleNumber >= first else { return }
        idleBytes -= idle[Int(entry.idleNumber - first)].bytes
        idle[Int(entry.idleNumber - first)].bytes = 0
    }

    func isWatched(_ selection: Selection) -> Bool { known[selection].map { !watches(at: $0).isEmpty } ?? false }

    func watches(at selection: IndexedSelection) -> Set<Watch.ID> { entries[selection]?.watches ?? [] }

    func watchesForOneValue(at selection: IndexedSelection) -> Set<Watch.ID> { entries[selection]?.oneValue ?? [] }

    mutating func insert(_ id: Watch.ID, at selection: Selection, waitsForOneValue: Bool = false) {
        let added = add(selection)
        entries[added]?.watches.insert(id)
        if let place = added.place { entries[place]?.watchedQueries.insert(added) }
        if waitsForOneValue { entries[added]?.oneValue.insert(id) }
    }

    mutating func remove(_ id: Watch.ID, at selection: Selection) {
        guard let selection = known[selection], let index = entries.index(forKey: selection) else { return }
        entries.values[index].watches.remove(id)
        entries.values[index].oneValue.remove(id)
        guard entries.values[index].watches.isEmpty else { return }
        dirty.remove(selection)
        if let place = selection.place {
            entries[place]?.watchedQueries.remove(selection)
            if watchedQueries(at: place).isEmpty { dirty.remove(place) }
        }
        idles(selection)
    }

    private mutating func place(at pointer: JSONPointer) -> IndexedSelection {
        if let known = placesByPointer[pointer] { return known }
        let place = IndexedSelection(.pointer(pointer), pointers: [pointer], isPlaceOfQueries: true)
        placesByPointer[pointer] = place
        entries[place] = Entry(changedVersion: latestVersion)
        tree.insert(place, at: pointer)
        return place
    }

    private mutating func add(_ selection: Selection) -> IndexedSelection {
        if let added = known[selection] { return added }
        let pointers: [JSONPointer] =
            switch selection.base {
            case .pointer(let pointer): [pointer]
            case .view(let name, _): viewReads[name] ?? [.root]
            case .hidden, .query: []
            }
        let added: IndexedSelection
        if case .query(let query, of: .pointer(let pointer)) = selection {
            let place = place(at: pointer)
            entries[place]?.queriesCount += 1
            added = IndexedSelection(
                selection, pointers: pointers, kept: KeptQuery(query.query, at: pointer, queryBudget), at: place)
        } else {
            added = IndexedSelection(selection, pointers: pointers)
            for pointer in pointers { tree.insert(added, at: pointer) }
        }
        known[selection] = added
        // A value that was encoded before the entry existed may have changed since.
        entries[added] = Entry(changedVersion: latestVersion)
        return added
    }

    private mutating func removeEntry(_ selection: IndexedSelection) {
        known[selection.selection] = nil
        if let entry = entries.removeValue(forKey: selection) { forgetBytes(of: entry) }
        guard let place = selection.place else {
            for pointer in selection.pointers { tree.remove(selection, at: pointer) }
            return
        }
        entries[place]?.queriesCount -= 1
        guard entries[place]?.queriesCount == 0 else { return }
        entries[place] = nil
        for pointer in place.pointers {
            placesByPointer[pointer] = nil
            tree.remove(place, at: pointer)
        }
    }

    // MARK: Changes

    mutating func invalidate(
        changing pointers: some Sequence<JSONPointer>, at version: Version,
        _ mustCompare: (Set<Watch.ID>) -> Bool = { _ in true }
    ) {
        latestVersion = version
        guard !entries.isEmpty else { return }
        var found: Set<IndexedSelection> = []
        for pointer in pointers { tree.collect(overlapping: pointer, into: &found) }
        for selection in found {
            guard let index = entries.index(forKey: selection) else { continue }
            if entries.values[index].isIdle {
                removeEntry(selection)
            } else {
                forgetBytes(of: entries.values[index])
                entries.values[index].setValue(nil)
                entries.values[index].changedVersion = version
                let watches = entries.values[index].watches
                if !watches.isEmpty && mustCompare(watches) || !entries.values[index].watchedQueries.isEmpty {
                    dirty.insert(selection)
                }
            }
        }
    }

    mutating func forgetViews() -> [Watch.ID] {
        var watches: [Watch.ID] = []
        for selection in Array(entries.keys) where selection.selection.base.isView {
            guard let entry = entries[selection] else { continue }
            watches += entry.watches
            if entry.isIdle {
                removeEntry(selection)
            } else {
                // An encoding under way is of a value before: it is not cached.
                entries[selection]?.setValue(nil)
                entries[selection]?.changedVersion = latestVersion + 1
            }
        }
        return watches
    }

    /// Returns the dirty selections, each of which then has a comparison under way.
    mutating func beginEncoding() -> Set<IndexedSelection> {
        let taken = dirty
        dirty = []
        for selection in taken { beginComparing(selection) }
        return taken
    }

    mutating func beginComparing(_ selection: IndexedSelection) {
        entries[selection]?.comparisonsCount += 1
    }

    /// Returns the watches to compare, none where they were compared with a newer value; ``endComparing(_:)`` follows.
    mutating func endEncoding(
        _ selection: IndexedSelection, _ encoded: Encoded?, at version: Version, keeps: Bool = true
    ) -> [Watch.ID] {
        guard let index = entries.index(forKey: selection), entries.values[index].comparedVersion <= version else {
            return []
        }
        entries.values[index].comparedVersion = version
        // A commit during the encoding may have changed the value: then it is not current, so it is not cached.
        // A query keeps its answer itself.
        if entries.values[index].changedVersion <= version, selection.kept == nil {
            entries.values[index].setValue(encoded)
        }
        let watches = Array(entries.values[index].watches)
        if keeps { idles(selection) } else { drop(selection) }
        return watches
    }

    func isPending(_ selection: Selection) -> Bool {
        guard let selection = known[selection] else { return false }
        return isPending(selection) || selection.place.map(isPending) ?? false
    }

    private func isPending(_ selection: IndexedSelection) -> Bool {
        dirty.contains(selection) || entries[selection].map { $0.comparisonsCount > 0 } ?? false
    }

    mutating func endComparing(_ selection: IndexedSelection) {
        guard let index = entries.index(forKey: selection), entries.values[index].comparisonsCount > 0 else { return }
        entries.values[index].comparisonsCount -= 1
        idles(selection)
    }
}

/// The watches that wait for a version; each costs O(log n), whichever version its client names.
struct VersionIndex: Sendable {
    private struct Wait: Comparable {
        let version: Version
        let id: Watch.ID

        static func < (left: Wait, right: Wait) -> Bool { (left.version, left.id) < (right.version, right.id) }
    }

    private var waits = PersistentMap<Wait, Watch.ID>()

    mutating func insert(_ id: Watch.ID, at version: Version) { waits.set(Wait(version: version, id: id), id) }

    mutating func remove(_ id: Watch.ID, at version: Version) { waits.remove(Wait(version: version, id: id)) }

    func isReached(_ version: Version) -> Bool { waits.first.map { $0.key.version <= version } ?? false }

    mutating func takeReached(_ version: Version) -> [Watch.ID] {
        var found: [Watch.ID] = []
        while let next = waits.first, next.key.version <= version {
            waits.remove(next.key)
            found.append(next.value)
        }
        return found.sorted()
    }
}
