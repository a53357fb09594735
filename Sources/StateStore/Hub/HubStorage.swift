internal import StateJSON

/// The published snapshot, the history before it, and every watch.
///
/// The storage has no lock, clock or queue; ``WatchHub`` guards it with its mutex.
struct HubStorage: Sendable {
    /// The published snapshot.
    private(set) var latest: any AnySnapshot
    private(set) var history: History
    /// The oldest version that a client can follow from, in memory or in the journal.
    private(set) var oldest: Version
    private var index: SelectionIndex
    private var followers: [FollowerKey: Set<Watch.ID>] = [:]
    private var versions = VersionIndex()
    private var watches: [Watch.ID: Watch] = [:]
    private var countByClient: [String: Int] = [:]
    /// The commits that the next pass compares with the followers.
    private var pending: [Commit] = []
    /// The version up to which the hub has compared the watches, except with selections that are being encoded.
    private var comparedVersion: Version
    private var isFanOutDue = false
    private let limits: WatchLimits
    /// Whether a journal has commits older than those in memory.
    private let hasJournal: Bool

    init(
        latest: any AnySnapshot, catalogue: Catalogue, history: History, limits: WatchLimits, journalOldest: Version?
    ) {
        self.latest = latest
        self.history = history
        self.limits = limits
        index = SelectionIndex(viewReads: catalogue.viewReads)
        oldest = journalOldest ?? latest.cursor.version
        comparedVersion = latest.cursor.version
        hasJournal = journalOldest != nil
    }

    var watchesCount: Int { watches.count }
    var streamsCount: Int { watches.values.count(where: \.isStream) }
    var watchIDs: [Watch.ID] { watches.keys.sorted() }

    // MARK: The published snapshot

    /// Publishes a turn's snapshot and commits.
    ///
    /// - Returns: whether the caller has to schedule a pass: there are watches to compare and none is scheduled.
    mutating func publish(_ snapshot: any AnySnapshot, _ commits: [Commit]) -> Bool {
        latest = snapshot
        for commit in commits { history.append(commit) }
        history.note(snapshot)
        if !hasJournal { oldest = history.base }
        // Consecutive commits of a turn often change the same pointers, which then are invalidated once.
        var last: [JSONPointer] = []
        for commit in commits where commit.changedPointers != last {
            index.invalidate(changing: commit.changedPointers)
            last = commit.changedPointers
        }
        if !followers.isEmpty { pending += commits }
        let version = snapshot.cursor.version
        guard !pending.isEmpty || versions.isReached(version) || !index.dirty.isEmpty else {
            if !isFanOutDue { comparedVersion = version }
            return false
        }
        return claimFanOut()
    }

    mutating func journalBegins(at version: Version) { oldest = max(oldest, version) }

    /// The cached encoding of a selection in the published snapshot; nil where there is none.
    func encoded(_ selection: Selection) -> Encoded? { index.encoded(selection) }

    /// Caches an encoding of a selection in the published snapshot.
    mutating func note(_ encoded: Encoded, for selection: Selection) { index.note(encoded, for: selection) }

    /// The commits after a version that pass a filter, as far as they are in memory.
    func following(_ query: ChangesQuery) -> Following {
        let latest = latest.cursor
        guard query.since <= latest.version else { return .aboveLatest(latest) }
        guard query.since >= oldest else { return .expired(oldest: oldest, latest: latest) }
        guard let commits = history.commits(after: query.since) else { return .inJournal(latest: latest) }
        let page = ChangesPage(query, from: commits, latest: latest)
        return page.commits.isEmpty && !page.isMore ? .nothing(latest: latest) : .page(page)
    }

    // MARK: Registration

    /// Registers a watch, or returns the limit that it would exceed.
    mutating func register(_ watch: Watch) -> WatchRefusal? {
        guard watches.count < limits.watchesMax else { return .all }
        guard countByClient[watch.client, default: 0] < limits.watchesPerClientMax else { return .client }
        watches[watch.id] = watch
        countByClient[watch.client, default: 0] += 1
        return nil
    }

    /// Registers a watch that has examined everything up to its examined version, and parks it.
    mutating func registerAndPark(_ watch: Watch) -> Watching {
        if let refusal = register(watch) { return .refused(refusal) }
        addToIndex(watch.id)
        _ = park(watch.id, examined: watch.examinedVersion)
        return .parked
    }

    /// Adds a registered watch to the index of its subject.
    mutating func addToIndex(_ id: Watch.ID) {
        guard let subject = watches[id]?.subject else { return }
        switch subject {
        case .value(let selection, _): index.insert(id, at: selection)
        case .version(let awaited): versions.insert(id, at: awaited)
        case .changes(let filter, let limit, let weightMax):
            followers[FollowerKey(filter: filter, limit: limit, weightMax: weightMax), default: []].insert(id)
        case .cascade: break
        }
    }

    /// Parks a watch that is in an index.
    ///
    /// - Parameter version: the version that the watch has examined; nil where it has examined none.
    /// - Returns: whether the caller has to schedule a pass: there are watches to compare and none is scheduled.
    mutating func park(_ id: Watch.ID, examined version: Version?) -> Bool {
        guard let slot = watches.index(forKey: id) else { return false }
        watches.values[slot].parks(examined: version)
        guard case .value(let selection, _) = watches.values[slot].subject else { return false }
        // A commit after the examined version may have changed the selection.
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

    /// Unregisters a watch and removes it from the index of its subject.
    mutating func remove(_ id: Watch.ID) {
        guard let watch = watches.removeValue(forKey: id) else { return }
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

    /// The action that a watch's event has returned, with the receiver and the request of the watch.
    struct Update {
        let action: Watch.Action
        let receiver: any WatchReceiver
        let request: any AnyObject & Sendable
    }

    /// Applies an event to a watch, and unregisters a watch that is done.
    ///
    /// - Returns: the action of the watch; nil where there is no watch with this ID.
    mutating func update(_ id: Watch.ID, _ event: (inout Watch) -> Watch.Action) -> Update? {
        guard let slot = watches.index(forKey: id) else { return nil }
        let action = event(&watches.values[slot])
        let update = Update(
            action: action, receiver: watches.values[slot].receiver, request: watches.values[slot].request)
        if watches.values[slot].state == .done { remove(id) }
        return update
    }

    func watch(_ id: Watch.ID) -> Watch? { watches[id] }

    func examinedVersion(of id: Watch.ID) -> Version? {
        watches.index(forKey: id).flatMap { watches.values[$0].examinedVersion }
    }

    /// Marks the watches of a selection as behind a version, if none of them is parked.
    ///
    /// - Returns: false, without a change, where a parked watch waits for the value.
    mutating func noteBehind(_ selection: Selection, _ version: Version, at now: Instant) -> Bool {
        let ids = index.watches(at: selection)
        let isAnyParked = ids.contains { id in
            watches.index(forKey: id).map { watches.values[$0].state == .parked } ?? false
        }
        guard !isAnyParked else { return false }
        for id in ids { _ = update(id) { $0.published(version, at: now) } }
        _ = index.endEncoding(selection, nil, at: version)
        return true
    }

    /// The version up to which the hub has compared a watch with everything that concerns it.
    ///
    /// - Returns: 0 where the value of its selection is being encoded; nil where there is no such watch.
    func comparedVersion(of id: Watch.ID) -> Version? {
        guard let subject = watches[id]?.subject else { return nil }
        if case .value(let selection, _) = subject, index.isPending(selection) { return 0 }
        return comparedVersion
    }

    // MARK: The fan-out

    /// What a pass compares: the commits since the last pass, and the watches that they may concern.
    struct Pass {
        let snapshot: any AnySnapshot
        let commits: [Commit]
        let selections: Set<Selection>
        let followerKeys: [FollowerKey]
        let reached: [Watch.ID]
    }

    /// Begins a pass over everything that was published since the last one.
    mutating func beginPass() -> Pass {
        isFanOutDue = false
        let pass = Pass(
            snapshot: latest, commits: pending, selections: index.beginEncoding(),
            followerKeys: pending.isEmpty ? [] : Array(followers.keys),
            reached: versions.takeReached(latest.cursor.version))
        pending = []
        return pass
    }

    /// Ends a pass, which has compared everything but the selections that are still being encoded.
    mutating func endPass(_ version: Version) {
        comparedVersion = max(comparedVersion, version)
    }

    func followers(_ key: FollowerKey) -> [Watch.ID] { followers[key].map(Array.init) ?? [] }

    mutating func endEncoding(_ selection: Selection, _ encoded: Encoded?, at version: Version) -> [Watch.ID] {
        index.endEncoding(selection, encoded, at: version)
    }
}
