internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateStore
internal import Synchronization

/// A request with a watch in the hub: an object, because a delivery carries thousands of them.
final class WatchedRequest: Sendable {
    enum Kind: Sendable {
        case read(ReadRequest)
        case changes(ChangesRequest)
        case stream(StreamRequest)
        case dispatch(DispatchRequest)
    }

    /// The request without what decides no byte of its answers; a parameter forgotten here is compared, at a cost.
    struct Options: Hashable {
        let read: ReadRequest?
        let changes: ChangesRequest?
        let format: StreamRequest.Format?
        let trace: String?
    }

    let exchange: Exchange
    let kind: Kind
    let sentEntities: Atomic<Int>

    init(_ exchange: Exchange, _ kind: Kind) {
        self.exchange = exchange
        self.kind = kind
        sentEntities = Atomic(kind.changes?.durable?.position ?? 0)
    }

    var options: Options {
        var (read, changes) = (kind.read, kind.changes)
        var format: StreamRequest.Format?
        read?.wait?.duration = .zero
        read?.debounce = nil
        // A delivery says behind which version its commits are.
        changes?.since = .now
        changes?.wait?.duration = .zero
        changes?.debounce = nil
        // Each stream has sent its own part of a snapshot.
        changes?.durable?.position = nil
        if case .stream(let stream) = kind {
            format = stream.format
            read?.known = nil
            read?.atLeast = nil
        }
        return Options(read: read, changes: changes, format: format, trace: exchange.trace?.text)
    }
}

extension WatchedRequest.Kind {
    var read: ReadRequest? {
        if case .read(let request) = self { return request }
        if case .stream(let stream) = self, case .value(let request) = stream.source { return request }
        return nil
    }

    var changes: ChangesRequest? {
        if case .changes(let request) = self { return request }
        if case .stream(let stream) = self, case .changes(let request) = stream.source { return request }
        return nil
    }

    var route: Watch.Route {
        if let read {
            if case .view = read.selection.base { return .view }
            return .state
        }
        return changes.map { $0.form.isDifference ? .state : .changes } ?? .action
    }
}

extension Delivery {
    var watched: [WatchedRequest] {
        requests.map { request in
            guard let watched = request as? WatchedRequest else {
                preconditionFailure("the request handler registers nothing but watched requests")
            }
            return watched
        }
    }
}

extension [WatchedRequest] {
    var byOptions: [[WatchedRequest]] {
        // All requests of a delivery usually have equal options, which needs no dictionary.
        guard let options = first?.options, contains(where: { $0.options != options }) else { return [self] }
        return Array<[WatchedRequest]>(Dictionary(grouping: self, by: \.options).values)
    }
}

extension RequestHandler: WatchReceiver {
    func receive(_ delivery: Delivery) {
        let watched = delivery.watched
        switch delivery.action {
        case .answer, .answerTimedOut:
            for group in watched.byOptions { answer(group, delivery.change) }
        case .startTimer(let time):
            let ids = watched.map(\.exchange.id)
            platform.after(time) { [hub] in hub.timers(ids) }
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
        case (.changes(let request)?, .changes(let page, let since)):
            let shared = Shared<Response>()
            let send = { @Sendable [self] (group: [WatchedRequest]) in
                do {
                    answer(group, with: try shared.made { try response(to: request, page, since: since) })
                } catch {
                    for watched in group { answer(watched.exchange, respond(to: error, watched.exchange)) }
                }
            }
            if isLong(page, since: since, for: request) { slowly(group, send) } else { send(group) }
        case _:
            // A problem carries the name of its request, and an answer with the latest value depends on the selection.
            for request in group { answer(request, change) }
        }
    }

    /// Does slow work for requests, those of one client at a time; the share of one client does not delay those of another.
    func slowly(_ group: [WatchedRequest], _ work: @escaping @Sendable ([WatchedRequest]) -> Void) {
        for (client, group) in Dictionary(grouping: group, by: \.exchange.client) {
            platform.slow(.read, client) {
                let open = group.filter { !$0.exchange.isOver && !self.refuseEndedAccess(of: $0) }
                if !open.isEmpty { work(open) }
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
        let exchange = watched.exchange
        if let response = response(to: watched, change, mayTakeLong: false) { return answer(exchange, response) }
        slowly([watched]) { [self] _ in
            let made = evaluating(for: exchange) { response(to: watched, change, mayTakeLong: true) }
            if let made { answer(exchange, made) }
        }
    }

    func refuseEndedAccess(of watched: WatchedRequest) -> Bool {
        guard let problem = endedAccess(of: watched.exchange) else { return false }
        if case .stream = watched.kind {
            if hub.end(watched.exchange.id) != nil { end([watched]) }
        } else {
            answer(watched.exchange, respond(problem, watched.exchange))
        }
        return true
    }

    /// The answer to a request; nil only where it takes long, and may not.
    func response(to watched: WatchedRequest, _ change: Delivery.Change, mayTakeLong: Bool) -> Response? {
        let exchange = watched.exchange
        do {
            let response: Response? =
                switch (watched.kind, change) {
                // A query without an answer says why when it is evaluated for the client.
                case (.read(let request), .value(let reading))
                where reading.encoded != nil || !request.selection.isQuery:
                    contract.response(to: request, reading)
                case (.read(let request), _): try response(to: request, mayTakeLong: mayTakeLong)
                case (.changes(let request), .latest(let latest)): try response(to: request, emptyAt: latest)
                case (.changes(let request), .changes(let page, let since))
                where mayTakeLong || !isLong(page, since: since, for: request):
                    try response(to: request, page, since: since)
                case (.changes(let request), .notInMemory(let since)) where mayTakeLong:
                    try response(to: request, store.page(request.query(since: since)), since: since)
                case (.changes, _): mayTakeLong ? respond(.ourFault, exchange) : nil
                case (.dispatch(let request), .outcome(let outcome)): answer(to: request, outcome, exchange)
                case (.dispatch, _): respond(.ourFault, exchange)
                case (.stream, _): respond(.draining, exchange)
                }
            return response.map(closing)
        } catch {
            return respond(to: error, exchange)
        }
    }

    /// Ends the streams and waits of clients whose access has ended, in O(n) of the watches.
    func endWatches() {
        // The answers that the transport keeps were made for a client that may no longer see them.
        hub.endGeneration()
        backups?.endWithoutAccess()
        forks?.endWatches()
        for case let watched as WatchedRequest in hub.watchedRequests {
            let exchange = watched.exchange
            guard endedAccess(of: exchange) != nil else { continue }
            switch watched.kind {
            case .dispatch:
                // The action was taken while the client had access, so it gets the outcome.
                if let response = expire(exchange, .deadline) { answer(exchange, response) }
            case .read, .changes:
                if hub.end(exchange.id) != nil {
                    answer(exchange, respond(authenticator.problemOfEndedAccess, exchange))
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
            case .stopping: return respond(.draining, exchange)
            case .hangUp where slowReads.isAbandonable(exchange.id): return Response(status: .ok)
            case .hangUp, .deadline: return nil
            }
        }
        if case .outcome(.committed(let receipt)?) = delivery.change {
            store.stopAwaitingCascade(of: receipt.version, exchange.id)
        }
        guard delivery.action != .end, let watched = delivery.watched.first else { return Response(status: .ok) }
        let mayTakeLong = if case .stopping = expiry { true } else { false }
        let response = response(to: watched, delivery.change, mayTakeLong: mayTakeLong)
        if response == nil { answer(watched, delivery.change) }
        return response
    }
}
