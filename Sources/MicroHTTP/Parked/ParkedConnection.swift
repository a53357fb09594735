import Glibc
import HTTPMessages

/// A client's connection that the loop has taken from libmicrohttpd.
///
/// Its request waits, or is a stream, or has been answered and the client has not sent its next request. A parked
/// connection occupies its socket and this object; the loop does not keep the request. Only the loop thread uses it.
final class ParkedConnection {
    /// The state of a parked connection.
    enum Phase {
        /// The request waits for an answer.
        case waiting(Exchange)
        /// The socket has not taken all bytes of the answer yet.
        case answering(Outgoing, isLast: Bool)
        /// The answer is sent, and the client has not sent its next request.
        case keepAliveIdle
        /// A stream, with the chunk that the socket has not taken yet.
        case streaming(Exchange, Outgoing?)
        /// The socket is closed, or libmicrohttpd has it again.
        case closed
    }

    /// The number of its exchange, by which the loop and the poller identify the connection.
    let number: UInt64
    let descriptor: Int32
    let client: String
    let isHead: Bool
    /// Whether a stream comes in chunks.
    let isChunked: Bool
    /// Whether the server closes the connection after the answer.
    let closesAfterAnswer: Bool
    /// Whether a handler works on the request, so that a stop leaves it the grace time.
    let isOfWork: Bool
    /// The figures of its request, for the count.
    let counted: CountedRequest?
    var phase: Phase
    /// How many bytes all requests on the socket take.
    let consumedCount: Int?
    /// Whether there are bytes of the next request in the socket.
    var hasInput = false
    /// Whether the client has finished sending.
    var hasHungUp = false
    /// Whether the connection is in the queue to send more in a later iteration.
    var isPaused = false
    /// The count of what the socket has not taken.
    var holding: MemoryBudget.Holding?
    /// When the socket last took bytes.
    var lastSent: LoopInstant
    /// How long the server may send nothing on a stream before the heartbeat is due.
    var heartbeat = Duration.zero

    init(
        number: UInt64, descriptor: Int32, client: String, isHead: Bool, isChunked: Bool, closesAfterAnswer: Bool,
        isOfWork: Bool, counted: CountedRequest?, consumedCount: Int?, phase: Phase, now: LoopInstant
    ) {
        self.number = number
        self.descriptor = descriptor
        self.client = client
        self.isHead = isHead
        self.isChunked = isChunked
        self.closesAfterAnswer = closesAfterAnswer
        self.isOfWork = isOfWork
        self.counted = counted
        self.consumedCount = consumedCount
        self.phase = phase
        lastSent = now
    }

}
