internal import StateJSON

/// Which watches look at which selection, and the encodings that are known to be current.
///
/// A commit finds the selections that overlap what it has changed; the others cost it nothing.
struct SelectionIndex: Sendable {
    private struct Entry {
        /// The value now, where it has been encoded since it last changed.
        var encoded: Encoded?
        var watches: Set<Watch.ID> = []
        /// The version of the newest commit that may have changed the value.
        var changedVersion: Version
        /// The version of the newest value that the watches have been compared with.
        var comparedVersion: Version = 0
        /// How many values are being encoded or compared.
        var comparisonsCount = 0
    }

    private var entries: [Selection: Entry] = [:]
    private var tree = PointerTree<Selection>()
    private let viewReads: [String: [JSONPointer]]
    /// The watched selections that may have changed since they were last encoded.
    private(set) var dirty: Set<Selection> = []
    /// The newest version that the index has been told of.
    private var latestVersion: Version
    private var idleBytes = 0
    private var idleCount = 0
    /// Encodings that no watch looks at are kept up to here, then dropped together.
    private let idleBytesMax = 32 << 20
    private let idleCountMax = 4096

    init(viewReads: [String: [JSONPointer]], version: Version = 0) {
        self.viewReads = viewReads
        latestVersion = version
    }

    private func pointers(of selection: Selection) -> [JSONPointer] {
        switch selection {
        case .pointer(let pointer): [pointer]
        case .view(let name): viewReads[name] ?? [.root]
        }
    }

    /// The current value, where it is known.
    func encoded(_ selection: Selection) -> Encoded? { entries[selection]?.encoded }

    /// Notes the current value.
    mutating func note(_ encoded: Encoded, for selection: Selection) {
        if idleCount >= idleCountMax || idleBytes + encoded.bytes.count > idleBytesMax { dropIdle() }
        withEntry(selection) { $0.encoded = encoded }
        idleCount += 1
        idleBytes += encoded.bytes.count
    }

    private mutating func dropIdle() {
        for (selection, entry) in entries where entry.watches.isEmpty { removeEntry(selection) }
        (idleCount, idleBytes) = (0, 0)
    }

    /// Whether any of these commits may have changed a selection.
    func isChanged(_ selection: Selection, by commits: some Sequence<Commit>) -> Bool {
        let pointers = pointers(of: selection)
        return commits.contains { commit in
            commit.changedPointers.contains { changedPointers in pointers.contains { changedPointers.overlaps($0) } }
        }
    }

    /// The watches of a selection.
    func watches(at selection: Selection) -> Set<Watch.ID> { entries[selection]?.watches ?? [] }

    mutating func insert(_ id: Watch.ID, at selection: Selection) {
        withEntry(selection) { $0.watches.insert(id) }
    }

    mutating func remove(_ id: Watch.ID, at selection: Selection) {
        guard let index = entries.index(forKey: selection) else { return }
        entries.values[index].watches.remove(id)
        guard entries.values[index].watches.isEmpty else { return }
        dirty.remove(selection)
        if entries.values[index].encoded == nil { removeEntry(selection) }
    }

    private mutating func withEntry(_ selection: Selection, _ change: (inout Entry) -> Void) {
        if entries[selection] == nil {
            // A value that was encoded before there was an entry may have changed since.
            entries[selection] = Entry(changedVersion: latestVersion)
            for pointer in pointers(of: selection) { tree.insert(selection, at: pointer) }
        }
        change(&entries[selection, default: Entry(changedVersion: latestVersion)])
    }

    private mutating func removeEntry(_ selection: Selection) {
        entries[selection] = nil
        for pointer in pointers(of: selection) { tree.remove(selection, at: pointer) }
    }

    // MARK: Changes

    /// Forgets the values that a change of these pointers may have changed.
    ///
    /// - Parameters:
    ///   - version: that the change has made.
    ///   - mustCompare: asked for each watched selection, with its watches, whether they have to be compared.
    mutating func invalidate(
        changing pointers: some Sequence<JSONPointer>, at version: Version,
        _ mustCompare: (Set<Watch.ID>) -> Bool = { _ in true }
    ) {
        latestVersion = version
        guard !entries.isEmpty else { return }
        var found: Set<Selection> = []
        for pointer in pointers { tree.collect(overlapping: pointer, into: &found) }
        for selection in found {
            guard let index = entries.index(forKey: selection) else { continue }
            if entries.values[index].watches.isEmpty {
                removeEntry(selection)
            } else {
                entries.values[index].encoded = nil
                entries.values[index].changedVersion = version
                if mustCompare(entries.values[index].watches) { dirty.insert(selection) }
            }
        }
    }

    /// Has a watched selection compared again.
    mutating func markDirty(_ selection: Selection) { dirty.insert(selection) }

    /// Takes the dirty selections, to encode them.
    mutating func beginEncoding() -> Set<Selection> {
        let taken = dirty
        dirty = []
        for selection in taken { entries[selection]?.comparisonsCount += 1 }
        return taken
    }

    /// Notes the value of a selection, encoded from the state at a version; ``endComparing(_:)`` follows.
    ///
    /// - Returns: the watches to compare with it; none where they have been compared with a newer one.
    mutating func endEncoding(_ selection: Selection, _ encoded: Encoded?, at version: Version) -> [Watch.ID] {
        guard let index = entries.index(forKey: selection), entries.values[index].comparedVersion <= version else {
            return []
        }
        entries.values[index].comparedVersion = version
        // A value that may have changed while it was encoded is not current.
        if entries.values[index].changedVersion <= version { entries.values[index].encoded = encoded }
        return Array(entries.values[index].watches)
    }

    /// Notes that all watches have been compared with a value.
    mutating func endComparing(_ selection: Selection) {
        guard let index = entries.index(forKey: selection), entries.values[index].comparisonsCount > 0 else { return }
        entries.values[index].comparisonsCount -= 1
    }

    /// Whether the newest value of a selection has not been compared with its watches yet.
    func isPending(_ selection: Selection) -> Bool {
        dirty.contains(selection) || entries[selection].map { $0.comparisonsCount > 0 } ?? false
    }
}
