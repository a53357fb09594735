import CMicroHTTPD
import HTTPMessages

/// One client's connection while libmicrohttpd holds it, and where its present request stands.
///
/// It lives from libmicrohttpd's notice that the connection has started to the notice that it has closed, and serves
/// one request after the other. A connection whose request waits is taken from libmicrohttpd: see ``ParkedConnection``.
/// Belongs to the loop thread.
final class ClientConnection {
    /// Where the present request stands.
    enum Phase {
        /// Between requests.
        case idle
        /// The request line is in.
        case lineReceived
        /// The head has been accepted; the body is coming in.
        case reading
        /// The body has passed the cap; this many more bytes of it are read and thrown away before the refusal.
        case draining(bytesLeft: Int)
        /// A handler has it. The connection is in libmicrohttpd's ready list and is looked at in each pass, until the
        /// moment that stands in ``ClientConnection/heldUntil``; then it is suspended.
        case held(Exchange)
        /// A handler has it and libmicrohttpd has laid the connection aside.
        case suspended(Exchange)
        /// The answer has come and waits for libmicrohttpd's next look; nil closes the connection.
        case answered(PreparedResponse?)
        /// The answer is libmicrohttpd's.
        case queued
        /// The socket has been taken away; what is left here is about to be closed.
        case parked
    }

    let handle: OpaquePointer
    let descriptor: Int32
    let client: String
    /// Nil for a connection within the cap; else the number under which the loop counts those above it.
    let surplus: UInt64?
    var phase = Phase.idle
    /// Until when the present request is held, if it is.
    ///
    /// Not in the phase: an instant's size is the standard library's secret, and what holds one is copied by looking it up.
    var heldUntil: ContinuousClock.Instant?
    /// The present request's target, as it came in.
    var target = RawTarget()
    /// The present request's head, if it is one that was seen before or may be seen again.
    var head: HeadCache.Entry?
    /// The request being read, unless its head is of those seen before.
    var request: Request?
    /// What has come of its body, and how long its head says that it will be; 0 if it does not say.
    var body: [UInt8] = []
    var bodyCountDeclared = 0
    /// How the present request wants its answer, if it waits and could not be parked yet.
    var parksLater: RequestManner?
    /// Whether the request came by HTTP/1.0.
    var isVersion10 = false
    /// How many bytes its requests have taken up so far, nil when that cannot be told.
    var consumedCount: Int?

    init(handle: OpaquePointer, surplus: UInt64?, consumedCount: Int) {
        self.handle = handle
        self.surplus = surplus
        self.consumedCount = consumedCount
        descriptor = microhttpd_connection_descriptor(handle)
        client = microhttpd_client_address(handle).flatMap { numericAddress($0)?.host } ?? "unknown"
    }
}
