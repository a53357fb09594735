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
    public var written: @Sendable ([Exchange]) -> Void
    /// Hears that these streams have been silent for their heartbeat: something has to be sent.
    public var quiet: @Sendable ([Exchange]) -> Void
    /// Phrases a refusal of the transport itself; the head comes as a request without body, nil if it is unreadable.
    ///
    /// The connection is closed after it, whatever the response says.
    public var refuse: @Sendable (TransportFault, Request?) -> Response
    /// Says how long reusable answers hold.
    public var freshness = Freshness()
    /// Hears the transport's own remarks, such as clients that break off; for a debug log.
    public var remark: @Sendable (String) -> Void

    /// Makes a set of handlers; only `receive` has to be there.
    public init(
        receive: @escaping @Sendable (Request, Exchange) -> Reply,
        expire: @escaping @Sendable (Exchange, Expiry) -> Response? = { _, _ in Response(status: .serviceUnavailable) },
        passEnded: @escaping @Sendable () -> Void = {},
        written: @escaping @Sendable ([Exchange]) -> Void = { _ in },
        quiet: @escaping @Sendable ([Exchange]) -> Void = { _ in },
        refuse: @escaping @Sendable (TransportFault, Request?) -> Response = { fault, _ in
            Response(status: fault.status)
        },
        remark: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.receive = receive
        self.expire = expire
        self.passEnded = passEnded
        self.written = written
        self.quiet = quiet
        self.refuse = refuse
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
    /// The answer is here, and the same for everybody who sends the same head, until ``Freshness/end()``.
    case reusable(Response)
    /// Something is being done, and its end is the answer; it is done and answered even if the client hangs up.
    case working(deadline: ContinuousClock.Instant? = nil)
    /// Something is being waited for, perhaps for long; the wait ends when the client hangs up.
    case waiting(deadline: ContinuousClock.Instant? = nil)
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

/// How long answers hold that may be reused.
public final class Freshness: Sendable {
    private let count = Atomic<UInt64>(0)

    /// Makes one that holds.
    public init() {}

    /// Ends it: what has been answered before is not answered again without asking the handler.
    ///
    /// A handler that is being asked at this moment is taken to have seen what was before.
    public func end() { count.add(1, ordering: .acquiringAndReleasing) }

    var generation: UInt64 { count.load(ordering: .acquiring) }
}
