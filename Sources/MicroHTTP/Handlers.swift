public import HTTPMessages
public import HTTPTypes
import Synchronization

/// What a server calls; everything on its loop thread, so none of these may block.
///
/// While one of them runs, no other request is served.
public struct Handlers: Sendable {
    /// Takes a complete request: answers now, or says that the answer comes later through the exchange.
    public var receive: @Sendable (Request, Exchange) -> Reply
    /// Ends an exchange whose answer has not come, and says what to send instead; nil where somebody is about to answer
    /// it, which is then waited for, unless the server is stopping.
    ///
    /// Whoever is given a response lets go of the exchange. Where the client has gone, it goes nowhere. Of a stream's,
    /// the body is sent.
    public var expire: @Sendable (Exchange, Expiry) -> Response?
    /// Hears that a pass of the loop has taken in requests: the place to hand the pass's work on in one go.
    ///
    /// Answers given before this returns are sent without parking anything.
    public var passEnded: @Sendable () -> Void
    /// Hears that everything given to these streams has been written: they may be given more.
    public var writable: @Sendable ([Exchange]) -> Void
    /// Hears that these streams have been silent for their heartbeat: something has to be sent.
    public var silent: @Sendable ([Exchange]) -> Void
    /// Phrases a refusal of the transport itself; the head comes as a request without body, nil if it is unreadable.
    ///
    /// The connection is closed after it, whatever the response says.
    public var refuse: @Sendable (TransportFault, Request?) -> Response
    /// The generation of reusable answers: an answer holds as long as this number stays the same.
    ///
    /// A handler that is being asked while the number rises is taken to have seen what was before.
    public var generation: @Sendable () -> UInt64
    /// Hears the transport's own remarks, such as clients that break off; for a debug log.
    public var remark: @Sendable (String) -> Void

    /// Makes a set of handlers; only `receive` has to be there.
    public init(
        receive: @escaping @Sendable (Request, Exchange) -> Reply,
        expire: @escaping @Sendable (Exchange, Expiry) -> Response? = { _, _ in Response(status: .serviceUnavailable) },
        passEnded: @escaping @Sendable () -> Void = {},
        writable: @escaping @Sendable ([Exchange]) -> Void = { _ in },
        silent: @escaping @Sendable ([Exchange]) -> Void = { _ in },
        refuse: @escaping @Sendable (TransportFault, Request?) -> Response = { fault, _ in
            Response(status: fault.status)
        },
        generation: @escaping @Sendable () -> UInt64 = { 0 },
        remark: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.receive = receive
        self.expire = expire
        self.passEnded = passEnded
        self.writable = writable
        self.silent = silent
        self.refuse = refuse
        self.generation = generation
        self.remark = remark
    }
}

extension Handlers {
    /// Ends an exchange because the server is stopping: whoever was about to answer it is too late.
    func stop(_ exchange: Exchange) -> Response { expire(exchange, .stopping) ?? Response(status: .serviceUnavailable) }
}

/// What a handler says to a complete request.
public enum Reply: Sendable {
    /// The answer is here.
    case now(Response)
    /// The answer is here, and the same for everybody who sends the same head, as long as ``Handlers/generation`` stays the same.
    case reusable(Response)
    /// Something is being done, and its end is the answer; it is done and answered even if the client hangs up.
    case working(atMost: Duration? = nil)
    /// Something is being waited for, perhaps for long; the wait ends when the client hangs up.
    case waiting(atMost: Duration? = nil)
    /// The answer begins here, without a length, and goes on piece by piece until one side ends it.
    ///
    /// The body is the first piece. The connection closes with the stream: whatever the client has sent behind this
    /// request is not looked at.
    case streaming(Response, heartbeat: Duration)
}

/// Why an exchange ends without the answer it was waiting for.
public enum Expiry: Sendable {
    /// Its deadline has passed.
    case deadline
    /// The client has closed its side of the connection.
    ///
    /// Mostly it is gone. It may also have only finished sending (`nc -N`): TCP cannot tell the two apart, so
    /// the wait ends and the response is sent to whoever still reads.
    case hangUp
    /// The server is stopping.
    case stopping
}
