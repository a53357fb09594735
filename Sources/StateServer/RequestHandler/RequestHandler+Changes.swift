internal import HTTPMessages
internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateStore
internal import Synchronization

extension RequestHandler {
    func changes(_ request: ChangesRequest, _ exchange: Exchange) -> Reply {
        let bounds = hub.bounds
        let since: Version
        switch request.since {
        case .now: return .now(response(to: request, emptyAt: bounds.latest))
        case .oldest: since = bounds.oldest
        case .never: return initialDifference(request, exchange)
        case .cursor(let cursor):
            guard cursor.epoch == bounds.latest.epoch else { return lost(.lost, request, exchange) }
            if isBehind(cursor.version, bounds.latest) {
                return .now(respond(.behind(bounds.latest), request.requestID))
            }
            since = cursor.version
        }
        let query = request.query(since: since)
        var following = Following.nothing(latest: bounds.latest)
        if let wait = request.wait, !isDraining.load(ordering: .acquiring) {
            let subject = Watch.Subject.changes(query.filter, limit: query.limit, weightMax: query.weightMax)
            let watch = watch(
                exchange, .changes(request), subject, examinedVersion: since, debounce: request.debounce)
            prepareStatePages(for: request)
            let watching: Watching
            (following, watching) = hub.watch(watch, query)
            if let reply = reply(to: watching, watch, wait, request.requestID) { return reply }
            if case .long = following { return examine(watch, wait, request.requestID, exchange) }
        } else {
            following = hub.following(query)
        }
        switch following {
        case .page(let page) where request.needsState || page.weight > Self.quickBytesMax:
            return reading(exchange, request.requestID) { [self] in try response(to: request, page, since: since) }
        case .page(let page): return .now(quickResponse(to: request, page, since: since))
        case .nothing(let latest): return .now(response(to: request, emptyAt: latest))
        // The oldest version has moved on since the bounds were read. The client has named no cursor, so try again.
        case .expired where request.since == .oldest: return changes(request, exchange)
        case .expired: return lost(.expired, request, exchange)
        case .aboveLatest: return lost(.lost, request, exchange)
        // After that many commits, the list of all entities is the shorter answer.
        case .inJournal where request.form.isDifference: return initialDifference(request, exchange)
        case .inJournal, .long: return search(request, from: since, exchange) { [self] in try page($0) }
        }
    }

    func earlier(_ request: ChangesRequest, before cursor: Cursor?, _ exchange: Exchange) -> Reply {
        let bounds = hub.bounds
        if let cursor, cursor.epoch != bounds.latest.epoch || cursor.version > bounds.latest.version {
            return isBehind(cursor.version, bounds.latest) && cursor.epoch == bounds.latest.epoch
                ? .now(respond(.behind(bounds.latest), request.requestID)) : .now(lost(.lost, request))
        }
        return search(request, from: cursor?.version ?? bounds.latest.version + 1, exchange) { [self] query in
            var earlier = EarlierChanges(before: query.since, query)
            return try earlier.page(in: bounds, page)
        }
    }

    /// Searches for a second of processor time and ten seconds at most, in turn with other clients' slow reads.
    private func search(
        _ request: ChangesRequest, from start: Version, _ exchange: Exchange,
        _ look: @escaping @Sendable (ChangesQuery) throws -> ChangesPage?
    ) -> Reply {
        let search = Mutex<(found: ChangesPage?, left: Duration)>((nil, .seconds(1)))
        let (end, whole) = (schedule.now() + .seconds(10), request.query(since: start))
        return reading(exchange, request.requestID) { [self] in
            let (begun, (found, left)) = (Schedule.processorTime(), search.withLock(\.self))
            var query = whole
            if let found {
                query.since = found.next
                (query.limit, query.weightMax) = (whole.limit - found.commits.count, whole.weightMax - found.weight)
            }
            do {
                var page = try look(query)
                page?.commits.insert(contentsOf: found?.commits ?? [], at: 0)
                guard let page, page.isMore, page.commits.count < whole.limit, page.weight < whole.weightMax,
                    case let rest = left - (Schedule.processorTime() - begun), rest > .zero, schedule.now() < end
                else { return try response(to: request, page ?? found, since: start) }
                search.withLock { $0 = (page, rest) }
                return nil
            } catch {
                // The next page begins at what cannot be read, and reports it.
                guard let found else { throw error }
                return try response(to: request, found, since: start)
            }
        }
    }

    /// Whether another server may have a version that this one does not have yet; without a shared history it is lost.
    func isBehind(_ version: Version, _ latest: Cursor) -> Bool {
        version > latest.version && journal?.isShared == true
    }

    private func examine(_ watch: Watch, _ wait: Wait, _ requestID: RequestID, _ exchange: Exchange) -> Reply {
        if let refusal = slowReads.begin(exchange, isAbandonable: false) {
            return .now(respond(.tooManyReads(refusal), requestID))
        }
        if let refusal = hub.register(watch) {
            slowReads.end(exchange)
            return .now(respond(.tooManyWaiters(refusal), requestID))
        }
        schedule.slow(.read, exchange.client) { [self] in
            let found = hub.examine(exchange.id)
            // The client may ask again as soon as it has the answer, and this request then counts no more.
            slowReads.end(exchange)
            guard let found, let watched = watch.request as? WatchedRequest else { return }
            answer(
                exchange, endedAccess(of: exchange).map { respond($0, requestID) } ?? slowResponse(to: watched, found))
        }
        metrics.waitBegan(watch.route)
        return .waiting(atMost: time(of: wait))
    }

    func page(_ query: ChangesQuery) throws -> ChangesPage? { try store.page(query) }

    private func response(to request: ChangesRequest, _ page: ChangesPage?, since version: Version) throws -> Response {
        if let page { return try response(to: request, page, since: version) }
        return request.form.isDifference
            ? try contract.initialDifference(to: request, in: hub.latest) : lost(.expired, request)
    }

    func slowResponse(to request: ChangesRequest, after version: Version) -> Response {
        do {
            return try response(to: request, page(request.query(since: version)), since: version)
        } catch {
            return failedReading(request.requestID, error)
        }
    }

    private func initialDifference(_ request: ChangesRequest, _ exchange: Exchange) -> Reply {
        reading(exchange, request.requestID) { [self] in
            try contract.initialDifference(to: request, in: hub.latest)
        }
    }

    private func lost(_ code: LostCursor, _ request: ChangesRequest, _ exchange: Exchange) -> Reply {
        if request.form.isDifference { return initialDifference(request, exchange) }
        guard request.onLost == .snapshot else { return .now(lost(code, request)) }
        return reading(exchange, request.requestID) { [self] in lost(code, request) }
    }

    private func lost(_ code: LostCursor, _ request: ChangesRequest) -> Response {
        if request.durable != nil { return respond(.offsetGone, request.requestID) }
        let (oldest, latest) = (hub.bounds.oldest, hub.latest)
        return contract.response(
            to: request, lost: code, bounds: HistoryBounds(latest: latest.cursor, oldest: oldest)
        ) { try request.store.state(in: latest) }
    }
}

extension UntypedStore {
    /// The result is nil if the commits are no longer kept.
    func page(_ query: ChangesQuery) throws -> ChangesPage? {
        switch hub.examined(query) {
        case .page(let page): page
        case .nothing(let latest), .aboveLatest(let latest): ChangesPage(emptyAt: latest)
        case .inJournal(let latest), .long(let latest): try journal?.page(query, latest: latest)
        case .expired: nil
        }
    }
}

extension ChangesRequest.Form {
    var isDifference: Bool { if case .difference = self { true } else { false } }
}
