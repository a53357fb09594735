internal import HTTPMessages
internal import MicroHTTP
internal import StateHTTP
internal import StateStore
internal import Synchronization

/// Actions that another server of the cluster is to carry out.
extension RequestHandler {
    /// Sends a request on to the server that writes; nil where this server is to carry it out.
    ///
    /// A request goes one hop, and dry runs stay here. What the other server has surely not carried out is carried out here:
    /// the journal takes the commits of any server.
    func forward(
        _ dispatch: DispatchRequest, _ request: Request, _ exchange: Exchange, _ name: RequestName
    ) -> Reply? {
        if let cluster, dispatch.commits, cluster.staleness != nil { return .now(respond(.notDurable, name.id)) }
        guard let cluster, let address = cluster.target, dispatch.commits, cluster.origin(of: request) == nil,
            !isDraining.load(ordering: .acquiring)
        else { return dispatch.commits ? refuseWhereLost(name) : nil }
        // Many lines take their time.
        let wait = (dispatch.wait?.duration ?? .zero) + .milliseconds(request.body.count / 1000)
        cluster.send(request, to: address, of: exchange.client, waiting: wait) { [self] outcome in
            metrics.count(outcome)
            switch outcome {
            case .answered(let response, let cursor):
                answer(exchange, response, having: cursor?.version ?? 0, until: schedule.now() + .seconds(2))
            // What one server has ended with, and has not been answered now, is not tried here.
            case .unknown where !dispatch.isIdempotent || isSuspected(dispatch):
                answer(exchange, respond(.outcomeUnknown(id: dispatch.clientID), name.id))
            case .notCarriedOut, .unknown:
                if let refusal = refuseWhereLost(name) { return complete(refusal, exchange) }
                complete(self.dispatch(dispatch, exchange, name), exchange)
                store.flush()
            }
        }
        return .working()
    }

    /// The refusal of an action where this server does not know the newest state and never will.
    private func refuseWhereLost(_ name: RequestName) -> Reply? {
        guard cluster != nil, let lost = store.lostHistory else { return nil }
        return .now(respond(.domainFailed(lost.failure), name.id))
    }

    /// For how long this server may have missed what others acknowledge; nil while it misses nothing.
    var staleness: Duration? {
        guard let cluster else { return nil }
        return cluster.staleness ?? store.lostHistory.map { schedule.now() - $0.since }
    }

    private func isSuspected(_ dispatch: DispatchRequest) -> Bool {
        guard let quarantine, case .one(let transaction) = dispatch.content else { return false }
        return quarantine.suspects(transaction)
    }

    /// Answers once this server has a version itself, so that the client's next read at this server has what the answer says.
    private func answer(_ exchange: Exchange, _ response: Response, having version: Version, until end: Instant) {
        guard latest.version < version, schedule.now() < end, store.lostHistory == nil else {
            return answer(exchange, response)
        }
        schedule.after(.microseconds(200)) { [self] in
            answer(exchange, response, having: version, until: end)
        }
    }

    /// Answers a request that the loop does not hold any more.
    func complete(_ reply: consuming Reply, _ exchange: Exchange) {
        switch consume reply {
        case .now(let response): answer(exchange, response)
        case .reusable(let response): answer(exchange, response)
        case .working(let time):
            guard let time else { break }
            schedule.after(time) { [self] in
                guard !exchange.isOver, let response = expire(exchange, .deadline) else { return }
                answer(exchange, response)
            }
        // Only a GET is deferred, waits or streams.
        default: break
        }
    }
}
