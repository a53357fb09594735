internal import HTTPMessages
internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateJournal
internal import StateStore
internal import Synchronization

extension RequestHandler {
    private var pollTime: StreamTime { StreamTime(schedule.time(), random: schedule.random(0...1)) }

    /// The time of an event: without a random part, so that the cursors of a stream's events never go back.
    var streamTime: StreamTime { StreamTime(schedule.time(), random: 0) }

    /// The longest life of a stream; the protocol asks for about a minute, so that a cache in front of the server can have
    /// clients share connections.
    func lifetime(of request: StreamRequest) -> Duration {
        request.durable == nil ? streamLifetime : min(streamLifetime, .seconds(60))
    }

    // MARK: Commits, and what they change

    func response(to request: ChangesRequest, _ page: ChangesPage, since: Version) throws -> Response {
        guard let read = request.durable else { return contract.response(to: request, page) }
        var page = page
        let messages = try messages(of: &page, since: since, request)
        return contract.response(to: request, read, page, at: pollTime) { messages }
    }

    func quickResponse(to request: ChangesRequest, _ page: ChangesPage, since: Version) -> Response {
        do {
            return try response(to: request, page, since: since)
        } catch {
            return failedReading(request.requestID, error)
        }
    }

    func response(to request: ChangesRequest, emptyAt latest: Cursor) -> Response {
        let page = ChangesPage(emptyAt: latest)
        guard let read = request.durable else { return contract.response(to: request, page) }
        return contract.response(to: request, read, page, at: pollTime) { contract.messages(of: request, page) }
    }

    /// Whether the messages take so long that a thread that serves others should not make them.
    ///
    /// The page is long, or the entities before it have to be made first.
    func isLong(_ page: ChangesPage, since: Version, for request: ChangesRequest) -> Bool {
        guard let key = key(of: page, since: since, request) else { return page.weight > Self.quickBytesMax }
        if statePages.messages(of: key) != nil { return false }
        return page.weight > Self.quickBytesMax || statePages.entities(at: since, of: request.filter) == nil
    }

    /// The key of the messages of a page, or nil for a stream of commits, whose messages need no state.
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

    /// The messages of a page of commits, as an array; the page becomes what they hold of it.
    ///
    /// A small patch of a large entity is a large message, so the messages may end before the page does.
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

    /// About the most bytes of messages in one answer or chunk; a single commit may have more.
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
        guard let past = try pastState(at: Cursor(latest.cursor.epoch, version), nil, isOver: { false }) else {
            throw Problem.offsetGone
        }
        return EntityChanges(of: parts, in: scopes, at: past)
    }

    // MARK: Streams of events

    /// The reason for which a stream cannot go on inside a snapshot, or nil.
    ///
    /// A client that learns it from the status begins again; one whose stream only ends would come back with the same
    /// offset.
    func refusal(of request: StreamRequest, _ bounds: HistoryBounds) -> Problem? {
        guard let snapshot = request.snapshot, let cursor = snapshot.cursor else { return nil }
        let isKept =
            snapshot.position == 0 || cursor.version == bounds.latest.version || cursor.version >= hub.oldestState
        return cursor.epoch == bounds.latest.epoch && cursor.version <= bounds.latest.version && isKept
            ? nil : .offsetGone
    }

    /// Begins to read a stream's start before the status is sent; nil if the start is in memory, or has been read.
    func check(
        _ request: StreamRequest, _ follow: ChangesRequest, _ bounds: HistoryBounds, _ exchange: Exchange
    ) -> Reply? {
        let since: Version
        switch follow.since {
        case .cursor(let cursor): since = cursor.version
        case .oldest: since = bounds.oldest
        case .now, .never: return nil
        }
        guard request.snapshot == nil, since < hub.oldestState else { return nil }
        return check(exchange, request.requestID) { [self] in try readStart(of: follow, since: since) }
    }

    /// Begins slow work before a request is carried out, so that the client learns by the status where it fails.
    ///
    /// The server hands the request on again after the work; nil means that it has been done a moment ago.
    func check(
        _ exchange: Exchange, _ requestID: RequestID, of selection: Selection? = nil,
        _ work: @escaping @Sendable () throws -> Void
    ) -> Reply? {
        guard !checkedRequests.withLock({ $0.contains(exchange.id) }) else { return nil }
        if let refusal = slowReads.begin(exchange, isAbandonable: false) {
            return .now(respond(.tooManyReads(refusal), requestID))
        }
        schedule.slow(.read, exchange.client, taking: selection.flatMap(hub.time)) { [self] in
            guard !exchange.isOver else { return slowReads.end(exchange) }
            let result = Result { try evaluating(for: exchange, work) }
            slowReads.end(exchange)
            do {
                try result.get()
                checkedRequests.withLock { _ = $0.insert(exchange.id) }
                exchange.resume()
                // By then the request is carried out, or its client has gone.
                schedule.after(.seconds(5)) { self.checkedRequests.withLock { _ = $0.remove(exchange.id) } }
            } catch {
                answer(exchange, failedReading(requestID, error))
            }
        }
        return .deferred
    }

    private func readStart(of follow: ChangesRequest, since: Version) throws {
        guard var page = try page(follow.streamQuery(since: since)) else { throw Problem.offsetGone }
        if follow.needsState { _ = try messages(of: &page, since: since, follow) }
    }

    func send(
        _ page: ChangesPage, since: Version, _ request: ChangesRequest, _ read: DurableRead, to group: [WatchedRequest]
    ) {
        let send: @Sendable () -> Void = { [self] in
            do {
                var page = page
                let examined = page.next
                let messages = try messages(of: &page, since: since, request)
                if page.next != examined { hub.returns(group.map(\.exchange.id), to: page.next) }
                Exchange.send(
                    contract.chunk(of: read, page, messages: messages, at: streamTime), to: group.map(\.exchange))
            } catch {
                fail(group, error)
            }
        }
        guard isLong(page, since: since, for: request), let client = group.first?.exchange.client else { return send() }
        schedule.slow(.read, client, send)
    }

    /// A client that cannot go on from where it is loses its connection, and learns the reason when it comes back.
    func send(
        _ chunk: Watch.Chunk, of request: StreamRequest, _ follow: ChangesRequest, _ read: DurableRead,
        to watched: WatchedRequest
    ) throws {
        let (exchange, latest) = (watched.exchange, latest)
        guard !exchange.isOver, let examined = hub.examinedVersion(of: exchange.id) else { return }
        switch (chunk, request.snapshot) {
        case (.snapshot, let entities?):
            let position = watched.sentEntities.load(ordering: .acquiring)
            // The first page is of the newest version, and the others of the same.
            let (page, cursor) = try page(
                of: entities, at: position == 0 ? nil : Cursor(latest.epoch, examined), from: position, exchange)
            watched.sentEntities.store(page.end, ordering: .releasing)
            let bytes = try contract.chunk(of: entities, from: position, page, at: cursor, now: self.latest, streamTime)
            let (chunk, isMore) = (Watch.Chunk.snapshot(isLast: !page.isMore), page.isMore || self.latest != cursor)
            guard hub.prepared(exchange.id, chunk, cursor.version, hasMore: isMore) else { return }
            Exchange.send(bytes, to: [exchange])
        case (.first, _), (.next, _):
            guard var page = try page(follow.streamQuery(since: examined)) else {
                throw Problem.offsetGone
            }
            let messages = try messages(of: &page, since: examined, follow)
            guard hub.prepared(exchange.id, chunk, page.next, hasMore: page.isMore) else { return }
            Exchange.send(contract.chunk(of: read, page, messages: messages, at: streamTime), to: [exchange])
        case (.reset, _), (.snapshot, nil): throw Problem.offsetGone
        }
    }

    private func fail(_ streams: [WatchedRequest], _ error: any Error) {
        // A problem is the client's: its offset is gone.
        logger.log(
            level: error is Problem ? .debug : .error, "stream failed", metadata: ["reason": .string("\(error)")])
        end(streams.filter { hub.end($0.exchange.id) != nil })
    }

    // MARK: The entities of one version

    func entities(_ request: EntitiesRequest, _ exchange: Exchange) -> Reply {
        let bounds = hub.bounds
        if let cursor = request.cursor, cursor.epoch != bounds.latest.epoch || cursor.version > bounds.latest.version {
            return .now(respond(.offsetGone, request.requestID))
        }
        let isPast = request.cursor.map { $0 != bounds.latest && statePages.snapshot($0) == nil } ?? false
        return reading(exchange, request.requestID, isPast ? .past : .read) { [self] in
            let (page, cursor) = try page(of: request, at: request.cursor, from: request.position, exchange)
            return try contract.response(to: request, page, at: cursor, now: latest, pollTime)
        }
    }

    /// Some entities of a version, with its cursor; a `cursor` of nil is the latest.
    private func page(
        of request: EntitiesRequest, at cursor: Cursor?, from position: Int, _ exchange: Exchange
    ) throws -> (EntityPage, Cursor) {
        func page(of snapshot: Snapshot) throws -> EntityPage {
            try EntityPage(
                of: snapshot, contract.parts, in: request.store.pointer, from: position,
                bytesMax: Self.entitiesBytesMax, isVisible: request.store.visibility)
        }
        var snapshot = try cursor.map { try self.snapshot(at: $0, exchange) } ?? hub.latest
        let first = try page(of: snapshot)
        // Only a client that begins chooses a version; what is read of an older one is shared with no other client.
        guard cursor == nil, first.isMore else { return (first, snapshot.cursor) }
        snapshot = statePages.shared(snapshot, at: schedule.now())
        return (try page(of: snapshot), snapshot.cursor)
    }

    private func snapshot(at cursor: Cursor, _ exchange: Exchange) throws -> Snapshot {
        if let kept = statePages.snapshot(cursor) { return kept }
        let latest = hub.latest
        if latest.cursor == cursor { return latest }
        let path = hub.path(to: cursor.version)
        guard let past = try pastState(at: cursor, path, isOver: { exchange.isOver }) else { throw Problem.offsetGone }
        return past
    }

    private static let entitiesBytesMax = 256 << 10
}

extension ChangesRequest {
    var needsState: Bool { if case .state? = durable?.content { true } else { false } }

    fileprivate var scopes: PointerFilter { filter.paths ?? PointerFilter(store.pointer) }
}
