package import HTTPMessages
internal import HTTPTypes
package import MicroHTTP
internal import Synchronization

/// The transport without sockets, which hands requests to a server's handlers; any thread may call any method.
///
/// Answers, waits, deadlines and streams are those of the sockets; limits such as the longest body do not apply.
package final class InProcessTransport: AnswerSink {
    package enum Event: Sendable {
        case answer(Response)
        case head(Response)
        case chunk([UInt8])
        case end
    }

    typealias Timer = @Sendable (Duration, @escaping @Sendable () -> Void) -> Void

    private struct State {
        var clients: [UInt64: Client] = [:]
        var lastNumber: UInt64
    }

    private struct Client {
        let take: @Sendable (Event) -> Void
        var deferred: Request?
        var isResumed = false
    }

    private let handlers: Handlers
    private let after: Timer
    private let state: Mutex<State>

    /// No other transport of the same handlers may use the numbers of exchanges from `firstNumber` on.
    init(_ handlers: Handlers, firstNumber: UInt64, after: @escaping Timer) {
        self.handlers = handlers
        self.after = after
        state = Mutex(State(lastNumber: firstNumber - 1))
    }

    /// Sends a request; `client` takes the events of the answer, on any thread, one call after the other.
    @discardableResult
    package func send(_ request: Request, to client: @escaping @Sendable (Event) -> Void) -> Exchange {
        let number = state.withLock { state in
            state.lastNumber += 1
            // An answer may come before the handler returns.
            state.clients[state.lastNumber] = Client(take: client)
            return state.lastNumber
        }
        let exchange = Exchange(id: number, client: request.client, sink: self)
        receive(request, exchange)
        return exchange
    }

    private func receive(_ request: Request, _ exchange: Exchange) {
        let expireAfter = { [self] (time: Duration?) in
            if let time { after(time) { [weak self] in self?.expire(exchange) } }
        }
        var isStream = false
        switch handlers.receive(request, exchange) {
        case .now(let response): exchange.answer(response)
        case .reusable(let response): exchange.answer(response)
        case .working(let time): expireAfter(time)
        case .waiting(let time): expireAfter(time)
        case .deferred:
            let isResumed = state.withLock { state in
                // The exchange may have been answered already.
                guard let isResumed = state.clients[exchange.id]?.isResumed else { return false }
                state.clients[exchange.id]?.deferred = isResumed ? nil : request
                state.clients[exchange.id]?.isResumed = false
                return isResumed
            }
            if isResumed { receive(request, exchange) }
        case .workingLong: break
        case .streaming(var response, let heartbeat):
            exchange.complete(&response)
            state.withLock { $0.clients[exchange.id] }?.take(.head(response))
            beat(exchange, heartbeat)
            isStream = true
        }
        handlers.iterationEnded()
        if isStream { handlers.writable([exchange]) }
    }

    package func hangUp(_ exchange: Exchange) {
        guard exchange.fire() else { return }
        _ = handlers.expire(exchange, .hangUp)
        end(exchange)
    }

    private func end(_ exchange: Exchange, _ event: Event? = nil) {
        let client = state.withLock { $0.clients.removeValue(forKey: exchange.id) }
        if let event { client?.take(event) }
    }

    private func expire(_ exchange: Exchange) {
        guard !exchange.isOver, let response = handlers.expire(exchange, .deadline) else { return }
        exchange.answer(response)
    }

    private func beat(_ exchange: Exchange, _ heartbeat: Duration) {
        after(heartbeat) { [weak self] in
            guard let self, !exchange.isOver else { return }
            handlers.silent([exchange])
            beat(exchange, heartbeat)
        }
    }

    package func put(_ transmission: Transmission) {
        switch transmission {
        case .single(let exchange):
            if let response = exchange.takeAnswer() { end(exchange, .answer(response)) }
        case .again(let exchange):
            let request = state.withLock { state in
                let request = state.clients[exchange.id]?.deferred.take()
                state.clients[exchange.id]?.isResumed = request == nil
                return request
            }
            if let request { receive(request, exchange) }
        case .answer(let exchanges, let response):
            for exchange in exchanges { end(exchange, .answer(response)) }
        case .cut(let exchange): end(exchange, .end)
        case .chunk(let exchanges, let chunk):
            let (bytes, isLast) = (chunk.content, chunk.isLast)
            for exchange in exchanges {
                if !bytes.isEmpty { state.withLock { $0.clients[exchange.id] }?.take(.chunk(bytes)) }
                if isLast { end(exchange, .end) }
            }
            // A socket reports writable later, and never inside the call that sends.
            if !isLast { after(.zero) { [handlers] in handlers.writable(exchanges) } }
        }
    }

    /// Sends a request and returns its answer, nil for a stream, which it hangs up; cancelling the task hangs up, too.
    package func send(_ request: Request) async -> Response? {
        let (answers, answer) = AsyncStream<Response?>.makeStream()
        let exchange = send(request) { event in
            switch event {
            case .answer(let response): answer.yield(response)
            case .head: answer.yield(nil)
            case .chunk: break
            case .end: answer.finish()
            }
        }
        defer { hangUp(exchange) }
        for await response in answers { return response }
        // Only a cancelled task gets here.
        return Response(status: .serviceUnavailable)
    }
}
