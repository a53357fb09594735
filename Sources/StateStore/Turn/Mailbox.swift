package struct PendingTransaction: Sendable {
    package let transaction: Transaction
    let taker: any OutcomeTaker

    package init(_ transaction: Transaction, _ taker: any OutcomeTaker) {
        (self.transaction, self.taker) = (transaction, taker)
    }

    package init(
        _ transaction: Transaction, client: String? = nil, watcherID: UInt64 = 0,
        complete: @escaping @Sendable (Outcome) -> Void,
        completed: (@Sendable (Outcome, CascadeReport) -> Void)? = nil
    ) {
        self.transaction = transaction
        taker = OutcomeFunction(client, complete, completed.map { AwaitedCascade(watcherID, $0) })
    }
}

package protocol OutcomeTaker: AnyObject, Sendable {
    /// To whose shares of the turns and of the idempotency keys the transaction counts: a subject, or else an address; nil
    /// for one of the process.
    var client: String? { get }

    var cascade: AwaitedCascade? { get }

    /// Takes the outcome: once, after the turn, on the store's queue; on the enqueuing thread where the mailbox refuses.
    func take(_ outcome: Outcome)
}

extension OutcomeTaker {
    package var cascade: AwaitedCascade? { nil }
}

private final class OutcomeFunction: OutcomeTaker {
    let client: String?
    let cascade: AwaitedCascade?
    private let complete: @Sendable (Outcome) -> Void

    init(_ client: String?, _ complete: @escaping @Sendable (Outcome) -> Void, _ cascade: AwaitedCascade?) {
        (self.client, self.complete, self.cascade) = (client, complete, cascade)
    }

    func take(_ outcome: Outcome) { complete(outcome) }
}

package final class AwaitedCascade: Sendable {
    /// The store calls this once behind the outcome, when the cascade is complete; where neither a commit nor a swallowed
    /// action could begin one, never.
    let completed: @Sendable (Outcome, CascadeReport) -> Void
    let watcherID: UInt64

    init(_ watcherID: UInt64, _ completed: @escaping @Sendable (Outcome, CascadeReport) -> Void) {
        (self.watcherID, self.completed) = (watcherID, completed)
    }
}

/// The queue of the transactions that wait for a turn.
///
/// A transaction keeps its room until its turn has landed: clients that are faster than the disk fill the mailbox.
struct Mailbox: Sendable {
    enum Place {
        case here
        case queue
    }

    private static let shortItemsMax = 1024

    private var waiting: [PendingTransaction] = []
    private var itemsCount = 0
    private var inFlightCount = 0
    private let capacity: Int
    private(set) var isClosed = false
    private var isTurnDue = false
    /// Whether a transaction waits that no loop runs.
    private var isSlow = false
    private var scheduledCount = 0
    private var rule = TurnRule()

    init(capacity: Int) {
        self.capacity = capacity
    }

    var count: Int { waiting.count + inFlightCount }

    /// The outcome of a refused transaction, or nil.
    ///
    /// A full mailbox takes a follow-up, which its cascade's budget bounds: clients that fill it must end no cascade.
    mutating func enqueue(_ pending: PendingTransaction) -> Outcome? {
        guard !isClosed else { return .draining }
        guard count < capacity || pending.transaction.causation != nil else { return .full(.mailbox) }
        waiting.append(pending)
        itemsCount += pending.transaction.items.count
        if pending.transaction.isLong || rule.hasHabits && rule.isSlow(pending.transaction) { isSlow = true }
        return nil
    }

    /// Where the caller has to have the next turn run; for one caller until ``takeTurn()``, and nil for all others.
    mutating func claimTurn(onLoop: Bool) -> Place? {
        guard !isTurnDue, !waiting.isEmpty else { return nil }
        isTurnDue = true
        if onLoop, itemsCount <= Self.shortItemsMax, scheduledCount == 0, !isSlow { return .here }
        scheduledCount += 1
        return .queue
    }

    mutating func endScheduledTurn() { scheduledCount -= 1 }

    /// Removes the waiting transactions; the caller puts back what ``TurnRule/takeRest(from:)`` returns, and notes the
    /// processor time where `isMeasured` is set.
    mutating func takeTurn() -> (transactions: [PendingTransaction], rule: TurnRule, isMeasured: Bool) {
        let hasSlow = isSlow
        (isTurnDue, isSlow) = (false, false)
        inFlightCount += waiting.count
        itemsCount = 0
        var rule = rule
        if isClosed { rule.countMax = .max }
        let isMeasured = hasSlow || rule.isMeasured(waiting)
        return (exchange(&waiting, with: []), rule, isMeasured)
    }

    mutating func putBack(_ rest: [PendingTransaction]) {
        waiting = rest + waiting
        itemsCount += rest.reduce(0) { $0 + $1.transaction.items.count }
        isSlow = isSlow || rest.contains { rule.isSlow($0.transaction) }
        inFlightCount -= rest.count
    }

    /// Notes the processor time of a turn, or without one that it took long by the clock.
    mutating func note(_ duration: Duration?, of transactions: [PendingTransaction]) {
        if let duration { rule.adapt(to: duration, of: transactions) } else { rule.suspect(transactions) }
    }

    mutating func release(_ count: Int) { inFlightCount -= count }

    mutating func close() {
        isClosed = true
    }
}

/// The rule of the turns: which transactions are slow, and how many of them a turn has.
///
/// A loop runs only what will be short as far as anybody knows: that spares two switches of threads, but all its
/// clients wait meanwhile. The cost is processor time, because a thread of a busy machine stands still now and then; to
/// ask for it costs as much as a small transaction, so only turns that may be long are measured. A long turn bounds the
/// slow transactions of the turns behind it, so that those of one client cannot make others wait again and again. A
/// turn has one slow transaction at least, because a transaction cannot be divided.
struct TurnRule: Sendable {
    private struct Habit: Sendable {
        /// Whether a turn took long by its processor time, and not only by the clock.
        var isSlow = false
        /// After so many further short turns nothing is known any more, but for ``TurnRule/lengths``.
        var shortTurnsLeft = TurnRule.habitTurns
    }

    static let longTime = Duration.milliseconds(5)
    private static let habitTurns = 100
    private static let habitTurnsMax = 1_000_000
    /// Behind so many short turns in a row there is no bound: bursts of long transactions are at least that far apart.
    private static let shortTurnsMax = 1000
    /// A bound that is higher says nothing.
    private static let boundMax = 1024

    var countMax = Int.max
    private var shortTurnsCount = 0
    /// By type; an action of no known type has the empty one.
    private var habits: [String: Habit] = [:]
    /// How many short turns in a row end the slowness of a type: ten times as many after each relapse, because a client
    /// may make a type look short, and slow turns of it would stop a loop again and again.
    private var lengths: [String: Int] = [:]

    func isSlow(_ transaction: Transaction) -> Bool {
        transaction.isLong || !habits.isEmpty && Self.types(of: transaction).contains { habits[$0]?.isSlow ?? false }
    }

    var hasHabits: Bool { !habits.isEmpty }

    func isMeasured(_ transactions: [PendingTransaction]) -> Bool {
        countMax != .max
            || !habits.isEmpty
                && transactions.contains { Self.types(of: $0.transaction).contains { habits[$0] != nil } }
    }

    /// Keeps the transactions of all clients in turn, as many slow ones as the turn may have.
    ///
    /// The others stay in this order, so that the next turn goes on with the clients that have had none. O(n log n), so
    /// no caller has the mailbox's lock.
    func takeRest(from transactions: inout [PendingTransaction]) -> [PendingTransaction] {
        guard transactions.count > countMax else { return [] }
        var counts: [String?: Int] = [:]
        let ranks = transactions.map { pending in
            counts[pending.taker.client, default: 0] += 1
            return counts[pending.taker.client, default: 0]
        }
        let order = transactions.indices.sorted { (ranks[$0], $0) < (ranks[$1], $1) }
        var (kept, rest, slowCount): ([PendingTransaction], [PendingTransaction], Int) = ([], [], 0)
        var waiting: Set<String?> = []
        for index in order {
            let pending = transactions[index]
            let isSlow = self.isSlow(pending.transaction)
            if waiting.contains(pending.taker.client) || isSlow && slowCount >= countMax {
                waiting.insert(pending.taker.client)
                rest.append(pending)
            } else {
                if isSlow { slowCount += 1 }
                kept.append(pending)
            }
        }
        transactions = kept
        return rest
    }

    mutating func suspect(_ transactions: [PendingTransaction]) {
        for type in Self.typesToLearn(of: transactions) where habits[type] == nil { habits[type] = Habit() }
    }

    mutating func adapt(to duration: Duration, of transactions: [PendingTransaction]) {
        let isLong = duration > Self.longTime
        let slowCount = transactions.count { isSlow($0.transaction) }
        for type in Self.typesToLearn(of: transactions) {
            if isLong {
                if habits[type]?.isSlow != true {
                    lengths[type] = lengths[type].map { min($0 * 10, Self.habitTurnsMax) } ?? Self.habitTurns
                }
                habits[type] = Habit(isSlow: true, shortTurnsLeft: lengths[type] ?? Self.habitTurns)
            } else if var habit = habits[type] {
                habit.shortTurnsLeft -= 1
                habits[type] = habit.shortTurnsLeft > 0 ? habit : nil
            }
        }
        adaptBound(to: duration, of: slowCount > 0 ? slowCount : transactions.count)
    }

    private mutating func adaptBound(to duration: Duration, of count: Int) {
        guard duration <= Self.longTime else {
            countMax = max(1, Int(Double(count) * (Self.longTime / duration)))
            shortTurnsCount = 0
            return
        }
        guard countMax != .max else { return }
        shortTurnsCount += 1
        // A turn with fewer transactions says nothing about one with more.
        if count >= countMax { countMax *= 2 }
        if countMax > Self.boundMax || shortTurnsCount >= Self.shortTurnsMax { countMax = .max }
    }

    /// The types in a turn, or none where a long transaction is the reason for its time.
    private static func typesToLearn(of transactions: [PendingTransaction]) -> Set<String> {
        guard !transactions.contains(where: { $0.transaction.isLong }) else { return [] }
        return Set(transactions.lazy.flatMap { types(of: $0.transaction) })
    }

    private static func types(of transaction: Transaction) -> some Sequence<String> {
        transaction.items.indices.lazy.map { transaction.type(at: $0) ?? "" }
    }
}
