internal import HTTPMessages
internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// Requests for commits.
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
            since = cursor.version
        }
        let query = request.query(since: since)
        var following = Following.nothing(latest: bounds.latest)
        if let wait = request.wait, !isDraining.load(ordering: .acquiring) {
            let subject = Watch.Subject.changes(query.filter, limit: query.limit, weightMax: query.weightMax)
            let watch = watch(exchange, .changes(request), subject, debounce: request.debounce)
            prepareFeed(for: request)
            let watching: Watching
            (following, watching) = hub.watch(watch, query)
            if let reply = reply(to: watching, watch, wait, request.requestID) { return reply }
        } else {
            following = hub.following(query)
        }
        switch following {
        case .page(let page)
        where request.needsState
            || page.weight > (request.coding == nil ? Self.quickBytesMax : Self.quickCompressedBytesMax):
            return reading(exchange, request.requestID) { [self] in try response(to: request, page, since: since) }
        case .page(let page): return .now(quickResponse(to: request, page, since: since))
        case .nothing(let latest): return .now(response(to: request, emptyAt: latest))
        // The oldest version has moved on since the bounds were read. The client has named no cursor, so try again.
        case .expired where request.since == .oldest: return changes(request, exchange)
        case .expired: return lost(.expired, request, exchange)
        case .aboveLatest: return lost(.lost, request, exchange)
        // After that many commits, the list of all entities is the shorter answer.
        case .inJournal where request.form.isDifference: return initialDifference(request, exchange)
        case .inJournal(let latest):
            return reading(exchange, request.requestID) { [self] in try page(for: request, since: since, latest) }
        }
    }

    /// The answer with the commits after a version from the journal, or for a cursor that has expired.
    private func page(for request: ChangesRequest, since version: Version, _ latest: Cursor) throws -> Response {
        guard let page = try journal?.page(request.query(since: version), latest: latest) else {
            return request.form.isDifference
                ? try contract.initialDifference(to: request, in: hub.latest) : lost(.expired, request)
        }
        return try response(to: request, page, since: version)
    }

    /// The answer to a request that has waited, with the commits after a version from the journal.
    func page(for request: ChangesRequest, since version: Version) -> Response {
        do {
            return try page(for: request, since: version, latest)
        } catch {
            return failedReading(request.requestID, error)
        }
    }

    /// Answers with all entities as `initial`.
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

extension ChangesRequest.Form {
    var isDifference: Bool { if case .difference = self { true } else { false } }
}
