internal import DequeModule
internal import StateJSON

/// The published snapshot, the history before it, and every watch; ``WatchHub`` guards it with its mutex.
struct HubStorage: Sendable {
    private(set) var latest: Snapshot
    private(set) var history: History
    private(set) var oldest: Version
    var index: SelectionIndex
    /// The watches for commits, by their query after version 0.
    private(set) var followers: [ChangesQuery: Set<Watch.ID>] = [:]
    private var versions = VersionIndex()
    private(set) var watches: [Watch.ID: Watch] = [:]
    private var countByClient: [String: Int] = [:]
    /// The client that has begun to watch each query and each view with arguments, and how many each client has begun.
    private var firstWatchers: [Selection: String] = [:]
    private var firstCounts: [String: Int] = [:]
    private var queriesCount = 0
    private var waits: [Watch.Route: Int] = [:]
    private var streams: [Watch.Route: Int] = [:]
    private var valuesBytes = 0
    private var valuesBytesByClient: [String: Int] = [:]
    private var pending: [Commit] = []
    /// The version up to which the hub has compared the watches, except with selections that are being encoded.
    private(set) var comparedVersion: Version
    private var isFanOutDue = false
    private var passesCount = 0
    /// The snapshots since the last pass, while a watch waits for one value: the value may stand for one turn only.
    private var passed: [Passed] = []
    private var untilCount = 0
    private static let passedMax = 64
    /// The encodings that wait in the turns of clients, whichever comes first; one that was done in another turn is not due.
    private var queuedEncodings: [IndexedSelection: (isDue: Bool, clients: Set<String>)] = [:]
    private var writers: Set<String> = []
    /// A turn itself looks at up to so many watches of a selection: that costs less than to wake the fan-out queue, and
    /// mostly shows that the queue has nothing to do.
    private static let comparedAtOnceMax = 16
    let limits: WatchLimits
    private let hasJournal: Bool

    init(
        latest: Snapshot, catalogue: Catalogue, history: History, limits: WatchLimits, journalOldest: Version?
    ) {
        self.latest = latest
        self.history = history
        self.limits = limits
        index = SelectionIndex(
            viewReads: catalogue.views.mapValues(\.reads), version: latest.cursor.version,
            // The kept members of a query outlive the time between two long-polls.
            idleBytesMax: limits.queriesBytesMax / 2,
            queryBudget: QueryBudget(bytesMax: limits.queriesBytesMax))
        oldest = journalOldest ?? latest.cursor.version
        comparedVersion = latest.cursor.version
        hasJournal = journalOldest != nil
    }

    var figures: HubFigures {
        HubFigures(
            waits: waits, streams: streams, latest: latest.cursor.version, oldest: oldest,
            historyCommitsCount: history.count, historyBytes: history.weight)
    }

    // MARK: The published snapshot

    /// Publishes a turn's snapshot and commits; true where the caller has to schedule a pass.
    mutating func publish(
        _ snapshot: Snapshot, _ commits: [Commit], by writers: @autoclosure () -> Set<String>,
        dropping dropped: inout Dropped
    ) -> Bool {
        if !firstWatchers.isEmpty { self.writers.formUnion(writers()) }
        dropped.latest = exchange(&latest, with: snapshot)
        for commit in commits { history.append(commit, dropping: &dropped.commits) }
        let version = snapshot.cursor.version
        if history.isDue(at: version) { dropped.past = history.note(snapshot) }
        if !hasJournal { oldest = history.base }
        // Consecutive commits of a turn often change the same pointers, which then are invalidated once.
        var last: [JSONPointer] = []
        for commit in commits where commit.changedPointers != last {
            index.latestVersion = version
            if index.hasEntries {
                index.invalidate(changing: commit.changedPointers, at: version) { !Self.areAllSending($0, &watches) }
            }
            last = commit.changedPointers
        }
        if !followers.isEmpty, mayConcernFollowers(commits) { pending += commits }
        if untilCount > 0, !index.dirty.isEmpty, passed.count < Self.passedMax {
            passed.append((snapshot, commits))
        }
        guard !pending.isEmpty || versions.isReached(version) || !index.dirty.isEmpty else {
            if !isFanOutDue, passesCount == 0 { comparedVersion = version }
            return false
        }
        return claimFanOut()
    }

    private func mayConcernFollowers(_ commits: [Commit]) -> Bool {
        // The pending commits have no gap, so all commits behind a pending one are pending.
        let partsCount = commits.reduce(0) { $0 + $1.partsCount }
        guard pending.isEmpty, passesCount == 0, followers.count * partsCount <= WatchHub.quickCountMax else {
            return true
        }
        return followers.keys.contains { key in commits.contains(where: key.filter.passes) }
    }

    /// Marks the streams as behind, to examine the value themselves; false where they are many, or one is not sending.
    private static func areAllSending(_ ids: Set<Watch.ID>, _ watches: inout [Watch.ID: Watch]) -> Bool {
        guard ids.count <= comparedAtOnceMax else { return false }
        for id in ids {
            if let slot = watches.index(forKey: id), watches.values[slot].state != .sending { return false }
        }
        for id in ids { watches[id]?.isBehind = true }
        return true
    }

    mutating func journalBegins(at version: Version) { oldest = max(oldest, version) }

    func following(_ query: ChangesQuery, _ partsMax: inout Int) -> Following {
        let latest = latest.cursor
        switch commits(after: query.since, latest) {
        case .failure(let elsewhere): return elsewhere
        case .success(let commits):
            var paging = ChangesPaging(query, latest: latest, partsMax: partsMax)
            for commit in commits where !paging.take(commit) { break }
            partsMax = max(0, paging.partsLeft)
            return paging.partsLeft < 0 ? .long(latest: latest) : .of(paging.page)
        }
    }

    func following(_ query: ChangesQuery) -> Following {
        var partsMax = WatchHub.quickCountMax
        return following(query, &partsMax)
    }

    func commits(after version: Version, _ latest: Cursor) -> Result<Deque<Commit>.SubSequence, Following> {
        guard version <= latest.version else { return .failure(.aboveLatest(latest)) }
        guard version >= oldest else { return .failure(.expired(oldest: oldest, latest: latest)) }
        guard let commits = history.commits(after: version) else { return .failure(.inJournal(latest: latest)) }
        return .success(commits)
    }

    func commits(after version: Version, through last: Version) -> [Commit]? {
        guard version <= last, last - version <= Version(WatchHub.quickCountMax) else { return nil }
        return history.commits(after: version).map { $0.prefix { $0.version <= last } }.map(Array.init)
    }

    // MARK: Registration

    mutating func register(_ watch: Watch) -> WatchRefusal? {
        guard watches.count < limits.watchesMax else { return .all }
        guard countByClient[watch.client, default: 0] < limits.watchesPerClientMax else { return .client }
        if let refusal = refusal(ofComputed: watch) { return refusal }
        if case .value = watch.subject,
            let refusal = HeldMemory(limits.memory, for: watch.client).hold(Encoded.smallBytesMax)
        {
            return .memory(refusal)
        }
        let bytes = watch.valueBytes
        if bytes > 0 {
            guard valuesBytes + bytes <= limits.valuesBytesMax else { return .all }
            let own = valuesBytesByClient[watch.client, default: 0] + bytes
            guard own <= limits.valuesBytesMax / 2 else { return .client }
            valuesBytes += bytes
            valuesBytesByClient[watch.client] = own
        }
        watches[watch.id] = watch
        if watch.isStream { streams[watch.route, default: 0] += 1 } else { waits[watch.route, default: 0] += 1 }
        if watch.wanted != nil { untilCount += 1 }
        countByClient[watch.client, default: 0] += 1
        addToIndex(watch)
        return nil
    }

    private func refusal(ofComputed watch: Watch) -> WatchRefusal? {
        guard case .value(let selection, _) = watch.subject, selection.isComputed, !index.isWatched(selection) else {
            return nil
        }
        let (count, most) =
            selection.isQuery
            ? (queriesCount, limits.queriesMax) : (firstWatchers.count - queriesCount, limits.viewsMax)
        guard count < most else { return selection.isQuery ? .queries : .views }
        // One more than half of them are of one client, so that there is room for another.
        return firstCounts[watch.client, default: 0] > most / 2 ? .client : nil
    }

    private mutating func noteFirst(_ client: String, of selection: Selection) {
        guard selection.isComputed, firstWatchers[selection] == nil else { return }
        firstWatchers[selection] = client
        firstCounts[client, default: 0] += 1
        if selection.isQuery { queriesCount += 1 }
    }

    private mutating func forgetFirst(_ selection: Selection) {
        guard selection.isComputed, !index.isWatched(selection),
            let client = firstWatchers.removeValue(forKey: selection)
        else { return }
        firstCounts.subtract(1, of: client)
        if selection.isQuery { queriesCount -= 1 }
    }

    mutating func registerAndPark(_ watch: Watch, examined version: Version?) -> (Watching, mustFanOut: Bool) {
        if let refusal = register(watch) { return (.refused(refusal), false) }
        return (.parked, park(watch.id, examined: version))
    }

    private mutating func addToIndex(_ watch: Watch) {
        switch watch.subject {
        case .value(let selection, _):
            noteFirst(watch.client, of: selection)
            index.insert(watch.id, at: selection, waitsForOneValue: watch.wanted != nil)
            let refusal = index.encoded(selection)?.count(in: limits.memory, for: watch.client)
            if refusal != nil, let found = index[selection] { index.drop(found) }
        case .version(let awaited): versions.insert(watch.id, at: awaited)
        case .changes(let query): followers[query.after(0), default: []].insert(watch.id)
        case .cascade: break
        }
    }

    /// True where the caller has to schedule a pass.
    mutating func park(_ id: Watch.ID, examined version: Version?) -> Bool {
        guard let slot = watches.index(forKey: id) else { return false }
        var version = version
        // The hub need not have the bytes of a value to tell that it is the one that the client knows.
        if version == nil, case .value(let selection, let condition) = watches.values[slot].subject,
            let tag = index.tag(selection), condition.isMet(byTag: tag) == false
        {
            version = latest.cursor.version
        }
        // A watch that has examined nothing is not answered with a value from before it came.
        let before = latest.cursor.version > 0 ? latest.cursor.version - 1 : nil
        watches.values[slot].parks(examined: version ?? before)
        guard case .value(let selection, _) = watches.values[slot].subject, let selection = index[selection] else {
            return false
        }
        // A commit after the examined version may have changed the selection.
        if let version, let since = history.commits(after: version), !selection.isChanged(by: since) { return false }
        index.dirty.insert(selection)
        return claimFanOut()
    }

    private mutating func claimFanOut() -> Bool {
        defer { isFanOutDue = true }
        return !isFanOutDue
    }

    mutating func remove(_ id: Watch.ID) {
        guard let watch = watches.removeValue(forKey: id) else { return }
        if watch.isStream { streams[watch.route, default: 0] -= 1 } else { waits[watch.route, default: 0] -= 1 }
        if watch.wanted != nil { untilCount -= 1 }
        countByClient.subtract(1, of: watch.client)
        let bytes = watch.valueBytes
        if bytes > 0 {
            valuesBytes -= bytes
            valuesBytesByClient.subtract(bytes, of: watch.client)
        }
        switch watch.subject {
        case .value(let selection, _):
            index.remove(id, at: selection)
            forgetFirst(selection)
        case .version(let version): versions.remove(id, at: version)
        case .changes(let query):
            let key = query.after(0)
            followers[key]?.remove(id)
            if followers[key]?.isEmpty == true { followers[key] = nil }
        case .cascade: break
        }
    }

    // MARK: Events

    typealias Update = (action: Watch.Action, receiver: any WatchReceiver, request: any AnyObject & Sendable)

    mutating func update(_ id: Watch.ID, _ event: (inout Watch) -> Watch.Action) -> Update? {
        guard let slot = watches.index(forKey: id) else { return nil }
        let action = event(&watches.values[slot])
        let update = (action, watches.values[slot].receiver, watches.values[slot].request)
        if watches.values[slot].state == .done { remove(id) }
        return update
    }

    func client(at selection: IndexedSelection) -> String? {
        index.watches(at: selection).first.flatMap { watches[$0]?.client }
    }

    func clients(of ids: ArraySlice<Watch.ID>) -> Set<String> { Set(ids.lazy.compactMap { watches[$0]?.client }) }

    func examinedVersion(of id: Watch.ID) -> Version? {
        watches.index(forKey: id).flatMap { watches.values[$0].examinedVersion }
    }

    /// False, without a change, where a parked watch waits for the value.
    mutating func noteBehind(_ selection: IndexedSelection, _ version: Version, at now: Instant) -> Bool {
        let ids = index.watches(at: selection)
        let isAnyParked = ids.contains { id in
            watches.index(forKey: id).map { watches.values[$0].state == .parked } ?? false
        }
        guard !isAnyParked else { return false }
        for id in ids { _ = update(id) { $0.published(version, at: now) } }
        _ = index.endEncoding(selection, nil, at: version)
        index.endComparing(selection)
        return true
    }

    func comparedVersion(of id: Watch.ID) -> Version? {
        guard let subject = watches[id]?.subject else { return nil }
        if case .value(let selection, _) = subject, index.isPending(selection) { return 0 }
        return comparedVersion
    }

    // MARK: The fan-out

    typealias Passed = (snapshot: Snapshot, commits: [Commit])

    struct Pass {
        let snapshot: Snapshot
        let commits: [Commit]
        let passed: [Passed]
        let selections: Set<IndexedSelection>
        let reached: [Watch.ID]
        let writers: Set<String>
    }

    mutating func beginPass() -> Pass {
        isFanOutDue = false
        passesCount += 1
        let pass = Pass(
            snapshot: latest, commits: pending, passed: passed.filter { $0.snapshot.cursor != latest.cursor },
            selections: index.beginEncoding(),
            reached: versions.takeReached(latest.cursor.version), writers: writers)
        (pending, passed, writers) = ([], [], [])
        return pass
    }

    mutating func endPass(_ version: Version) {
        comparedVersion = max(comparedVersion, version)
        passesCount -= 1
    }

    /// The clients in whose turns the selection did not wait yet: up to `countMax`, and all who have written.
    ///
    /// An encoding that is due already reads the newest snapshot when its turn comes.
    mutating func queueEncoding(
        _ selection: IndexedSelection, in clients: Set<String>, _ writers: Set<String>, atMost countMax: Int
    ) -> Set<String> {
        let before = queuedEncodings[selection] ?? (false, [])
        if before.isDue { index.endComparing(selection) }
        let others = clients.subtracting(before.clients)
        let new = others.intersection(writers).union(others.prefix(max(0, countMax - before.clients.count)))
        queuedEncodings[selection] = (true, before.clients.union(new))
        return new
    }

    /// False if another turn has done it, and, with the comparison ended, if nothing watches it.
    mutating func beginQueuedEncoding(_ selection: IndexedSelection, in client: String) -> Bool {
        guard var queued = queuedEncodings[selection] else { return false }
        let isDue = queued.isDue
        queued.isDue = false
        queued.clients.remove(client)
        queuedEncodings[selection] = queued.clients.isEmpty ? nil : queued
        guard isDue else { return false }
        guard index.watches(at: selection).isEmpty else { return true }
        index.endComparing(selection)
        return false
    }

    func wantedValues(at selection: IndexedSelection) -> [(id: Watch.ID, value: JSONValue)] {
        guard untilCount > 0 else { return [] }
        return index.watchesForOneValue(at: selection).compactMap { id in
            guard case .value(_, let condition)? = watches[id]?.subject else { return nil }
            return condition.wanted.map { (id, $0) }
        }
    }

    mutating func endEncoding(
        _ selection: IndexedSelection, _ encoded: Encoded?, at version: Version
    ) -> (ids: [Watch.ID], isRefused: Bool) {
        let refusal = client(at: selection).flatMap { encoded?.count(in: limits.memory, for: $0) }
        return (index.endEncoding(selection, encoded, at: version, keeps: refusal == nil), refusal != nil)
    }
}

extension [String: Int] {
    mutating func subtract(_ number: Int, of client: String) {
        let left = self[client, default: 0] - number
        self[client] = left > 0 ? left : nil
    }
}
