import CMicroHTTPD
import Glibc
import HTTPMessages

/// A client's connection while libmicrohttpd has it, and the state of its current request.
///
/// It exists from libmicrohttpd's notification that the connection has started until the notification that it has
/// closed, and serves one request after the other. The loop takes a connection whose request waits from libmicrohttpd:
/// see ``ParkedConnection``. Only the loop thread uses it.
final class ClientConnection {
    /// The state of the current request.
    enum Phase {
        /// There is no request.
        case idle
        /// The request line has been received.
        case lineReceived
        /// The head has been accepted, and libmicrohttpd receives the body.
        case reading
        /// The server has refused the body and answered; it discards up to this many more bytes of it and then closes.
        case draining(bytesLeft: Int)
        /// A handler works on the request. libmicrohttpd has the connection in its ready list and calls the access
        /// handler in each iteration; after ``ClientConnection/heldUntil`` the loop suspends the connection.
        case held(Exchange)
        /// A handler works on the request, and the connection is suspended.
        case suspended(Exchange)
        /// The handlers are ready for the request that they have deferred: the next call of the access handler hands it to
        /// them again.
        case resumed(Exchange)
        /// The loop has the answer and queues it in the next call of the access handler; nil closes the connection.
        case answered(PreparedResponse?)
        /// The loop has given the answer to libmicrohttpd.
        case queued
        /// The loop has taken the socket; libmicrohttpd is about to close the rest of the connection.
        case parked
    }

    /// When ``IdleConnections`` checks whether the client has finished sending.
    enum IdleCheck { case none, due, postponed }

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
    /// The current request's target, as received.
    @exclusivity(unchecked) var target = RawTarget()
    /// The head cache's entry for the current request's head, if it has one.
    @exclusivity(unchecked) var head: HeadCache.Entry?
    /// The slot of the head cache that had the last head of the connection.
    @exclusivity(unchecked) var headSlot = 0
    /// The slot of the section cache that had the last header section of the connection.
    @exclusivity(unchecked) var sectionSlot = 0
    /// The current request while it is received, unless its head came from the head cache.
    @exclusivity(unchecked) var request: Request?
    /// What is counted of the current request when it is answered; nil before it is complete and after its answer.
    @exclusivity(unchecked) var counted: CountedRequest?
    /// The current request, complete, while a handler defers it.
    @exclusivity(unchecked) var deferred: Request?
    /// The part of its body that has been received.
    @exclusivity(unchecked) var body: [UInt8] = []
    /// How many bytes of the memory budget the body has.
    @exclusivity(unchecked) var reservedCount = 0
    /// The length of its body by its head, or 0 where the head has none.
    @exclusivity(unchecked) var bodyCountDeclared = 0
    /// The options of the current request if it waits and the loop could not park its connection yet.
    @exclusivity(unchecked) var parkingOptions: ResponseOptions?
    /// Whether no request follows the current one: the client asks for that, or the answer says so.
    ///
    /// What has come behind it is then never read as a head (RFC 9112, section 9.6).
    @exclusivity(unchecked) var isLastRequest = false
    /// Whether the request came by HTTP/1.0.
    @exclusivity(unchecked) var isVersion10 = false
    @exclusivity(unchecked) var idleCheck = IdleCheck.none
    /// Whether libmicrohttpd has closed the connection, and the descriptor may be that of another one.
    var isClosed = false
    /// The last answer that was made of a template; the next one can be written in its place.
    @exclusivity(unchecked) var renewable: RenewableResponse?
    /// How many bytes libmicrohttpd has received on this connection.
    @exclusivity(unchecked) var receivedCount = 0
    /// How many of them belong to heads that have been read and to bodies that are complete.
    @exclusivity(unchecked) var consumedCount = 0
    /// Whether libmicrohttpd has an answer of the server, so that what it sends is that answer.
    @exclusivity(unchecked) var isAnswering = false
    /// How many answers libmicrohttpd has been given.
    @exclusivity(unchecked) var answersCount = 0
    /// Whether the large daemon has the connection.
    let hasLongHeads: Bool
    /// What has come of a head that has not ended, while the small daemon has the connection.
    @exclusivity(unchecked) var partialHead: ArraySlice<UInt8> = []
    /// What has come behind the body of the current request, before libmicrohttpd moves it in its memory.
    @exclusivity(unchecked) var behindBody: [UInt8] = []
    /// The end of the bytes that were received last, in libmicrohttpd's memory.
    @exclusivity(unchecked) var receivedEnd: UnsafeRawPointer?
    /// Whether the current request has a body.
    @exclusivity(unchecked) var hasBody = false
    /// The framing of the current request's body, if it is chunked.
    @exclusivity(unchecked) var chunks: ChunkFraming?
    /// Whether libmicrohttpd neither receives nor sends anything more: the server has refused a request while it was being
    /// received, or the connection moves to the large daemon.
    @exclusivity(unchecked) var isRefused = false
    /// Whether the server has answered a request whose body it discards, so that libmicrohttpd sends nothing more.
    var isAnsweredEarly = false
    /// Since when a request has been arriving, as far as ``WireObserver/check()`` has noticed, and which one it is.
    var receivingSince: LoopInstant?
    var receivingNumber = 0

    init(handle: OpaquePointer, peer: Peer, isProxy: Bool, overCapacity: UInt64?, hasLongHeads: Bool) {
        self.handle = handle
        client = peer.client
        isLocal = peer.isLocal
        self.isProxy = isProxy
        self.hasLongHeads = hasLongHeads
        self.overCapacity = overCapacity
        descriptor = microhttpd_connection_descriptor(handle)
    }

    deinit { target.deallocate() }

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
    /// Counts the bytes of a head that was accepted, and follows those of its body that have come with it.
    ///
    /// - Parameters:
    ///   - end: the end of the head in libmicrohttpd's memory, where the bytes behind it are.
    /// - Returns: the fault of those bytes, if there is one.
    func accept(_ framing: BodyFraming, headCount: Int, end: UnsafeRawPointer) -> TransportFault? {
        consumedCount += headCount
        bodyCountDeclared = 0
        hasBody = framing != .none
        behindBody = []
        let bytes = UnsafeRawBufferPointer(start: end, count: unansweredCount)
        switch framing {
        case .none: return nil
        case .declared(let count): bodyCountDeclared = count
        case .chunked:
            chunks = ChunkFraming()
            if let fault = chunks?.take(bytes) { return .malformed(fault) }
        }
        keepBehindBody(bytes)
        return nil
    }

    /// Copies those of the bytes received last that are behind the body of the current request: they begin a head.
    func keepBehindBody(_ bytes: UnsafeRawBufferPointer) {
        let count = unansweredCount - (chunks?.count ?? bodyCountDeclared)
        guard count > 0, !hasLongHeads, overCapacity == nil else { return }
        behindBody.append(contentsOf: bytes.suffix(count))
    }

    /// Counts the bytes of the body of a request that is complete.
    func countBody() {
        consumedCount += chunks?.count ?? bodyCountDeclared
        chunks = nil
        bodyCountDeclared = 0
    }

    /// Copies the bytes behind a request, which libmicrohttpd has received and not read: they begin a head.
    ///
    /// It is called at the end of the request, before libmicrohttpd moves or changes them; it has moved those behind a body.
    func keepNextHead() {
        guard !isLastRequest, !hasBody else {
            let isKnown = !isLastRequest && behindBody.count == unansweredCount
            partialHead = isKnown ? behindBody[...] : []
            behindBody = []
            return
        }
        guard !hasLongHeads, overCapacity == nil, unansweredCount > 0, let receivedEnd else {
            // What was kept is the head of this request, behind an earlier one.
            partialHead = []
            return
        }
        guard partialHead.count < unansweredCount else {
            // They were kept behind an earlier request, and libmicrohttpd has moved its copy since.
            partialHead = partialHead.suffix(unansweredCount)
            return
        }
        partialHead = Array(UnsafeRawBufferPointer(start: receivedEnd - unansweredCount, count: unansweredCount))[...]
    }

    /// How many bytes libmicrohttpd has received behind the last head, or behind the last request where that is complete.
    var unansweredCount: Int { receivedCount - consumedCount }

    /// Whether libmicrohttpd has received more than the requests so far.
    ///
    /// Those bytes are lost when the loop parks the connection, so the server then closes it after the answer, and the
    /// client sends its next request again (RFC 9112, section 9.3.2).
    var hasMoreInput: Bool { unansweredCount > 0 }

    /// Appends a piece of the body; drops a body that exceeds a limit and discards the rest of it from then on.
    ///
    /// - Returns: the limit that it exceeds.
    func append(
        _ piece: UnsafeRawBufferPointer, in context: LoopContext
    ) -> TransportFault? {
        let count = body.count + piece.count
        let bytesMax = context.configuration.bodyBytesMax
        guard count <= bytesMax else { return discardBody(.bodyTooLarge(bytesMax: bytesMax), in: context) }
        if count > MemoryBudget.smallBytesMax, count > reservedCount {
            // The array grows by doubling, and so does what is reserved for it.
            let more = min(max(2 * reservedCount, 256 << 10, count), bytesMax) - reservedCount
            if let fault = context.memory.reserve(more, for: requestClient) { return discardBody(fault, in: context) }
            reservedCount += more
        }
        if body.isEmpty, bodyCountDeclared > 0 {
            // The server does not reserve all of a declared length, because a client may declare more than it sends.
            body.reserveCapacity(min(bodyCountDeclared, 64 << 10))
        }
        body.append(contentsOf: piece)
        return nil
    }

    private func discardBody(_ fault: TransportFault, in context: LoopContext) -> TransportFault {
        body = []
        phase = .draining(bytesLeft: context.configuration.drainBytesMax)
        return fault
    }
}
