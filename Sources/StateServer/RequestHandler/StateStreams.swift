internal import HTTPMessages
internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateJournal
internal import StateStore
internal import Synchronization

extension RequestHandler {
    var pollTime: StreamTime { StreamTime(platform.time(), random: platform.random(0...1)) }

    /// The time of an event: without a random part, so that the cursors of a stream's events never go back.
    var streamTime: StreamTime { StreamTime(platform.time(), random: 0) }

    /// The longest life of a stream, about a minute by the protocol, so that a cache has clients share connections.
    func lifetime(of request: StreamRequest) -> Duration {
        .seconds(min(metrics.settings.streamSecondsMax, request.durable == nil ? .max : 60))
    }

    /// Whether the messages of a long page, or the entities before it, take too long for a thread that serves others.
    func isLong(_ page: ChangesPage, since: Version, for request: ChangesRequest) -> Bool {
        guard let key = key(of: page, since: since, request) else { return page.weight > Self.quickBytesMax }
        if statePages.messages(of: key) != nil { return false }
        return page.weight > Self.quickBytesMax || statePages.entities(at: since, of: request.filter) == nil
    }

    /// Nil for a stream of commits, whose messages need no state.
    private func key(of page: ChangesPage, since: Version, _ request: ChangesRequest) -> StatePages.Page? {
        guard case .state(let hasOldValues)? = request.durable?.content else { return nil }
        return StatePages.Page(
            since: since, next: page.next, filter: request.filter, store: request.store.name,
            access: request.store.access, hasOldValues: hasOldValues)
    }

    func prepareStatePages(for request: ChangesRequest) {
        guard request.needsState else { return }
        let latest = hub.latest
        guard statePages.entities(at: latest.cursor.version, of: request.filter) == nil else { return }
        statePages.keep(EntityChanges(of: contract.parts, in: request.scopes, at: latest), of: request.filter)
    }

    /// The messages of a page of commits as an array; a long one ends early, and the page becomes what it holds.
    func messages(
        of page: inout ChangesPage, since: Version, _ request: ChangesRequest
    ) throws -> [UInt8] {
        guard !page.commits.isEmpty, let key = key(of: page, since: since, request) else {
            return contract.messages(of: request, page)
        }
        let messages = try statePages.messages(of: key) ?? makeMessages(of: page, key, request)
        page.end(at: messages.next)
        return messages.array
    }

    private func makeMessages(
        of page: ChangesPage, _ key: StatePages.Page, _ request: ChangesRequest
    ) throws -> StatePages.Messages {
        var entities = try entities(at: key.since, request)
        var messages = StateMessages(
            contract, of: request.store, epoch: page.latest.epoch, hasOldValues: key.hasOldValues)
        var next = page.next
        for commit in page.commits {
            messages.append(try entities.apply(commit), of: commit)
            guard messages.bytesCount < Self.messagesBytesMax else {
                // Behind its last commit a page may have examined others.
                if commit.version != page.commits.last?.version { next = commit.version }
                break
            }
        }
        entities.skip(to: next)
        let snapshot = hub.latest
        if snapshot.cursor.version == next { entities.renew(snapshot) }
        statePages.keep(entities, of: request.filter)
        let made = StatePages.Messages(array: messages.array(), next: next)
        statePages.keep(made, of: key)
        return made
    }

    private static let messagesBytesMax = 256 << 10

    private func entities(at version: Version, _ request: ChangesRequest) throws -> EntityChanges {
        if let known = statePages.entities(at: version, of: request.filter) { return known }
        let (parts, scopes) = (contract.parts, request.scopes)
        let latest = hub.latest
        if latest.cursor.version == version { return EntityChanges(of: parts, in: scopes, at: latest) }
        if let path = hub.path(to: version) {
            var entities = EntityChanges(of: parts, in: scopes, at: path.from)
            for commit in path.commits { try entities.pass(commit) }
            return entities
        }
        guard let past = try keptState(version, for: nil) else { throw Problem.offsetGone }
        return EntityChanges(of: parts, in: scopes, at: past)
    }

    /// Throws where a stream cannot go on inside a snapshot: a client begins again by the status, not by an end.
    func checkStart(of follow: ChangesRequest, _ bounds: HistoryBounds, _ exchange: Exchange) throws -> Reply? {
        guard let read = follow.durable else { return nil }
        let since: Version
        switch follow.since {
        case .cursor(let cursor):
            since = cursor.version
            guard let position = read.position else { break }
            let isKept = position == 0 || since == bounds.latest.version || since >= hub.oldestState
            guard cursor.epoch == bounds.latest.epoch, since <= bounds.latest.version, isKept else {
                throw Problem.offsetGone
            }
            return nil
        case .oldest: since = bounds.oldest
        case .now, .never: return nil
        }
        guard since < hub.oldestState else { return nil }
        return check(exchange) { [self] in
            guard var page = try store.page(follow.streamQuery(since: since)) else { throw Problem.offsetGone }
            if follow.needsState { _ = try messages(of: &page, since: since, follow) }
        }
    }

    func send(
        _ read: DurableRead, of store: VisibleStore, behind examined: Version, to watched: WatchedRequest
    ) throws {
        let (exchange, latest) = (watched.exchange, latest)
        let position = watched.sentEntities.load(ordering: .acquiring)
        // The first page is of the newest version, and the others of the same.
        let (page, cursor) = try page(
            of: store, at: position == 0 ? nil : Cursor(latest.epoch, examined), from: position, exchange)
        watched.sentEntities.store(page.end, ordering: .releasing)
        let bytes = try contract.chunk(of: read, store, from: position, page, at: cursor, now: self.latest, streamTime)
        let (chunk, isMore) = (Watch.Chunk.snapshot(isLast: !page.isMore), page.isMore || self.latest != cursor)
        guard hub.prepared(exchange.id, chunk, cursor.version, hasMore: isMore) else { return }
        Exchange.send(bytes, to: [exchange])
    }

    func entities(_ request: ChangesRequest, _ read: DurableRead, _ exchange: Exchange) throws -> Reply {
        let bounds = hub.bounds
        if let cursor = request.cursor, cursor.epoch != bounds.latest.epoch || cursor.version > bounds.latest.version {
            throw Problem.offsetGone
        }
        let isPast = request.cursor.map { $0 != bounds.latest && statePages.snapshot($0) == nil } ?? false
        return reading(exchange, isPast ? .past : .read) { [self] in
            let (page, cursor) = try page(of: request.store, at: request.cursor, from: read.position ?? 0, exchange)
            return try contract.response(to: request, read, page, at: cursor, now: latest, pollTime)
        }
    }

    /// Some entities of a version, with its cursor; a `cursor` of nil is the latest.
    private func page(
        of store: VisibleStore, at cursor: Cursor?, from position: Int, _ exchange: Exchange
    ) throws -> (EntityPage, Cursor) {
        func page(of snapshot: Snapshot) throws -> EntityPage {
            try EntityPage(
                of: snapshot, contract.parts, in: store.pointer, from: position,
                bytesMax: Self.entitiesBytesMax, isVisible: store.visibility)
        }
        func past(_ cursor: Cursor) throws -> Snapshot? {
            try statePages.snapshot(cursor) ?? keptState(cursor.version, for: exchange)
        }
        guard var snapshot = try cursor.map(past) ?? hub.latest else { throw Problem.offsetGone }
        let first = try page(of: snapshot)
        // Only a client that begins chooses a version; what is read of an older one is shared with no other client.
        guard cursor == nil, first.isMore else { return (first, snapshot.cursor) }
        snapshot = statePages.shared(snapshot, at: platform.now())
        return (try page(of: snapshot), snapshot.cursor)
    }

    private static let entitiesBytesMax = 256 << 10
}

extension ChangesRequest {
    var needsState: Bool { if case .state? = durable?.content { true } else { false } }

    fileprivate var scopes: PointerFilter { filter.paths ?? PointerFilter(store.pointer) }
}

/// The last entities and messages of state streams, which clients share; any thread may call any method.
final class StatePages: Sendable {
    struct Page: Hashable {
        let since: Version
        let next: Version
        let filter: ChangesFilter
        let store: String
        let access: Access
        let hasOldValues: Bool
    }

    struct Messages {
        let array: [UInt8]
        /// The last version whose messages these are: long messages end before the page does.
        let next: Version
    }

    private struct State {
        var entities: [(filter: ChangesFilter, entities: EntityChanges)] = []
        /// The snapshots that clients are reading in pages, oldest first, each with the time at which its first client came.
        var snapshots: [(snapshot: Snapshot, since: Instant)] = []
        var sent: [(page: Page, messages: Messages)] = []
    }

    private let state = Mutex(State())
    private static let filtersMax = 4
    /// How many versions entities may lie behind the newest ones: they keep a state that nothing else may need.
    private static let lagMax: Version = 1024
    private static let pagesMax = 8
    private static let bytesMax = 1 << 20

    /// Clients that begin to read a large state within this time share a version.
    private static let sharing = Duration.seconds(5)
    private static let snapshotsMax = 4

    /// The snapshot of a moment ago, or else the latest: a writer would otherwise make a version for each client.
    func shared(_ latest: Snapshot, at now: Instant) -> Snapshot {
        // A dropped page ends outside the lock: a state has an adopter's objects.
        state.withLock { state -> (Snapshot, dropped: Snapshot?) in
            if let last = state.snapshots.last, now - last.since < Self.sharing { return (last.snapshot, nil) }
            state.snapshots.append((latest, now))
            let isFull = state.snapshots.count > Self.snapshotsMax
            return (latest, isFull ? state.snapshots.removeFirst().snapshot : nil)
        }.0
    }

    func snapshot(_ cursor: Cursor) -> Snapshot? {
        state.withLock { $0.snapshots.last { $0.snapshot.cursor == cursor }?.snapshot }
    }

    func messages(of page: Page) -> Messages? { state.withLock { $0.sent.last { $0.page == page }?.messages } }

    func keep(_ messages: Messages, of page: Page) {
        // Long messages are made again rather than kept.
        guard messages.array.count <= Self.bytesMax / Self.pagesMax else { return }
        state.withLock { state in
            state.sent.append((page, messages))
            if state.sent.count > Self.pagesMax { state.sent.removeFirst() }
        }
    }

    func entities(at version: Version, of filter: ChangesFilter) -> EntityChanges? {
        state.withLock { $0.entities.first { $0.filter == filter && $0.entities.version == version }?.entities }
    }

    func keep(_ entities: EntityChanges, of filter: ChangesFilter) {
        _ = state.withLock { state -> [(ChangesFilter, EntityChanges)] in
            let before = state.entities
            let known = before.firstIndex { $0.filter == filter }
            if let known, before[known].entities.version > entities.version { return [] }
            if let known { state.entities.remove(at: known) }
            state.entities.removeAll { $0.entities.version + Self.lagMax < entities.version }
            state.entities.append((filter, entities))
            if state.entities.count > Self.filtersMax { state.entities.removeFirst() }
            return before
        }
    }
}
