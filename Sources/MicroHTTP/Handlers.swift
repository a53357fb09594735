package import HTTPMessages
internal import HTTPTypes
import Synchronization

/// The functions that a server calls on its loop threads.
///
/// None of them may block: while one runs, its loop serves no other request.
package struct Handlers: Sendable {
    package var receive: @Sendable (Request, Exchange) -> Reply
    /// A response gives the exchange up; nil says that an answer is about to come, for which the server waits unless it
    /// stops; a stream gets the body as its last chunk.
    package var expire: @Sendable (Exchange, Expiry) -> Response?
    /// Called at the end of each iteration that has received requests, so that the handler can hand on all of its work
    /// at once; an answer that is given before this returns needs no suspension.
    package var iterationEnded: @Sendable () -> Void
    /// The sockets have taken the last chunks, and the handler may send the next.
    package var writable: @Sendable ([Exchange]) -> Void
    /// Nothing was sent for the time of the heartbeat, so the handler sends something.
    package var silent: @Sendable ([Exchange]) -> Void
    /// Answers a request that the transport refuses, nil if the head cannot be read, and the connection closes.
    package var refuse: @Sendable (Problem, Request?) -> Response
    /// A reusable answer serves as long as this number stays the same; the server reads it before ``receive``: where it
    /// rises during that call, the answer counts for the generation before.
    package var generation: @Sendable () -> UInt64
    package var debugLog: @Sendable (String) -> Void

    package init(
        receive: @escaping @Sendable (Request, Exchange) -> Reply,
        expire: @escaping @Sendable (Exchange, Expiry) -> Response? = { _, _ in Response(status: .serviceUnavailable) },
        iterationEnded: @escaping @Sendable () -> Void = {},
        writable: @escaping @Sendable ([Exchange]) -> Void = { _ in },
        silent: @escaping @Sendable ([Exchange]) -> Void = { _ in },
        refuse: @escaping @Sendable (Problem, Request?) -> Response = { problem, _ in
            Response(status: problem.status)
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

    /// An answer that is about to come is too late.
    func stop(_ exchange: Exchange) -> Response {
        var response = expire(exchange, .stopping) ?? Response(status: .serviceUnavailable)
        exchange.complete(&response)
        return response
    }

    func end(_ exchange: Exchange, _ reason: Expiry) -> Response? {
        if case .stopping = reason { return exchange.fire() ? stop(exchange) : nil }
        // The handler is asked before the exchange is claimed, so that a deadline does not overtake an answer.
        guard !exchange.isOver, var response = expire(exchange, reason), exchange.fire() else { return nil }
        exchange.complete(&response)
        return response
    }
}

/// It cannot be copied, so that a response is handed on and not copied at each step of its way.
package enum Reply: ~Copyable, Sendable {
    case now(Response)
    /// Every client that sends the same head gets it as long as ``Handlers/generation`` stays the same.
    case reusable(Response)
    /// A hang-up does not end the exchange, which is held or suspended, and expires after `atMost`.
    case working(atMost: Duration? = nil)
    /// The server hands the request on again after ``Exchange/resume()``; a hang-up may end the exchange before.
    case deferred
    /// Parks the connection, and ``Exchange/hasHungUp`` tells of a hang-up, which does not end the exchange.
    case workingLong
    /// The exchange expires after `atMost` and when the client hangs up.
    case waiting(atMost: Duration? = nil)
    /// The body of the response is the first chunk. To HTTP/1.0 the chunks have no framing. The connection closes with
    /// the stream, and what the client has sent behind this request is ignored.
    case streaming(Response, heartbeat: Duration)
}

/// Why an exchange ends before its handler has answered it.
package enum Expiry: Sendable {
    case deadline
    /// In most cases the client has gone. It may also have only finished sending (`nc -N`), which TCP does not tell
    /// apart: the wait ends, and a client that still reads receives the response.
    case hangUp
    case stopping
}
