package import HTTPMessages
internal import HTTPTypes
import Synchronization

/// The functions that a server calls on its loop threads.
///
/// None of them may block: while one runs, its loop serves no other request.
package struct Handlers: Sendable {
    /// Takes a complete request and returns its answer, or how the answer will come through the exchange.
    package var receive: @Sendable (Request, Exchange) -> Reply
    /// Ends an exchange that has not been answered, and returns the response to send.
    ///
    /// A handler that returns a response gives up the exchange. A handler that is about to answer the exchange returns
    /// nil, and the server waits for that answer, unless the server is stopping. The server drops the response where
    /// the client has gone; to a stream it sends the body of the response as the last chunk.
    package var expire: @Sendable (Exchange, Expiry) -> Response?
    /// Is called at the end of each iteration of the loop that has received requests, so that the handler can hand on
    /// all work of the iteration at once.
    ///
    /// The server sends an answer that is given before this returns without suspending the connection.
    package var iterationEnded: @Sendable () -> Void
    /// Reports that these streams are writable: the socket has taken the last chunk, and the handler may send the next.
    package var writable: @Sendable ([Exchange]) -> Void
    /// Reports that the heartbeat of these streams is due: nothing was sent for that time, so the handler sends
    /// something.
    package var silent: @Sendable ([Exchange]) -> Void
    /// Returns the response to a request that the transport itself refuses.
    ///
    /// The request has the head and no body; it is nil where the head cannot be read. The server closes the connection
    /// after the response, whatever the response says.
    package var refuse: @Sendable (TransportFault, Request?) -> Response
    /// Returns the generation of reusable answers: the server reuses an answer as long as this number stays the same.
    ///
    /// The server reads the number before it calls ``receive``: where the number rises during that call, the answer
    /// counts for the generation before.
    package var generation: @Sendable () -> UInt64
    /// Takes the transport's own messages, such as a client that breaks off, for a debug log.
    package var debugLog: @Sendable (String) -> Void

    /// Makes a set of handlers; only `receive` has no default.
    package init(
        receive: @escaping @Sendable (Request, Exchange) -> Reply,
        expire: @escaping @Sendable (Exchange, Expiry) -> Response? = { _, _ in Response(status: .serviceUnavailable) },
        iterationEnded: @escaping @Sendable () -> Void = {},
        writable: @escaping @Sendable ([Exchange]) -> Void = { _ in },
        silent: @escaping @Sendable ([Exchange]) -> Void = { _ in },
        refuse: @escaping @Sendable (TransportFault, Request?) -> Response = { fault, _ in
            Response(status: fault.status)
        },
        generation: @escaping @Sendable () -> UInt64 = { 0 },
        debugLog: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.receive = receive
        self.expire = expire
        self.iterationEnded = iterationEnded
        self.writable = writable
        self.silent = silent
        self.refuse = refuse
        self.generation = generation
        self.debugLog = debugLog
    }
}

extension Handlers {
    /// Ends an exchange because the server is stopping; an answer that is about to come is too late.
    func stop(_ exchange: Exchange) -> Response {
        var response = expire(exchange, .stopping) ?? Response(status: .serviceUnavailable)
        exchange.complete(&response)
        return response
    }

    /// Ends an exchange and returns its answer, or nil if that is on its way.
    func end(_ exchange: Exchange, _ reason: Expiry) -> Response? {
        if case .stopping = reason { return exchange.fire() ? stop(exchange) : nil }
        // The handler is asked before the exchange is claimed, so that a deadline does not overtake an answer.
        guard !exchange.isOver, var response = expire(exchange, reason), exchange.fire() else { return nil }
        exchange.complete(&response)
        return response
    }
}

/// The result of a handler for a complete request.
///
/// It cannot be copied, so that a response is handed on and not copied at each step of its way.
package enum Reply: ~Copyable, Sendable {
    /// The answer.
    case now(Response)
    /// The answer, which every client that sends the same head gets as long as ``Handlers/generation`` stays the same.
    case reusable(Response)
    /// The handler works on the request and answers through the exchange, even if the client hangs up; the exchange
    /// expires after `atMost`.
    case working(atMost: Duration? = nil)
    /// The handler is not ready for the request: the server hands it the same request again, with the same exchange, after
    /// ``Exchange/resume()``, unless the handler answers the exchange before. The client's hang-up may end the exchange.
    case deferred
    /// The handler works on the request for long, and answers through the exchange, even if the client hangs up, which
    /// ``Exchange/hasHungUp`` tells.
    case workingLong
    /// The request waits, perhaps for long, and the handler answers through the exchange; the exchange expires after
    /// `atMost` and when the client hangs up.
    case waiting(atMost: Duration? = nil)
    /// The answer is a stream: it begins with this response, has no length, and continues in chunks until the server or
    /// the client ends it.
    ///
    /// The body of the response is the first chunk. To HTTP/1.0 the chunks have no framing. The connection closes with the
    /// stream; the server ignores what the client has sent after this request.
    case streaming(Response, heartbeat: Duration)
}

/// Why an exchange ends before its handler has answered it.
package enum Expiry: Sendable {
    /// Its deadline has passed.
    case deadline
    /// The client has closed its side of the connection.
    ///
    /// In most cases the client has gone. It may also have only finished sending (`nc -N`): TCP does not tell the two
    /// apart, so the wait ends and the server sends the response, which a client that still reads receives.
    case hangUp
    /// The server is stopping.
    case stopping
}
