/// A transaction with the functions that take its outcome.
package final class PendingTransaction: Sendable {
    package let transaction: Transaction
    /// The store calls this once, after the turn, on its queue; on the enqueuing thread where the mailbox refuses.
    package let complete: @Sendable (Outcome) -> Void
    /// The store calls this once after `complete` when the cascade of the commit is complete; without a commit, never.
    package let completed: (@Sendable (CascadeReport) -> Void)?
    /// The name by which ``AnyStore/stopAwaitingCascade(of:_:)`` finds `completed`.
    let watcherID: UInt64
    /// Measures the turn; nil for a turn that need not be measured.
    let meter: TurnMeter?

    package init(
        _ transaction: Transaction, watcherID: UInt64 = 0, meter: TurnMeter? = nil,
        complete: @escaping @Sendable (Outcome) -> Void,
        completed: (@Sendable (CascadeReport) -> Void)? = nil
    ) {
        self.transaction = transaction
        self.watcherID = watcherID
        self.meter = meter
        self.complete = complete
        self.completed = completed
    }
}

/// The bounded queue of the transactions that wait for the next turn.
///
/// A transaction keeps its room until its turn has landed: clients that are faster than the disk fill the mailbox.
struct Mailbox: Sendable {
    private var waiting: [PendingTransaction] = []
    /// How many actions the waiting transactions have in all.
    private var itemsCount = 0
    /// The most actions of a turn that a thread which serves clients may run.
    private static let shortItemsMax = 1024
    /// How many transactions belong to turns that have not landed.
    private var inFlightCount = 0
    private let capacity: Int
    private(set) var isClosed = false
    /// Whether a turn is scheduled that has not begun.
    private var isTurnDue = false

    init(capacity: Int) {
        self.capacity = capacity
    }

    /// How many transactions wait for a turn, or for its landing.
    var count: Int { waiting.count + inFlightCount }

    /// Appends a pending transaction.
    ///
    /// A full mailbox still takes a follow-up: the budget of its cascade bounds it, and clients that fill the mailbox must
    /// not end a cascade.
    ///
    /// - Returns: the outcome of a transaction that the mailbox refuses; nil for one that now waits.
    mutating func enqueue(_ pending: PendingTransaction) -> Outcome? {
        guard !isClosed else { return .draining }
        guard count < capacity || pending.transaction.causation != nil else { return .full(.mailbox) }
        waiting.append(pending)
        itemsCount += pending.transaction.items.count
        return nil
    }

    /// Whether the turn of the waiting transactions has few actions.
    var isShort: Bool { itemsCount <= Self.shortItemsMax }

    /// Whether the caller has to schedule a turn; true for one caller until ``takeAll()``.
    mutating func claimTurn() -> Bool {
        guard !isTurnDue, !waiting.isEmpty else { return false }
        isTurnDue = true
        return true
    }

    /// Removes all transactions and returns them in the order in which they were enqueued.
    mutating func takeAll() -> [PendingTransaction] {
        isTurnDue = false
        let taken = waiting
        waiting = []
        itemsCount = 0
        inFlightCount += taken.count
        return taken
    }

    /// Gives back the room of transactions whose turn has landed or failed.
    mutating func release(_ count: Int) { inFlightCount -= count }

    /// Refuses every later transaction; ``takeAll()`` still returns the waiting ones.
    mutating func close() {
        isClosed = true
    }
}
