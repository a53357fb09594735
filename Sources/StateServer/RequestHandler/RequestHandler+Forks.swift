internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateStore
internal import Synchronization

extension RequestHandler {
    func carryOut(_ request: ForkRequest, _ exchange: Exchange, _ requestID: RequestID) -> Reply {
        guard let forks else { return .now(respond(Contract.noSuchRoute, requestID)) }
        switch request {
        case .make(let order): return make(order, forks, exchange, requestID)
        case .list(let style):
            return .now(contract.response(toList: forks.descriptions, style: style, latest: latest))
        case .describe(let name, let style):
            guard let description = forks.description(name) else { return .now(respond(.noSuchFork, requestID)) }
            return .now(contract.response(to: description, style: style, latest: latest))
        case .remove(let name):
            guard forks.remove(name) else { return .now(respond(.noSuchFork, requestID)) }
            return .now(Response(status: .noContent, fields: [.stateCursor: latest.description]))
        case .inside(let name, let request):
            guard forks.carryOut(request, in: name, exchange) else { return .now(respond(.noSuchFork, requestID)) }
            return .waiting()
        }
    }

    private func make(
        _ order: ForkOrder, _ forks: Forks, _ exchange: Exchange, _ requestID: RequestID
    ) -> Reply {
        guard !isDraining.load(ordering: .acquiring) else { return .now(respond(.draining, requestID)) }
        let to = order.to ?? latest
        let from: Cursor
        do {
            from = try order.from ?? beginning(of: order) ?? to
        } catch {
            return .now(failedReading(requestID, error))
        }
        guard from.version <= to.version else { return .now(respond(.forkBackwards, requestID)) }
        let count = to.version - from.version + Version(order.insertions.count)
        guard count <= Version(forks.settings.forkCommitsMax) else {
            return .now(respond(.forkTooLong(forks.settings.forkCommitsMax), requestID))
        }
        let place: Forks.Place
        switch forks.begin(for: exchange.client) {
        case .failure(let refusal): return .now(respond(forks.problem(of: refusal), requestID))
        case .success(let taken): place = taken
        }
        if let refusal = slowReads.begin(exchange, isAbandonable: true) {
            forks.abandon(place)
            return .now(respond(.tooManyReads(refusal), requestID))
        }
        let draft = ForkDraft(from: from, to: to, place: place, timeMax: Forks.runTimeMax) { [self] in
            try begin(order, from: from, to: to, place)
        }
        advance(draft, forks, exchange, requestID, order.style)
        return .waiting()
    }

    private func begin(_ order: ForkOrder, from: Cursor, to: Cursor, _ place: Forks.Place) throws -> Fork.Advance {
        guard let state = try pastState(at: from, hub.path(to: from.version), isOver: { false }) else {
            throw Problem.versionGone(oldest: try journal?.oldestState() ?? hub.oldestState)
        }
        let source = Fork.Source(
            state: try state.saved(), cursor: from, last: to.version, skipped: order.skipped,
            insertions: order.insertions.map {
                .init(after: $0.after.version, type: $0.type, id: $0.id, action: $0.action)
            }, time: schedule.time())
        return try store.fork(source) { [weak place] in
            place?.take($0) ?? false
        } commits: { [self] after in
            // They may be dropped while the fork is made.
            guard let commits = try page(ChangesQuery(since: after, limit: 1000))?.commits, !commits.isEmpty else {
                throw Problem.versionGone(oldest: try journal?.oldestState() ?? hub.oldestState)
            }
            return commits
        }
    }

    private func advance(
        _ draft: ForkDraft, _ forks: Forks, _ exchange: Exchange, _ requestID: RequestID, _ style: Style
    ) {
        schedule.slow(.fork, exchange.client) { [self] in
            let response: Response
            do {
                let isOver = { [self] in
                    exchange.isOver || exchange.hasHungUp || isDraining.load(ordering: .relaxed)
                        || endedAccess(of: exchange) != nil
                }
                guard let fork = try draft.advance(schedule.now, isOver: isOver) else {
                    guard isOver() else { return advance(draft, forks, exchange, requestID, style) }
                    slowReads.end(exchange)
                    forks.abandon(draft.place)
                    // Where the client has gone nobody gets it, but the transport waits for an answer.
                    return answer(exchange, respond(endedAccess(of: exchange) ?? .draining, requestID))
                }
                let description = forks.add(fork, from: draft.from, to: draft.to, at: draft.place) { store, name in
                    handler(of: store, named: name)
                }
                response = contract.response(toNew: description, style: style, latest: latest)
            } catch {
                forks.abandon(draft.place)
                response =
                    error is Fork.NoRoom
                    ? respond(.memoryExhausted, requestID)
                    : (error as? Problem).map { respond($0, requestID) } ?? failedReading(requestID, error)
            }
            slowReads.end(exchange)
            answer(exchange, response)
        }
    }

    /// The cursor before the first commit that is left out, or behind which an action is added; nil for a plain copy.
    private func beginning(of order: ForkOrder) throws -> Cursor? {
        var versions = order.insertions.map(\.after.version)
        for (index, id) in order.skipped.enumerated() {
            let cursor = Cursor(text: id).flatMap { $0.epoch == latest.epoch ? $0.version : nil }
            guard
                let version = try cursor ?? (hub.commit(id: id, by: nil) ?? journal?.commit(id: id, by: nil))?.version,
                version > 0
            else {
                throw Problem(
                    .unprocessableContent, "invalid-request",
                    "the body does not say what to do: no commit with an ID in skip is kept",
                    parts: [.init("/skip/\(index)", "no commit with this ID is kept")])
            }
            versions.append(version - 1)
        }
        return versions.min().map { Cursor(latest.epoch, $0) }
    }

    private func handler(of store: UntypedStore, named name: String) -> RequestHandler {
        RequestHandler(
            authenticator: authenticator, contract: contract.ofFork(named: name), store: store, journal: store.journal,
            schedule: schedule, heartbeat: heartbeat, streamLifetime: streamLifetime, gauges: gauges,
            slowReads: slowReads, logger: logger)
    }
}

extension Forks {
    fileprivate func problem(of refusal: WatchRefusal) -> Problem {
        switch refusal {
        case .all, .queries, .views, .memory: .tooManyForks(settings.forksMax, isOwn: false)
        case .client: .tooManyForks(countPerClientMax, isOwn: true)
        }
    }
}

extension Problem {
    static let forkBackwards = Problem(
        .unprocessableContent, "invalid-request", "the body does not say what to do: from is behind to",
        parts: [.init("/from", "expected a cursor before that of to")])
}

extension RequestHandler {
    /// Looks at O(log n) past states, each as a GET with `version` does.
    func bisect(_ request: BisectRequest, _ exchange: Exchange) -> Reply {
        let latest = latest
        return reading(exchange, request.requestID, .past) { [self] in
            let oldest = try journal.map { max(try $0.oldestState(), hub.bounds.oldest) } ?? hub.bounds.oldest
            let low = request.from?.version ?? oldest
            guard low >= oldest else { throw Problem.versionGone(oldest: oldest) }
            let (found, looks) = try Bisection.first(after: low, through: request.to?.version ?? latest.version) {
                version in
                // The client may have gone: what is found then is of no use.
                guard !exchange.isOver else { return true }
                let cursor = Cursor(latest.epoch, version)
                guard let state = try pastState(at: cursor, hub.path(to: version), isOver: { exchange.isOver }) else {
                    throw Problem.versionGone(oldest: oldest)
                }
                let value = try state.encoded(.pointer(request.test.pointer)).map {
                    try JSONValue(parsing: Array($0.json), depthMax: 1000)
                }
                return request.test.holds(for: value)
            }
            switch found {
            case .failure(let miss):
                return contract.response(to: request, found: .failure(miss), looks: looks, latest: latest)
            case .success(let version):
                guard let commit = try page(ChangesQuery(since: version - 1, limit: 1))?.commits.first else {
                    throw Problem.versionGone(oldest: oldest)
                }
                return contract.response(to: request, found: .success(commit), looks: looks, latest: latest)
            }
        }
    }
}
