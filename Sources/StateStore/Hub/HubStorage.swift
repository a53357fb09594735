internal import StateJSON

/// What the store has published, what came before it, and every watch.
///
/// Pure: ``WatchHub`` guards it.
struct HubStorage: Sendable {
    /// The one published present.
    private(set) var latest: any AnySnapshot
    private(set) var history: History
    /// The oldest version that can be followed from, memory and journal together.
    private(set) var oldest: Version
    private var index: SelectionIndex
    private var followers: [FollowerKey: Set<Watch.ID>] = [:]
    private var versions = VersionIndex()
    private var watches: [Watch.ID: Watch] = [:]
    private var countByClient: [String: Int] = [:]
    /// Commits that followers have not been compared with.
    private var pending: [Commit] = []
    /// The version up to which watches have been compared with what is published.
    private var comparedVersion: Version
    private var isFanOutDue = false
    private var passesCount = 0
    /// The snapshots since the last pass, where a watch waits for a value: it may stand for one turn only.
    private var passed: [any AnySnapshot] = []
    private var untilCount = 0
    private static let passedMax = 256
    /// Up to so many filters, or watches of a selection, are looked at inside the turn: that costs less than waking the
    /// fan-out queue, and mostly shows that it has nothing to do.
    private static let comparedAtOnceMax = 16
    private let limits: WatchLimits
    /// Whether commits older than those in memory can be read from a journal.
    private let hasJournal: Bool

    /// What followers have in common that wait together, whatever their position.
    struct FollowerKey: Hashable {
        let filter: ChangesFilter
        let limit: Int
        let weightMax: Int
    }

    /// What streams have in common that are sent the same commits.
    struct Follower: Hashable {
        let key: FollowerKey
        let position: Version
        let isSlow: Bool

        var query: ChangesQuery {
            ChangesQuery(since: position, limit: key.limit, weightMax: key.weightMax, filter: key.filter)
        }
    }

    init(
        latest: any AnySnapshot, catalogue: Catalogue, history: History, limits: WatchLimits, journalOldest: Version?
    ) {
        self.latest = latest
        self.history = history
        self.limits = limits
        index = SelectionIndex(viewReads: catalogue.viewReads, version: latest.cursor.version)
        oldest = journalOldest ?? latest.cursor.version
        comparedVersion = latest.cursor.version
        hasJournal = journalOldest != nil
    }

    var watchesCount: Int { watches.count }
    var streamsCount: Int { watches.values.count(where: \.isStream) }
    var watchIDs: [Watch.ID] { watches.keys.sorted() }

    // MARK: The present

    /// Makes a turn's result the present.
    ///
    /// - Returns: whether watches have to be compared with it, and nobody has been asked to do so yet.
    mutating func publish(_ snapshot: any AnySnapshot, _ commits: [Commit]) -> Bool {
        latest = snapshot
        for commit in commits { history.append(commit) }
        history.note(snapshot)
        if !hasJournal { oldest = history.base }
        // The commits of a turn often change the same: the pointers of neighbours are looked up once.
        var last: [JSONPointer] = []
        let version = snapshot.cursor.version
        for commit in commits where commit.changedPointers != last {
            index.invalidate(changing: commit.changedPointers, at: version) {
                !Self.areAllSending($0, version, &watches)
            }
            last = commit.changedPointers
        }
        if isNews(commits) { pending += commits }
        if untilCount > 0, !index.dirty.isEmpty, passed.count < Self.passedMax { passed.append(snapshot) }
        guard !pending.isEmpty || versions.isReached(version) || !index.dirty.isEmpty else {
            if !isFanOutDue, passesCount == 0 { comparedVersion = version }
            return false
        }
        return claimFanOut()
    }

    /// Whether a follower may have to be told of these commits.
    private func isNews(_ commits: [Commit]) -> Bool {
        guard !followers.isEmpty else { return false }
        // Commits that wait to be compared must stay without a gap.
        guard pending.isEmpty, passesCount == 0, followers.count <= Self.comparedAtOnceMax else { return true }
        return followers.keys.contains { key in commits.contains(where: key.filter.passes) }
    }

    /// Notes that a few streams are behind, where all of them are just being sent something: they look for themselves.
    ///
    /// - Returns: false where there are many watches, or one of them waits.
    private static func areAllSending(
        _ ids: Set<Watch.ID>, _ version: Version, _ watches: inout [Watch.ID: Watch]
    ) -> Bool {
        guard ids.count <= comparedAtOnceMax else { return false }
        let slots = ids.compactMap { watches.index(forKey: $0) }
        guard slots.allSatisfy({ watches.values[$0].state == .sending }) else { return false }
        for slot in slots { watches.values[slot].isBehind = true }
        return true
    }

    mutating func journalBegins(at version: Version) { oldest = max(oldest, version) }

    /// The current encoding of a selection, where it is known.
    func encoded(_ selection: Selection) -> Encoded? { index.encoded(selection) }

    /// Notes an encoding of the present.
    mutating func note(_ encoded: Encoded, for selection: Selection) { index.note(encoded, for: selection) }

    /// The commits after a position.
    func following(_ query: ChangesQuery) -> Following {
        let latest = latest.cursor
        guard query.since <= latest.version else { return .aboveLatest(latest) }
        guard query.since >= oldest else { return .expired(oldest: oldest, latest: latest) }
        guard let commits = history.commits(after: query.since) else { return .inJournal(latest: latest) }
        let page = ChangesPage(query, from: commits, latest: latest)
        return page.commits.isEmpty && !page.isMore ? .nothing(latest: latest) : .page(page)
    }

    // MARK: Registration

    /// Counts a watch in, or says why there is no room for it.
    mutating func register(_ watch: Watch) -> WatchRefusal? {
        guard watches.count < limits.watchesMax else { return .all }
        guard countByClient[watch.client, default: 0] < limits.watchesPerClientMax else { return .client }
        watches[watch.id] = watch
        if watch.waitsForOneValue { untilCount += 1 }
        countByClient[watch.client, default: 0] += 1
        return nil
    }

    /// Registers, files and parks a watch that has looked at everything up to its position.
    mutating func admit(_ watch: Watch) -> Watching {
        if let refusal = register(watch) { return .refused(refusal) }
        file(watch.id)
        _ = park(watch.id, lookedAt: watch.position)
        return .parked
    }

    /// Files a watch under what it looks at.
    mutating func file(_ id: Watch.ID) {
        guard let subject = watches[id]?.subject else { return }
        switch subject {
        case .value(let selection, _): index.insert(id, at: selection)
        case .version(let awaited): versions.insert(id, at: awaited)
        case .changes(let filter, let limit, let weightMax):
            followers[FollowerKey(filter: filter, limit: limit, weightMax: weightMax), default: []].insert(id)
        case .cascade: break
        }
    }

    /// Parks a filed watch.
    ///
    /// - Parameter version: of what the watch has looked at; nil where the look is still to come.
    /// - Returns: whether watches have to be compared, and nobody has been asked to do so yet.
    mutating func park(_ id: Watch.ID, lookedAt version: Version?) -> Bool {
        guard let slot = watches.index(forKey: id) else { return false }
        // A watch that has not looked yet is not answered with what was before it came.
        let before = latest.cursor.version > 0 ? latest.cursor.version - 1 : nil
        watches.values[slot].parks(lookedAt: version ?? before)
        guard case .value(let selection, _) = watches.values[slot].subject else { return false }
        // What has been published since the look may concern it.
        if let version, let since = history.commits(after: version), !index.isChanged(selection, by: since) {
            return false
        }
        index.markDirty(selection)
        return claimFanOut()
    }

    private mutating func claimFanOut() -> Bool {
        defer { isFanOutDue = true }
        return !isFanOutDue
    }

    /// Takes a watch out for good.
    mutating func remove(_ id: Watch.ID) {
        guard let watch = watches.removeValue(forKey: id) else { return }
        if watch.waitsForOneValue { untilCount -= 1 }
        if let count = countByClient[watch.client], count > 1 {
            countByClient[watch.client] = count - 1
        } else {
            countByClient[watch.client] = nil
        }
        switch watch.subject {
        case .value(let selection, _): index.remove(id, at: selection)
        case .version(let version): versions.remove(id, at: version)
        case .changes(let filter, let limit, let weightMax):
            let key = FollowerKey(filter: filter, limit: limit, weightMax: weightMax)
            followers[key]?.remove(id)
            if followers[key]?.isEmpty == true { followers[key] = nil }
        case .cascade: break
        }
    }

    // MARK: Events

    /// What an event asks for.
    struct Change {
        let action: Watch.Action
        let receiver: any WatchReceiver
        let request: any AnyObject & Sendable
    }

    /// Lets an event happen to a watch; a watch that is done is taken out.
    ///
    /// - Returns: what has to be done, or nil where there is no watch with this ID.
    mutating func change(_ id: Watch.ID, _ event: (inout Watch) -> Watch.Action) -> Change? {
        guard let slot = watches.index(forKey: id) else { return nil }
        let action = event(&watches.values[slot])
        let change = Change(
            action: action, receiver: watches.values[slot].receiver, request: watches.values[slot].request)
        if watches.values[slot].state == .done { remove(id) }
        return change
    }

    func watch(_ id: Watch.ID) -> Watch? { watches[id] }

    func position(of id: Watch.ID) -> Version? { watches.index(forKey: id).flatMap { watches.values[$0].position } }

    /// Notes that the watches of a selection are behind, if all of them are just being sent something.
    ///
    /// - Returns: false where a watch waits for the value.
    mutating func noteBehind(_ selection: Selection, _ version: Version, at now: Instant) -> Bool {
        let ids = index.watches(at: selection)
        let isAnyParked = ids.contains { id in
            watches.index(forKey: id).map { watches.values[$0].state == .parked } ?? false
        }
        guard !isAnyParked else { return false }
        for id in ids { _ = change(id) { $0.published(version, at: now) } }
        _ = index.endEncoding(selection, nil, at: version)
        index.endComparing(selection)
        return true
    }

    /// The version up to which everything that concerns a watch has been compared with it, or nil without such a watch.
    func comparedVersion(of id: Watch.ID) -> Version? {
        guard let subject = watches[id]?.subject else { return nil }
        if case .value(let selection, _) = subject, index.isPending(selection) { return 0 }
        return comparedVersion
    }

    /// What there is for a watch whose wait ends now.
    func newest(of id: Watch.ID) -> Delivery.News {
        guard let watch = watches[id] else { return .latest(latest.cursor) }
        switch watch.subject {
        case .value, .version: return .latest(latest.cursor)
        case .cascade: return .outcome(watch.outcome)
        case .changes: return watch.follower.map(newest) ?? .latest(latest.cursor)
        }
    }

    /// The commits that a follower has not seen.
    func newest(_ follower: Follower) -> Delivery.News {
        switch following(follower.query) {
        case .page(let page): return .changes(page, since: follower.position)
        case .nothing(let latest), .aboveLatest(let latest): return .latest(latest)
        // The commits have left memory while the watch was debouncing, or while its time was running out.
        case .inJournal, .expired: return .notInMemory(since: follower.position)
        }
    }

    /// Streams at one position look at the commits after it: they are sent, read elsewhere, or waited for.
    mutating func look(_ ids: [Watch.ID], _ follower: Follower, at now: Instant) -> DeliveryBatch {
        let found = following(follower.query)
        let news: Delivery.News =
            if case .page(let page) = found { .changes(page, since: follower.position) } else { .latest(latest.cursor) }
        var batch = DeliveryBatch(news)
        let latest = latest.cursor.version
        for id in ids {
            batch.add(
                change(id) { watch in
                    switch found {
                    // One that is only catching up is given the time that it needs.
                    case .page(let page) where page.isMore && follower.isSlow: return watch.prepares(.reset(.slow))
                    case .page(let page): return watch.found(page.next, hasMore: page.isMore, at: now)
                    case .nothing:
                        watch.parks(lookedAt: latest)
                        return .nothing
                    case .inJournal: return watch.prepares(follower.isSlow ? .reset(.slow) : watch.chunk)
                    case .expired: return watch.prepares(.reset(follower.isSlow ? .slow : .expired))
                    case .aboveLatest: return watch.prepares(.reset(.lost))
                    }
                })
        }
        return batch
    }

    // MARK: The fan-out

    /// What has been published since the last pass.
    struct Pass {
        let snapshot: any AnySnapshot
        let commits: [Commit]
        /// The snapshots before the newest one, in their order, where a watch waits for a value.
        let passed: [any AnySnapshot]
        let selections: Set<Selection>
        let followerKeys: [FollowerKey]
        let reached: [Watch.ID]
    }

    /// Begins to compare the watches with what is published.
    mutating func beginPass() -> Pass {
        isFanOutDue = false
        passesCount += 1
        let pass = Pass(
            snapshot: latest, commits: pending, passed: Array(passed.dropLast()), selections: index.beginEncoding(),
            followerKeys: pending.isEmpty ? [] : Array(followers.keys),
            reached: versions.takeReached(latest.cursor.version))
        pending = []
        passed = []
        return pass
    }

    /// Notes that a pass has compared everything but the selections that are still being encoded.
    mutating func endPass(_ version: Version) {
        comparedVersion = max(comparedVersion, version)
        passesCount -= 1
    }

    mutating func endComparing(_ selection: Selection) { index.endComparing(selection) }

    /// The watches of a selection that wait for one value.
    func watchesForOneValue(at selection: Selection) -> [Watch.ID] {
        guard untilCount > 0 else { return [] }
        return index.watches(at: selection).filter { watches[$0]?.waitsForOneValue == true }
    }

    func followers(_ key: FollowerKey) -> [Watch.ID] { followers[key].map(Array.init) ?? [] }

    mutating func endEncoding(_ selection: Selection, _ encoded: Encoded?, at version: Version) -> [Watch.ID] {
        index.endEncoding(selection, encoded, at: version)
    }
}

/// How many watches there may be.
package struct WatchLimits: Sendable {
    /// In all.
    package var watchesMax: Int
    /// Of one client's address.
    package var watchesPerClientMax: Int

    /// Makes limits.
    package init(watchesMax: Int = 20_000, watchesPerClientMax: Int = 20_000) {
        self.watchesMax = watchesMax
        self.watchesPerClientMax = watchesPerClientMax
    }
}

/// Why a watch was not taken in.
package enum WatchRefusal: Sendable {
    /// There are as many watches as the store allows.
    case all
    /// There are as many watches of this client as its share allows.
    case client
}
