internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateStore
internal import Synchronization

extension RequestHandler {
    func carryOut(_ request: ForkRequest, _ exchange: Exchange) throws -> Reply {
        guard let forks else { throw Contract.noSuchRoute }
        switch request {
        case .make(let order): return try make(order, forks, exchange)
        case .list(let style):
            return .now(contract.response(toList: forks.descriptions, style: style, latest: latest))
        case .describe(let name, let style):
            guard let description = forks.description(name) else { throw Problem.noSuchFork }
            return .now(contract.response(to: description, style: style, latest: latest))
        case .remove(let name):
            guard forks.remove(name) else { throw Problem.noSuchFork }
            return .now(Response(status: .noContent, fields: [.stateCursor: latest.description]))
        case .inside(let name, let request):
            guard forks.carryOut(request, in: name, exchange) else { throw Problem.noSuchFork }
            return .waiting()
        }
    }

    private static let forkSlice = Duration.milliseconds(20)

    private func make(_ order: ForkOrder, _ forks: Forks, _ exchange: Exchange) throws -> Reply {
        guard !isDraining.load(ordering: .acquiring) else { throw Problem.draining }
        let to = order.to ?? latest
        let from = try order.from ?? beginning(of: order) ?? to
        guard from.version <= to.version else {
            throw Problem(
                .unprocessableContent, "invalid-request", "the body does not say what to do: from is behind to",
                parts: [("/from", "expected a cursor before that of to")])
        }
        let count = to.version - from.version + Version(order.insertions.count)
        guard count <= Version(forks.settings.forkCommitsMax) else {
            throw Problem.forkTooLong(forks.settings.forkCommitsMax)
        }
        let place = try forks.begin(for: exchange.client)
        // One thread after the other uses it.
        let progress = Mutex<(advance: Fork.Advance?, time: Duration)>((nil, .zero))
        return reading(exchange, .fork) { [self] in
            func isOver() -> Bool {
                exchange.isOver || exchange.hasHungUp || isDraining.load(ordering: .relaxed)
                    || endedAccess(of: exchange) != nil
            }
            do {
                // Where the client has gone nobody gets it, but the transport waits for an answer.
                guard !isOver() else { throw Problem.draining }
                var (known, time) = progress.withLock(\.self)
                let begun = platform.now()
                let advance = try known ?? begin(order, from: from, to: to, place)
                let fork = try advance { platform.now() - begun < Self.forkSlice && !isOver() }
                time += platform.now() - begun
                guard let fork else {
                    guard time <= Forks.runTimeMax else { throw Problem.forkTakesLong(Forks.runTimeMax) }
                    progress.withLock { [time] in $0 = (advance, time) }
                    return nil
                }
                let description = forks.add(fork, from: from, to: to, at: place) { store, name in
                    RequestHandler(
                        authenticator: authenticator, contract: contract.ofFork(named: name), store: store,
                        journal: store.journal, platform: platform, gauges: gauges, slowReads: slowReads,
                        metrics: ServerMetrics(settings: metrics.settings), logger: logger)
                }
                return contract.response(to: description, isNew: true, style: order.style, latest: latest)
            } catch {
                place.end()
                throw error
            }
        }
    }

    private func begin(_ order: ForkOrder, from: Cursor, to: Cursor, _ place: Forks.Place) throws -> Fork.Advance {
        try store.fork(
            try pastState(from.version).saved(), at: from, through: to.version, skipping: order.skipped,
            inserting: order.insertions, time: platform.time()
        ) { [weak place] in
            place?.take($0) ?? false
        } commits: { [self] after in
            // They may be dropped while the fork is made.
            guard let commits = try store.page(ChangesQuery(since: after, limit: 1000))?.commits, !commits.isEmpty
            else {
                throw Problem.versionGone(oldest: try journal?.oldestState() ?? hub.oldestState)
            }
            return commits
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
                    parts: [("/skip/\(index)", "no commit with this ID is kept")])
            }
            versions.append(version - 1)
        }
        return versions.min().map { Cursor(latest.epoch, $0) }
    }

    /// Looks at O(log n) past states, each as a GET with `version` does.
    func bisect(_ request: BisectRequest, _ exchange: Exchange) -> Reply {
        let latest = latest
        return reading(exchange, .past) { [self] in
            let oldest = try journal.map { max(try $0.oldestState(), hub.bounds.oldest) } ?? hub.bounds.oldest
            let low = request.from?.version ?? oldest
            guard low >= oldest else { throw Problem.versionGone(oldest: oldest) }
            let (found, looks) = try Bisection.first(after: low, through: request.to?.version ?? latest.version) {
                version in
                // The client has gone: what is found then is of no use.
                guard !exchange.isOver else { return true }
                let value = try pastState(version, for: exchange).encoded(.pointer(request.test.pointer)).map {
                    try JSONValue(parsing: Array($0.json), depthMax: 1000)
                }
                return request.test.holds(for: value)
            }
            let commit: Result<Commit, Bisection.Miss>
            switch found {
            case .failure(let miss): commit = .failure(miss)
            case .success(let version):
                guard let first = try store.page(ChangesQuery(since: version - 1, limit: 1))?.commits.first else {
                    throw Problem.versionGone(oldest: oldest)
                }
                commit = .success(first)
            }
            return contract.response(to: request, found: commit, looks: looks, latest: latest)
        }
    }
}
