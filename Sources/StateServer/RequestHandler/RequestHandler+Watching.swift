internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateHTTP
internal import StateStore
internal import Synchronization

extension RequestHandler: WatchReceiver {
    func receive(_ delivery: Delivery) {
        let watched = delivery.watched
        switch delivery.action {
        case .answer, .answerTimedOut:
            for group in watched.byOptions { answer(group, delivery.change) }
        case .startTimer(let time):
            let ids = watched.map(\.exchange.id)
            schedule.after(time) { [hub] in hub.timers(ids) }
        case .prepare(let chunk):
            guard case .notInMemory(let since) = delivery.change else {
                for request in watched { prepare(request, chunk) }
                break
            }
            for group in watched.byOptions { prepare(group, chunk, after: since) }
        case .send(let chunk): for group in watched.byOptions { send(chunk, delivery.change, to: group) }
        case .heartbeat(let version): for group in watched.byOptions { sendHeartbeat(version, to: group) }
        case .end: end(watched)
        case .nothing, .examine: break
        }
    }

    private func answer(_ group: [WatchedRequest], _ change: Delivery.Change) {
        switch (group.first?.kind, change) {
        case (.read(let request)?, .value(let reading)) where reading.encoded != nil:
            answer(group, with: contract.response(to: request, reading))
        case (.changes(let request)?, .changes(let page, let since)) where !isLong(page, since: since, for: request):
            answer(group, Result { try response(to: request, page, since: since) })
        case (.changes(let request)?, .changes(let page, let since)):
            let shared = Shared<Result<Response, any Error>>()
            slowly(group) { [self] group in
                answer(group, shared.made { Result { try response(to: request, page, since: since) } })
            }
        case _:
            // A problem carries the name of its request, and an answer with the latest value depends on the selection.
            for request in group { answer(request, change) }
        }
    }

    /// Does slow work for requests, those of one client at a time; the share of one client does not delay those of another.
    func slowly(_ group: [WatchedRequest], _ work: @escaping @Sendable ([WatchedRequest]) -> Void) {
        for (client, group) in Dictionary(grouping: group, by: \.exchange.client) {
            schedule.slow(.read, client) {
                let open = group.filter { !$0.exchange.isOver && !self.refuseEndedAccess(of: $0.exchange) }
                if !open.isEmpty { work(open) }
            }
        }
    }

    private func answer(_ group: [WatchedRequest], _ made: Result<Response, any Error>) {
        switch made {
        case .success(let response): answer(group, with: response)
        case .failure(let error):
            for request in group {
                answer(request.exchange, closing(failedReading(requestID(of: request.exchange), error)))
            }
        }
    }

    private func answer(_ group: [WatchedRequest], with response: Response) {
        guard let first = group.first else { return }
        var response = closing(response)
        finish(&response, first.exchange.trace)
        Exchange.answer(group.map(\.exchange), with: response)
    }

    private func answer(_ watched: WatchedRequest, _ change: Delivery.Change) {
        if let response = response(to: watched, change) { return answer(watched.exchange, response) }
        // Nothing is read for a client that has gone.
        guard !watched.exchange.isOver else { return }
        schedule.slow(.read, watched.exchange.client) { [self] in
            guard !watched.exchange.isOver, !refuseEndedAccess(of: watched.exchange) else { return }
            answer(watched.exchange, evaluating(for: watched.exchange) { slowResponse(to: watched, change) })
        }
    }

    private func refuseEndedAccess(of exchange: Exchange) -> Bool {
        guard let problem = endedAccess(of: exchange) else { return false }
        answer(exchange, respond(problem, requestID(of: exchange)))
        return true
    }

    func slowResponse(to watched: WatchedRequest, _ change: Delivery.Change) -> Response {
        switch (watched.kind, change) {
        case (.read(let request), _): closing(answerNow(request))
        case (.changes(let request), .notInMemory(let since)): closing(slowResponse(to: request, after: since))
        case (.changes(let request), .changes(let page, let since)):
            closing(quickResponse(to: request, page, since: since))
        case (.changes, _), (.stream, _), (.dispatch, _): respond(.ourFault, requestID(of: watched.exchange))
        }
    }

    /// The answer to one request, or nil if its value is over budget, or its commits are in the journal only.
    private func response(to watched: WatchedRequest, _ change: Delivery.Change) -> Response? {
        let response: Response? =
            switch (watched.kind, change) {
            // A query without an answer says why when it is evaluated for the client.
            case (.read(let request), .value(let reading)) where reading.encoded != nil || !request.selection.isQuery:
                contract.response(to: request, reading)
            case (.read(let request), _): answerQuickly(request)
            case (.changes(let request), .changes(let page, let since)) where !isLong(page, since: since, for: request):
                quickResponse(to: request, page, since: since)
            case (.changes(let request), .latest(let latest)): response(to: request, emptyAt: latest)
            case (.changes, _): nil
            case (.dispatch(let request), .outcome(let outcome)): answer(to: request, outcome, watched.exchange)
            case (.dispatch, _): respond(.ourFault, requestID(of: watched.exchange))
            case (.stream(let request), _): respond(.draining, request.requestID)
            }
        return response.map(closing)
    }

    /// Ends the streams and waits of clients whose access has ended, in O(n) of the watches.
    func endWatches() {
        // The answers that the transport keeps were made for a client that may no longer see them.
        hub.endGeneration()
        backups?.endWithoutAccess()
        forks?.endWatches()
        for case let watched as WatchedRequest in hub.watchedRequests where watched.access.hasEnded {
            let exchange = watched.exchange
            switch watched.kind {
            case .dispatch:
                // The action was taken while the client had access, so it gets the outcome.
                if let response = expire(exchange, .deadline) { answer(exchange, response) }
            case .read, .changes:
                if hub.end(exchange.id) != nil {
                    answer(exchange, respond(authenticator.problemOfEndedAccess, requestID(of: exchange)))
                }
            case .stream: if hub.end(exchange.id) != nil { end([watched]) }
            }
        }
    }

    /// The response that ends an exchange, or nil if another thread is about to answer the exchange.
    func expire(_ exchange: Exchange, _ expiry: Expiry) -> Response? {
        if case .deadline = expiry, isComplete(exchange) { return nil }
        // The connection of a backup is cut off, and gets no end of a body that is not complete.
        if backups?.end(exchange) == true { return nil }
        guard let delivery = hub.end(exchange.id) else {
            if case .hangUp = expiry, forks?.hangUp(exchange) == true { return Response(status: .ok) }
            // The exchange has no watch: it is work that outlasts the grace time, or another thread answers it now.
            switch expiry {
            case .stopping: return respond(.draining, requestID(of: exchange))
            // The work of a client that has gone is not begun.
            case .hangUp where slowReads.isAbandonable(exchange.id): return Response(status: .ok)
            case .hangUp, .deadline: return nil
            }
        }
        if case .outcome(.committed(let receipt)?) = delivery.change {
            store.stopAwaitingCascade(of: receipt.version, exchange.id)
        }
        guard delivery.action != .end, let watched = delivery.watched.first else { return Response(status: .ok) }
        if let response = response(to: watched, delivery.change) { return response }
        if case .stopping = expiry { return slowResponse(to: watched, delivery.change) }
        answer(watched, delivery.change)
        return nil
    }
}
