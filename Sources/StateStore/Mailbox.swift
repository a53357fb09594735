/// A submission with the one who waits for its outcome.
package struct Envelope: Sendable {
    package let submission: Submission
    /// Called once, on the store's queue, after the turn.
    package let complete: @Sendable (Outcome) -> Void

    /// Addresses a submission.
    package init(_ submission: Submission, complete: @escaping @Sendable (Outcome) -> Void) {
        self.submission = submission
        self.complete = complete
    }
}

/// What waits for the next turn. It is bounded: what does not fit is refused at the door.
struct Mailbox: Sendable {
    private var waiting: [Envelope] = []
    private let capacity: Int
    private(set) var isClosed = false
    /// Whether a turn is already on its way to the queue.
    private var isTurnDue = false

    init(capacity: Int) {
        self.capacity = capacity
    }

    /// What to do after posting.
    enum Posted {
        /// Nothing: a turn is on its way.
        case waits
        /// Have a turn run.
        case needsTurn
        /// Nothing was taken: say so to the sender.
        case refused(Outcome)
    }

    var count: Int { waiting.count }

    mutating func post(_ envelope: Envelope) -> Posted {
        guard !isClosed else { return .refused(.draining) }
        guard waiting.count < capacity else { return .refused(.full(.mailbox)) }
        waiting.append(envelope)
        if isTurnDue { return .waits }
        isTurnDue = true
        return .needsTurn
    }

    /// Takes everything, in the order it came.
    mutating func takeAll() -> [Envelope] {
        isTurnDue = false
        let taken = waiting
        waiting = []
        return taken
    }

    /// Refuses what comes from now on; what waits is still taken.
    mutating func close() {
        isClosed = true
    }
}
