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

/// What waits for the next turn.
///
/// It is bounded: what does not fit is refused at the door.
struct Mailbox: Sendable {
    private var waiting: [Envelope] = []
    private let capacity: Int
    private(set) var isClosed = false
    /// Whether a turn is already on its way to the queue.
    private var isTurnDue = false

    init(capacity: Int) {
        self.capacity = capacity
    }

    var count: Int { waiting.count }

    /// Takes an envelope in.
    ///
    /// - Returns: nil when it waits now, or what to answer when it was not taken.
    mutating func enqueue(_ envelope: Envelope) -> Outcome? {
        guard !isClosed else { return .draining }
        guard waiting.count < capacity else { return .full(.mailbox) }
        waiting.append(envelope)
        return nil
    }

    /// Whether a turn has to be asked for; true for the first who asks until everything is taken.
    mutating func claimTurn() -> Bool {
        guard !isTurnDue, !waiting.isEmpty else { return false }
        isTurnDue = true
        return true
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
