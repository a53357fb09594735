package import HTTPMessages
internal import HTTPTypes
package import MicroHTTP
internal import Synchronization

/// Requests to a server's handlers without a socket: the same answers, in the same process.
///
/// For tests of domains and of their clients. Waits, deadlines and streams are as on the wire; limits of the transport,
/// such as the longest body, are not met.
package final class DirectLine: AnswerSink {
    private struct State {
        var waiting: [UInt64: CheckedContinuation<Response, Never>] = [:]
        var streams: [UInt64: AsyncStream<[UInt8]>.Continuation] = [:]
        /// Answers that came before somebody waited for them.
        var early: [UInt64: Response] = [:]
        var lastNumber: UInt64 = 0
    }

    /// An answer, whole or without end.
    package enum Answer: Sendable {
        case whole(Response)
        /// The head, and the body piece by piece; it ends when the stream does, and the stream when nobody reads it.
        case stream(Response, AsyncStream<[UInt8]>)
    }

    private let handlers: Handlers
    private let state = Mutex(State())

    init(_ handlers: Handlers) {
        self.handlers = handlers
    }

    /// Sends a request and returns its answer.
    package func send(_ request: Request) async -> Answer {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let exchange = Exchange(id: number, client: request.client, sink: self)
        let reply = handlers.receive(request, exchange)
        handlers.passEnded()
        switch reply {
        case .now(let response), .reusable(let response):
            return .whole(exchange.fire() ? response : await answer(to: exchange, by: nil))
        case .working(let deadline), .waiting(let deadline): return .whole(await answer(to: exchange, by: deadline))
        case .streaming(let response, let heartbeat): return .stream(response, stream(exchange, heartbeat))
        }
    }

    package func put(_ delivery: Delivery) {
        switch delivery {
        case .answer(let exchanges, let response):
            for exchange in exchanges {
                let waiter = state.withLock { state in
                    let waiter = state.waiting.removeValue(forKey: exchange.id)
                    if waiter == nil { state.early[exchange.id] = response }
                    return waiter
                }
                waiter?.resume(returning: response)
            }
        case .piece(let exchanges, let bytes, let isLast):
            for exchange in exchanges {
                let stream = state.withLock { $0.streams[exchange.id] }
                stream?.yield(bytes)
                if isLast { stream?.finish() }
            }
            // As a transport does it: in another turn of its own, not inside the giver's.
            if !isLast { Task { self.handlers.written(exchanges) } }
        }
    }

    private func answer(to exchange: Exchange, by deadline: ContinuousClock.Instant?) async -> Response {
        let timer = deadline.map { deadline in
            Task { [handlers] in
                // Cancelled by the answer, which has then claimed the exchange.
                try? await Task.sleep(until: deadline, clock: .continuous)
                guard !exchange.isOver, let response = handlers.expire(exchange, .deadline) else { return }
                exchange.answer(response)
            }
        }
        let response = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let early = state.withLock { state in
                    let early = state.early.removeValue(forKey: exchange.id)
                    if early == nil { state.waiting[exchange.id] = continuation }
                    return early
                }
                if let early { continuation.resume(returning: early) }
            }
        } onCancel: {
            guard exchange.fire() else { return }
            put(.answer([exchange], handlers.expire(exchange, .hangUp) ?? Response(status: .serviceUnavailable)))
        }
        timer?.cancel()
        return response
    }

    private func stream(_ exchange: Exchange, _ heartbeat: Duration) -> AsyncStream<[UInt8]> {
        let (pieces, continuation) = AsyncStream<[UInt8]>.makeStream()
        state.withLock { $0.streams[exchange.id] = continuation }
        let beat = Task { [handlers] in
            while !Task.isCancelled {
                do { try await Task.sleep(for: heartbeat) } catch { return }
                handlers.quiet([exchange])
            }
        }
        continuation.onTermination = { [self] _ in
            beat.cancel()
            state.withLock { $0.streams[exchange.id] = nil }
            if exchange.fire() { _ = handlers.expire(exchange, .hangUp) }
        }
        Task { handlers.written([exchange]) }
        return pieces
    }
}
