import CMicroHTTPD
import Glibc
import HTTPMessages
import HTTPTypes

/// A client's connection, and the state of its current request.
///
/// It begins with libmicrohttpd's notification that the connection has started, and ends with the one that it has closed. The
/// loop takes the socket of a connection whose request waits from libmicrohttpd, see ``ParkedConnections``: such a connection
/// ends when the loop closes the socket or hands it back, and the loop does not keep its request. Only the loop thread uses
/// it.
final class ClientConnection {
    // exclusivity unchecked: only the loop thread uses the variables, and a check takes as long as ten accesses.

    enum Phase {
        /// libmicrohttpd has no whole head; one may be arriving.
        case idle
        case receiving
        /// The client has its answer; the server discards up to this many more bytes.
        case discarding(bytesLeft: Int)
        case complete
        /// libmicrohttpd calls the access handler in each iteration, until the loop suspends the connection after
        /// ``ClientConnection/heldUntil``.
        case held(Exchange)
        case suspended(Exchange)
        /// The next call of the access handler hands the deferred request to the handlers again.
        case resumed(Exchange)
        case answered(WireResponse)
        case queued

        // The loop has taken the socket, and libmicrohttpd closes the rest of the connection.

        case waiting(Exchange)
        case streaming(Exchange)
        case answering(isLast: Bool)
        case keepAliveIdle
        /// The socket is closed, or libmicrohttpd has it again.
        case closed
    }

    enum IdleCheck { case none, due, postponed }

    enum Turn { case none, awaited, come }

    let handle: OpaquePointer
    @exclusivity(unchecked) private(set) var descriptor: Int32
    /// On a Unix socket the peer's user, such as `uid 1000`.
    let client: String
    let isLocal: Bool
    @exclusivity(unchecked) var isProxy = false
    /// The client that the current request's head names, if the peer is such a proxy.
    @exclusivity(unchecked) var namedClient: String?
    /// Since when a connection over capacity has been open; nil for any other.
    @exclusivity(unchecked) var overCapacitySince: LoopInstant?
    @exclusivity(unchecked) var phase = Phase.idle
    @exclusivity(unchecked) var heldUntil: LoopInstant?
    /// Whether the head of a request has been accepted that is not complete or not answered.
    @exclusivity(unchecked) var isInFlight = false
    /// The head of the current request; nil before it is complete and after the answer.
    @exclusivity(unchecked) var head: ParsedHead?
    @exclusivity(unchecked) var own: OwnFields?
    @exclusivity(unchecked) var framing = BodyFraming.none
    /// The figures of the current request; nil before it is complete, and after its answer.
    @exclusivity(unchecked) var counted: CountedRequest?
    @exclusivity(unchecked) var deferred: Request?
    @exclusivity(unchecked) var body: [UInt8] = []
    /// How many bytes of its body have come, also of one that is discarded.
    @exclusivity(unchecked) var bodyBytes = 0
    /// In how many iterations the piece of the body that is in libmicrohttpd's buffer has stayed there.
    @exclusivity(unchecked) var leavesCount = 0
    /// The bytes of the memory budget that the body has; nil for a short one.
    @exclusivity(unchecked) var reservation: MemoryBudget.Reservation?
    /// Whether the current request waits and the loop could not park its connection yet.
    @exclusivity(unchecked) var awaitsParking = false
    /// Whether no request follows the current one: bytes behind it are never read as a head (RFC 9112, section 9.6).
    @exclusivity(unchecked) var isLastRequest = false
    @exclusivity(unchecked) var idleCheck = IdleCheck.none
    @exclusivity(unchecked) var turn = Turn.none
    /// Whether libmicrohttpd has closed the connection, and the descriptor may be that of another one.
    @exclusivity(unchecked) var isClosed = false
    @exclusivity(unchecked) var holding: MemoryBudget.Holding?
    /// Whether libmicrohttpd neither receives nor sends anything more: the server has refused a request, or closes the
    /// connection.
    @exclusivity(unchecked) var isRefused = false
    @exclusivity(unchecked) var target: [UInt8] = []
    /// The byte behind the target, in libmicrohttpd's memory.
    @exclusivity(unchecked) var targetEnd: UnsafePointer<CChar>?
    @exclusivity(unchecked) var receivingSince: LoopInstant?
    /// Since when there has been no request, and when the kernel was last asked whether one is arriving.
    @exclusivity(unchecked) var idleSince: LoopInstant
    @exclusivity(unchecked) var askedAt: LoopInstant
    /// How many bytes all requests on this socket take, or nil if that is not known.
    @exclusivity(unchecked) var consumedCount: Int? = 0
    @exclusivity(unchecked) var mustDiscard = false

    /// The number of the exchange, by which the loop and the poller identify the connection; 0 while libmicrohttpd has it.
    @exclusivity(unchecked) private(set) var number: UInt64 = 0
    @exclusivity(unchecked) private(set) var isHead = false
    @exclusivity(unchecked) private(set) var isVersion10 = false
    /// Whether a handler works on the request, so that a stop leaves it the grace time.
    @exclusivity(unchecked) var isOfWork = false
    @exclusivity(unchecked) var hasInput = false
    @exclusivity(unchecked) var hasHungUp = false
    @exclusivity(unchecked) var isPaused = false
    /// The answer or the chunk that the socket has not taken yet.
    @exclusivity(unchecked) var unsent: Outgoing?
    @exclusivity(unchecked) var lastSent: LoopInstant
    @exclusivity(unchecked) var heartbeat = Duration.zero

    init(_ handle: OpaquePointer, now: LoopInstant) {
        self.handle = handle
        descriptor = microhttpd_connection_descriptor(handle)
        let address = microhttpd_client_address(handle)
        isLocal = address.map { Int32($0.pointee.sa_family) == AF_UNIX } ?? false
        if isLocal {
            let user = microhttpd_peer_user(descriptor)
            client = user < 0 ? "unknown" : "uid \(user)"
        } else {
            client = address.flatMap { numericAddress($0)?.host } ?? "unknown"
        }
        (idleSince, askedAt, lastSent) = (now, now, now)
    }

    /// The descriptor is the loop's own: libmicrohttpd closes its one.
    func park(_ exchange: Exchange, on descriptor: Int32, as phase: Phase, now: LoopInstant) {
        isHead = head?.head.method == .head
        isVersion10 = head?.version == .http10
        isLastRequest = isLastRequest || isVersion10 || hasReadMore
        (number, self.descriptor, self.phase, lastSent) = (exchange.id, descriptor, phase, now)
    }

    var isParked: Bool { number > 0 }

    var requestClient: String { namedClient ?? client }

    /// Such bytes are lost when the loop parks the connection, so the server then closes it after the answer, and the
    /// client sends its next request again (RFC 9112, section 9.3.2).
    var hasReadMore: Bool {
        guard let consumedCount else { return true }
        return microhttpd_bytes_read(descriptor) != Int64(consumedCount)
    }

    /// `declared` is how much of the body is left with it, 0 where that is not known.
    func append(
        _ piece: UnsafeRawBufferPointer, declared: Int, in context: LoopContext
    ) -> Problem? {
        let count = body.count + piece.count
        let bytesMax = context.configuration.bodyBytesMax
        guard count <= bytesMax else { return .tooLarge(limit: bytesMax) }
        let reserved = reservation?.bytes ?? 0
        if count > MemoryBudget.smallBytesMax, count > reserved {
            // The array grows by doubling, and so does what is reserved for it.
            let bytes = min(max(2 * reserved, 256 << 10, count), bytesMax)
            let reservation = reservation ?? MemoryBudget.Reservation(context.memory, for: requestClient)
            self.reservation = reservation
            if let problem = reservation.grow(to: bytes) { return problem }
        }
        if body.isEmpty {
            // The server does not reserve all of a declared length, because a client may declare more than it sends.
            body.reserveCapacity(min(max(declared, piece.count), 64 << 10))
        }
        body.append(contentsOf: piece)
        return nil
    }

    var hasBody: Bool { !body.isEmpty || reservation != nil }

    func releaseBody() {
        body = []
        reservation = nil
    }
}
