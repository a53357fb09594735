import Glibc
import HTTPMessages

/// A client's connection that the loop has taken from libmicrohttpd.
///
/// The loop does not keep its request. Only the loop thread uses it.
final class ParkedConnection {
    enum Phase {
        case waiting(Exchange)
        case answering(Outgoing, isLast: Bool)
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
    let isChunked: Bool
    let closesAfterAnswer: Bool
    /// Whether a handler works on the request, so that a stop leaves it the grace time.
    let isOfWork: Bool
    let counted: CountedRequest?
    var phase: Phase
    let consumedCount: Int?
    var hasInput = false
    var hasHungUp = false
    var isPaused = false
    var holding: MemoryBudget.Holding?
    var lastSent: LoopInstant
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
