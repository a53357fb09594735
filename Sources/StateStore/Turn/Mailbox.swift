/// A transaction with the one who waits for its outcome.
package final class PendingTransaction: Sendable {
    package let transaction: Transaction
    /// Called once, on the store's queue, after the turn.
    package let complete: @Sendable (Outcome) -> Void
    /// Called once after `complete`, if there was a commit: when everything that it caused is over.
    package let completed: (@Sendable (CascadeReport) -> Void)?

    /// Addresses a transaction.
    package init(
        _ transaction: Transaction, complete: @escaping @Sendable (Outcome) -> Void,
        completed: (@Sendable (CascadeReport) -> Void)? = nil
    ) {
        self.transaction = transaction
        self.complete = complete
        self.completed = completed
    }
}

/// What waits for the next turn.
///
/// It is bounded: what does not fit is refused at the door.
struct Mailbox: Sendable {
    private var waiting: [PendingTransaction] = []
    private let capacity: Int
    private(set) var isClosed = false
    /// Whether a turn is already on its way to the queue.
    private var isTurnDue = false

    init(capacity: Int) {
        self.capacity = capacity
    }

    var count: Int { waiting.count }

    /// Takes an pending in.
    ///
    /// A follow-up has room even when there is none for others: its cascade's budget bounds it, and clients that fill the
    /// mailbox must not break off what they have begun.
    ///
    /// - Returns: nil when it waits now, or what to answer when it was not taken.
    mutating func enqueue(_ pending: PendingTransaction) -> Outcome? {
        guard !isClosed else { return .draining }
        guard waiting.count < capacity || pending.transaction.causation != nil else { return .full(.mailbox) }
        waiting.append(pending)
        return nil
    }

    /// Whether a turn has to be asked for; true for the first who asks until everything is taken.
    mutating func claimTurn() -> Bool {
        guard !isTurnDue, !waiting.isEmpty else { return false }
        isTurnDue = true
        return true
    }

    /// Takes everything, in the order it came.
    mutating func takeAll() -> [PendingTransaction] {
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
