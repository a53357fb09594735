/// A submission with the one who waits for its outcome.
package final class Envelope: Sendable {
    package let submission: Submission
    /// Called once, on the store's queue, after the turn.
    package let complete: @Sendable (Outcome) -> Void
    /// Called once after `complete`, if there was a commit: when everything that it caused is over.
    package let settled: (@Sendable (CascadeReport) -> Void)?

    /// Addresses a submission.
    package init(
        _ submission: Submission, complete: @escaping @Sendable (Outcome) -> Void,
        settled: (@Sendable (CascadeReport) -> Void)? = nil
    ) {
        self.submission = submission
        self.complete = complete
        self.settled = settled
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
    /// A follow-up has room even when there is none for others: its cascade's budget bounds it, and clients that fill the
    /// mailbox must not break off what they have begun.
    ///
    /// - Returns: nil when it waits now, or what to answer when it was not taken.
    mutating func enqueue(_ envelope: Envelope) -> Outcome? {
        guard !isClosed else { return .draining }
        guard waiting.count < capacity || envelope.submission.lineage != nil else { return .full(.mailbox) }
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
