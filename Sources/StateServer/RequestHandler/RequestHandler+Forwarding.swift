internal import HTTPMessages
internal import MicroHTTP
internal import StateHTTP
internal import StateStore
internal import Synchronization

extension RequestHandler {
    /// Sends a request on to the server that writes, over one hop; nil for one that the caller carries out.
    ///
    /// An action that the other server has surely not carried out is carried out here: the journal takes the commits of
    /// any server. A server that is lost meanwhile may have ended by the action, which is not repeated here at once.
    func forward(
        _ dispatch: DispatchRequest, _ request: Request, _ exchange: Exchange, in cluster: Cluster
    ) -> Reply? {
        guard cluster.staleness == nil else { return .now(respond(.notDurable, requestID(of: exchange))) }
        guard let address = cluster.target, cluster.origin(of: request) == nil, !isDraining.load(ordering: .acquiring)
        else { return carryOut(dispatch, exchange) }
        // Many lines take their time.
        let wait = (dispatch.wait?.duration ?? .zero) + .milliseconds(request.body.count / 1000)
        cluster.send(request, to: address, of: exchange.client, waiting: wait) { [self] outcome in
            metrics.count(outcome)
            switch outcome {
            case .answered(let response, let cursor):
                answer(exchange, response, having: cursor?.version ?? 0, until: schedule.now() + .seconds(2))
            case .notCarriedOut:
                complete(carryOut(dispatch, exchange), exchange)
                store.flush()
            case .unknown where dispatch.isIdempotent, .ended:
                complete(carryOut(dispatch, exchange, isSuspected: true), exchange)
                store.flush()
            case .lost, .unknown:
                let response = respond(.outcomeUnknown(id: dispatch.clientID), requestID(of: exchange))
                guard let quarantine else { return answer(exchange, response) }
                quarantine.recordLoss(of: address, during: dispatch) { [self] in
                    // The other servers have the list by then, of which a client may ask any next.
                    schedule.after(.milliseconds(200)) { [self] in answer(exchange, response) }
                }
            }
        }
        return .working()
    }

    private func carryOut(
        _ dispatch: DispatchRequest, _ exchange: Exchange, isSuspected: Bool = false
    ) -> Reply {
        if let refusal = refuseWhereLost(exchange) { return refusal }
        guard let quarantine else { return self.dispatch(dispatch, exchange) }
        let verdict = quarantine.judge(dispatch, isSuspected: isSuspected) { [self] verdict in
            let isAnswered = complete(carryOut(dispatch, exchange, verdict), exchange)
            // It is refused before it has come to the store.
            if isAnswered { quarantine.endTrial(of: dispatch, isReduced: false) }
            store.flush()
        }
        return verdict.map { carryOut(dispatch, exchange, $0) } ?? .working()
    }

    private func carryOut(
        _ dispatch: DispatchRequest, _ exchange: Exchange, _ verdict: Quarantine.Verdict
    ) -> Reply {
        switch (verdict, dispatch.content) {
        // The turn itself refuses an action that is set aside, unless it is committed already.
        case (.passes, _), (.refused, .one): self.dispatch(dispatch, exchange)
        case (.refused(let id), .lines):
            .now(
                contract.response(
                    to: dispatch, outcome: .rejected(.quarantined(id), index: 0), latest: latest,
                    name: name(of: exchange)))
        case (.isTried, _): .now(respond(.outcomeUnknown(id: dispatch.clientID), requestID(of: exchange)))
        case (.unknown, _): .now(respond(.notDurable, requestID(of: exchange)))
        }
    }

    private func refuseWhereLost(_ exchange: Exchange) -> Reply? {
        guard cluster != nil, let lost = store.lostHistory else { return nil }
        return .now(respond(.domainFailed(lost.failure), requestID(of: exchange)))
    }

    var staleness: Duration? {
        guard let cluster else { return nil }
        return cluster.staleness ?? store.lostHistory.map { schedule.now() - $0.since }
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
    @discardableResult
    func complete(_ reply: consuming Reply, _ exchange: Exchange) -> Bool {
        switch consume reply {
        case .now(let response):
            answer(exchange, response)
            return true
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
        return false
    }
}
