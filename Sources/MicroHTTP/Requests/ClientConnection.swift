import CMicroHTTPD
import Glibc
import HTTPMessages

/// A client's connection while libmicrohttpd has it, and the state of its current request.
///
/// It exists from libmicrohttpd's notification that the connection has started until the notification that it has
/// closed, and serves one request after the other. The loop takes a connection whose request waits from libmicrohttpd:
/// see ``ParkedConnection``. Only the loop thread uses it.
final class ClientConnection {
    // exclusivity unchecked: only the loop thread uses the variables, and a check takes as long as ten accesses.

    /// The state of the current request.
    enum Phase {
        /// libmicrohttpd has no whole head; one may be arriving.
        case idle
        /// The head has been accepted, and libmicrohttpd receives the body.
        case receiving
        /// The body is refused, and the client has its answer; the server discards up to this many more bytes.
        case discarding(bytesLeft: Int)
        /// The request is complete.
        case complete
        /// A handler works on the request. libmicrohttpd has the connection in its ready list and calls the access
        /// handler in each iteration; after ``ClientConnection/heldUntil`` the loop suspends the connection.
        case held(Exchange)
        /// A handler works on the request, and the connection is suspended.
        case suspended(Exchange)
        /// The handlers are ready for the request that they have deferred: the next call of the access handler hands it to
        /// them again.
        case resumed(Exchange)
        /// The loop has the answer and sends it in the next call of the access handler.
        case answered(WireResponse)
        /// The loop has given the answer to libmicrohttpd.
        case queued
        /// The loop has taken the socket; libmicrohttpd is about to close the rest of the connection.
        case parked
    }

    /// When ``IdleConnections`` checks whether the client has finished sending.
    enum IdleCheck { case none, due, postponed }

    /// Whether a complete request waits for its turn among those of its client, and whether its turn has come.
    enum Turn { case none, awaited, come }

    let handle: OpaquePointer
    let descriptor: Int32
    /// The peer's address, or its user.
    let client: String
    /// Whether the peer is on a Unix socket.
    let isLocal: Bool
    /// Whether the peer is a proxy whose requests name their clients.
    let isProxy: Bool
    /// The client that the current request's head names, if the peer is such a proxy.
    @exclusivity(unchecked) var namedClient: String?
    /// The number of a connection over capacity; nil for any other.
    let overCapacity: UInt64?
    @exclusivity(unchecked) var phase = Phase.idle
    /// Until when the current request is held, if it is.
    @exclusivity(unchecked) var heldUntil: LoopInstant?
    /// Whether the head of a request has been accepted that is not complete or not answered.
    @exclusivity(unchecked) var isInFlight = false
    /// The head of the current request; nil before it is complete and after the answer.
    @exclusivity(unchecked) var head: ParsedHead?
    /// The fields that are the current request's own.
    @exclusivity(unchecked) var own: OwnFields?
    /// How its body is delimited.
    @exclusivity(unchecked) var framing = BodyFraming.none
    /// The figures of the current request for its count; nil before it is complete, and after its answer.
    @exclusivity(unchecked) var counted: CountedRequest?
    /// The current request, complete, while a handler defers it.
    @exclusivity(unchecked) var deferred: Request?
    /// The part of its body that has been received.
    @exclusivity(unchecked) var body: [UInt8] = []
    /// How many bytes of its body have come, also of one that is discarded.
    @exclusivity(unchecked) var bodyBytes = 0
    /// In how many iterations the piece of the body that is in libmicrohttpd's buffer has stayed there.
    @exclusivity(unchecked) var leavesCount = 0
    /// The bytes of the memory budget that the body has; nil for a short one.
    @exclusivity(unchecked) var reservation: MemoryBudget.Reservation?
    /// The options of the current request if it waits and the loop could not park its connection yet.
    @exclusivity(unchecked) var parkingOptions: ResponseOptions?
    /// Whether no request follows the current one: the client asks for that, or the answer says so.
    ///
    /// Bytes behind it are then never read as a head (RFC 9112, section 9.6).
    @exclusivity(unchecked) var isLastRequest = false
    @exclusivity(unchecked) var idleCheck = IdleCheck.none
    @exclusivity(unchecked) var turn = Turn.none
    /// Whether libmicrohttpd has closed the connection, and the descriptor may be that of another one.
    @exclusivity(unchecked) var isClosed = false
    /// The bytes of the memory budget that a long answer to the current request holds.
    @exclusivity(unchecked) var holding: MemoryBudget.Holding?
    /// Whether libmicrohttpd neither receives nor sends anything more: the server has refused a request while it was being
    /// received, or closes the connection.
    @exclusivity(unchecked) var isRefused = false
    /// The target of the current request, as received.
    @exclusivity(unchecked) var target: [UInt8] = []
    /// The byte behind the target, in libmicrohttpd's memory.
    @exclusivity(unchecked) var targetEnd: UnsafePointer<CChar>?
    /// Since when the current request has been arriving, as far as the loop knows.
    @exclusivity(unchecked) var receivingSince: LoopInstant?
    /// Since when there has been no request, and when the kernel was last asked whether one is arriving.
    @exclusivity(unchecked) var idleSince: LoopInstant
    @exclusivity(unchecked) var askedAt: LoopInstant
    /// How many bytes all requests on this socket take, or nil if that is not known.
    @exclusivity(unchecked) var consumedCount: Int? = 0
    /// Whether the rest of the input is read and dropped before the connection closes.
    @exclusivity(unchecked) var mustDiscard = false

    init(handle: OpaquePointer, peer: Peer, isProxy: Bool, overCapacity: UInt64?, now: LoopInstant) {
        self.handle = handle
        client = peer.client
        isLocal = peer.isLocal
        self.isProxy = isProxy
        self.overCapacity = overCapacity
        descriptor = microhttpd_connection_descriptor(handle)
        (idleSince, askedAt) = (now, now)
    }

    /// The client of the current request: the one that a trusted proxy names, or the peer.
    var requestClient: String { namedClient ?? client }
}

/// The other end of a connection.
struct Peer {
    /// Its address without the port; on a Unix socket its user, such as `uid 1000`.
    let client: String
    let isLocal: Bool

    init(of handle: OpaquePointer) {
        let address = microhttpd_client_address(handle)
        isLocal = address.map { Int32($0.pointee.sa_family) == AF_UNIX } ?? false
        if isLocal {
            let user = microhttpd_peer_user(microhttpd_connection_descriptor(handle))
            client = user < 0 ? "unknown" : "uid \(user)"
        } else {
            client = address.flatMap { numericAddress($0)?.host } ?? "unknown"
        }
    }
}

extension ClientConnection {
    /// Whether libmicrohttpd has read, or may have read, more than the requests so far.
    ///
    /// Those bytes are lost when the loop parks the connection, so the server then closes it after the answer, and the
    /// client sends its next request again (RFC 9112, section 9.3.2).
    var hasReadMore: Bool {
        guard let consumedCount else { return true }
        return microhttpd_bytes_read(descriptor) != Int64(consumedCount)
    }

    /// Whether the current request came by HTTP/1.0.
    var isVersion10: Bool { head?.version == .http10 }

    /// Appends a piece of the body.
    ///
    /// - Parameter declared: how much of the body is left with this piece; 0 where it is not known.
    /// - Returns: the limit that the body exceeds.
    func append(
        _ piece: UnsafeRawBufferPointer, declared: Int, in context: LoopContext
    ) -> TransportFault? {
        let count = body.count + piece.count
        let bytesMax = context.configuration.bodyBytesMax
        guard count <= bytesMax else { return .bodyTooLarge(bytesMax: bytesMax) }
        let reserved = reservation?.bytes ?? 0
        if count > MemoryBudget.smallBytesMax, count > reserved {
            // The array grows by doubling, and so does what is reserved for it.
            let bytes = min(max(2 * reserved, 256 << 10, count), bytesMax)
            let reservation = reservation ?? MemoryBudget.Reservation(context.memory, for: requestClient)
            self.reservation = reservation
            if let fault = reservation.grow(to: bytes) { return fault }
        }
        if body.isEmpty {
            // The server does not reserve all of a declared length, because a client may declare more than it sends.
            body.reserveCapacity(min(max(declared, piece.count), 64 << 10))
        }
        body.append(contentsOf: piece)
        return nil
    }

    /// Whether there is a part of a body, or room for one.
    var hasBody: Bool { !body.isEmpty || reservation != nil }

    /// Drops the body, and gives back what is reserved for it.
    func releaseBody() {
        body = []
        reservation = nil
    }
}
