import HTTPMessages

/// A client's socket that libmicrohttpd has given up while nothing is to be read or written but by us.
///
/// Its request waits, or is a stream, or has been answered and the client's next one has not come yet. Nothing of the
/// request is kept: a parked connection costs its socket and this object. Belongs to the loop thread.
final class ParkedConnection {
    /// Where it stands.
    enum Phase {
        /// Its request waits for an answer.
        case waiting(Exchange)
        /// The answer has not gone out whole yet.
        case answering(Outgoing, isLast: Bool)
        /// The next request is awaited.
        case resting
        /// A stream, with what has not gone out yet.
        case streaming(Exchange, Outgoing?)
        /// Nothing more will happen.
        case closed
    }

    /// Bytes on their way, shared with others who get the same.
    struct Outgoing {
        let bytes: [UInt8]
        var sentCount = 0
    }

    /// The number of its exchange, under which the loop and the poller know it.
    let number: UInt64
    let descriptor: Int32
    let isHead: Bool
    /// Whether the answer has to end the connection.
    let closesAfterAnswer: Bool
    /// How many bytes its requests have taken up so far.
    let consumedCount: Int
    var phase: Phase
    /// Whether the client has sent something since, or has closed its side.
    var hasInput = false
    var hasHungUp = false
    /// When something last went out.
    var lastSent: ContinuousClock.Instant
    /// How long a stream may be silent.
    var heartbeat = Duration.zero

    init(
        number: UInt64, descriptor: Int32, isHead: Bool, closesAfterAnswer: Bool, consumedCount: Int,
        phase: Phase, now: ContinuousClock.Instant
    ) {
        self.number = number
        self.descriptor = descriptor
        self.isHead = isHead
        self.closesAfterAnswer = closesAfterAnswer
        self.consumedCount = consumedCount
        self.phase = phase
        lastSent = now
    }
}
