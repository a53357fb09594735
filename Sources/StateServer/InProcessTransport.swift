package import HTTPMessages
internal import HTTPTypes
package import MicroHTTP
internal import Synchronization

/// The transport without sockets: it hands requests to a server's handlers in the same process.
///
/// Tests of domains and of clients use it. Answers, waits, deadlines and streams are those of the sockets; the limits of the
/// socket transport, such as the longest body, do not apply.
///
/// Threads: any thread may call any method.
package final class InProcessTransport: AnswerSink {
    /// An event of the transport for a client.
    package enum Event: Sendable {
        /// A whole answer.
        case answer(Response)
        /// The head of a stream, with its first bytes.
        case head(Response)
        /// The next bytes of a stream.
        case chunk([UInt8])
        /// The end of a stream.
        case end
    }

    /// The answer to a request: whole, or a stream.
    package enum Answer: Sendable {
        case whole(Response)
        /// The head of a stream, and its chunks. The sequence ends with the stream; dropping the sequence hangs up.
        case stream(Response, AsyncStream<[UInt8]>)
    }

    typealias Timer = @Sendable (Duration, @escaping @Sendable () -> Void) -> Void

    private struct State {
        var clients: [UInt64: @Sendable (Event) -> Void] = [:]
        var lastNumber: UInt64
        var deferred: [UInt64: Request] = [:]
        /// The exchanges that were resumed before the handlers had replied.
        var resumed: Set<UInt64> = []
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

    /// Sends a request.
    ///
    /// - Parameter client: takes the events of the answer, on any thread, one call after the other.
    /// - Returns: the exchange, for ``hangUp(_:)``.
    @discardableResult
    package func send(_ request: Request, to client: @escaping @Sendable (Event) -> Void) -> Exchange {
        let number = state.withLock { state in
            state.lastNumber += 1
            // An answer may come before the handler returns.
            state.clients[state.lastNumber] = client
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
                if state.resumed.remove(exchange.id) != nil { return true }
                // The exchange may have been answered already.
                if state.clients[exchange.id] != nil { state.deferred[exchange.id] = request }
                return false
            }
            if isResumed { receive(request, exchange) }
        case .workingLong: break
        case .streaming(var response, let heartbeat):
            exchange.complete(&response)
            state.withLock { $0.clients[exchange.id] }?(.head(response))
            beat(exchange, heartbeat)
            isStream = true
        }
        handlers.iterationEnded()
        if isStream { handlers.writable([exchange]) }
    }

    /// Ends an exchange as the closed connection of a client does.
    package func hangUp(_ exchange: Exchange) {
        guard exchange.fire() else { return }
        _ = handlers.expire(exchange, .hangUp)
        forget(exchange)
    }

    private func forget(_ exchange: Exchange) {
        state.withLock { state in
            state.clients[exchange.id] = nil
            state.deferred[exchange.id] = nil
            state.resumed.remove(exchange.id)
        }
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
            guard let response = exchange.takeAnswer() else { return }
            let client = state.withLock { state in
                state.deferred[exchange.id] = nil
                return state.clients.removeValue(forKey: exchange.id)
            }
            client?(.answer(response))
        case .again(let exchange):
            let request = state.withLock { state in
                let request = state.deferred.removeValue(forKey: exchange.id)
                if request == nil, state.clients[exchange.id] != nil { state.resumed.insert(exchange.id) }
                return request
            }
            if let request { receive(request, exchange) }
        case .answer(let exchanges, let response):
            for exchange in exchanges {
                state.withLock { $0.clients.removeValue(forKey: exchange.id) }?(.answer(response))
            }
        case .cut(let exchange):
            state.withLock { $0.clients.removeValue(forKey: exchange.id) }?(.end)
        case .chunk(let exchanges, let chunk):
            let (bytes, isLast) = (chunk.content, chunk.isLast)
            for exchange in exchanges {
                guard let client = state.withLock({ $0.clients[exchange.id] }) else { continue }
                if !bytes.isEmpty { client(.chunk(bytes)) }
                guard isLast else { continue }
                state.withLock { $0.clients[exchange.id] = nil }
                client(.end)
            }
            // A socket reports writable later, and never inside the call that sends.
            if !isLast { after(.zero) { [handlers] in handlers.writable(exchanges) } }
        }
    }

    // MARK: Asynchronous clients

    /// Sends a request and returns its answer; cancelling the task hangs up.
    package func send(_ request: Request) async -> Answer {
        let (events, continuation) = AsyncStream<Event>.makeStream()
        let exchange = send(request) { event in
            continuation.yield(event)
            switch event {
            case .answer, .end: continuation.finish()
            case .head, .chunk: break
            }
        }
        continuation.onTermination = { [weak self] reason in
            if case .cancelled = reason { self?.hangUp(exchange) }
        }
        var iterator = events.makeAsyncIterator()
        switch await iterator.next() {
        case .answer(let response): return .whole(response)
        case .head(let response): return .stream(response, chunks(of: events, exchange))
        // Only a cancelled task gets here: its cancellation has hung up.
        case .chunk, .end, nil: return .whole(Response(status: .serviceUnavailable))
        }
    }

    private func chunks(of events: AsyncStream<Event>, _ exchange: Exchange) -> AsyncStream<[UInt8]> {
        let (chunks, continuation) = AsyncStream<[UInt8]>.makeStream()
        let reader = Task {
            for await case .chunk(let bytes) in events { continuation.yield(bytes) }
            continuation.finish()
        }
        continuation.onTermination = { [weak self] _ in
            reader.cancel()
            self?.hangUp(exchange)
        }
        return chunks
    }
}
