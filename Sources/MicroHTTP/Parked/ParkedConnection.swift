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
    let options: ResponseOptions
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
        _ connection: ClientConnection, number: UInt64, descriptor: Int32, _ options: ResponseOptions, phase: Phase,
        now: LoopInstant
    ) {
        self.number = number
        self.descriptor = descriptor
        self.options = options
        self.phase = phase
        (client, counted, consumedCount) = (connection.client, connection.counted, connection.consumedCount)
        lastSent = now
    }
}
