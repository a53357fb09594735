internal import MicroHTTP
internal import StateStore
internal import Synchronization

/// The transactions of a bulk load, which reach the store in batches.
///
/// All loads together have batches as large as the store can take in about two milliseconds of processor time, each at
/// most 1024 and at most half of the mailbox: the actions of other clients wait no longer for their turn, and the mailbox
/// keeps room for them. A load whose client has gone ends behind the batch in hand.
final class BulkLoad: Sendable {
    private struct Progress {
        var rest: ArraySlice<Transaction>
        var outcomes: LoadOutcomes
        var batch: BatchSize
    }

    private let progress: Mutex<Progress>
    private let client: String
    private let store: any AnyStore
    private let loads: BulkLoads
    private let standing: @Sendable () -> DryRuns.Standing

    init(
        _ transactions: [Transaction], of client: String, into outcomes: LoadOutcomes, store: any AnyStore,
        among loads: BulkLoads, standing: @escaping @Sendable () -> DryRuns.Standing = { .wanted }
    ) {
        // A value that is compared or sent with each line may be large.
        let hasValues = transactions.contains { $0.isConditional || $0.wantsRepresentation }
        progress = Mutex(
            Progress(rest: transactions[...], outcomes: outcomes, batch: BatchSize(first: hasValues ? 1 : 8)))
        self.client = client
        self.store = store
        self.loads = loads
        self.standing = standing
    }

    /// Enqueues the first batch, and each further one after the turn of the one before.
    ///
    /// - Parameter done: takes the outcomes in order, on the thread of the last turn; fewer where the client has gone.
    func run(_ done: @escaping @Sendable (LoadOutcomes) -> Void) {
        loads.begin()
        proceed { [loads] outcomes in
            loads.end()
            done(outcomes)
        }
    }

    /// Enqueues batches until one has to wait for its turn, or none is left.
    ///
    /// A mailbox that is closed or full refuses a batch before this thread goes on, so this is a loop.
    private func proceed(_ done: @escaping @Sendable (LoadOutcomes) -> Void) {
        while let batch = nextBatch() {
            let (collector, meter) = (OutcomeCollector(count: batch.count), TurnMeter())
            for (index, transaction) in batch.enumerated() {
                store.enqueue(
                    PendingTransaction(transaction, client: client, meter: meter) { collector.set(index, $0) })
            }
            let outcomes = collector.outcomes { [self] outcomes in
                take(outcomes, costing: meter.cost)
                if progress.withLock({ $0.rest.isEmpty }) { return proceed(done) }
                // A turn that already waits comes first, without the next batch.
                store.afterWaitingTurns { [self] in
                    proceed(done)
                    store.flush()
                }
            }
            guard let outcomes else { return }
            take(outcomes, costing: .zero)
        }
        done(progress.withLock { $0.outcomes })
    }

    private func nextBatch() -> [Transaction]? {
        let standing = standing()
        guard case .wanted = standing else {
            if case .refused(let outcome) = standing {
                progress.withLock { $0.outcomes.append(outcome, count: $0.rest.count) }
            }
            return nil
        }
        // Half of the mailbox is for all loads together.
        let room = max(1, store.mailboxMax / 2 / max(1, loads.count))
        return progress.withLock { progress in
            guard !progress.rest.isEmpty else { return nil }
            let batch = progress.rest.prefix(min(progress.batch.count, room))
            progress.rest = progress.rest.dropFirst(batch.count)
            return progress.outcomes.isFull ? batch.map(\.withoutRepresentation) : Array(batch)
        }
    }

    private func take(_ outcomes: [Outcome], costing cost: Duration) {
        // The rest ends outside the lock: it is as long as the client has made it.
        _ = progress.withLock { progress -> ArraySlice<Transaction> in
            for outcome in outcomes { progress.outcomes.append(outcome) }
            progress.batch.adapt(to: cost, of: outcomes.count, among: loads.count)
            // A store that stops takes nothing more.
            guard case .draining? = outcomes.last else { return [] }
            progress.outcomes.append(.draining, count: progress.rest.count)
            return exchange(&progress.rest, with: [])
        }
    }
}

final class BulkLoads: Sendable {
    private let active = Atomic(0)

    var count: Int { active.load(ordering: .relaxed) }

    func begin() { active.add(1, ordering: .relaxed) }

    func end() { active.subtract(1, ordering: .relaxed) }
}

private final class OutcomeCollector: Sendable {
    private struct State {
        var missingCount: Int
        var values: [Outcome?]
        var done: (@Sendable ([Outcome]) -> Void)?
    }

    private let state: Mutex<State>

    init(count: Int) { state = Mutex(State(missingCount: count, values: Array(repeating: nil, count: count))) }

    func set(_ index: Int, _ outcome: Outcome) {
        let (done, outcomes) = state.withLock { state -> ((@Sendable ([Outcome]) -> Void)?, [Outcome]) in
            state.values[index] = outcome
            state.missingCount -= 1
            guard state.missingCount == 0, let done = state.done.take() else { return (nil, []) }
            return (done, state.values.compactMap(\.self))
        }
        done?(outcomes)
    }

    /// Returns the outcomes if all are there, and otherwise calls a function with them later.
    func outcomes(orLater done: @escaping @Sendable ([Outcome]) -> Void) -> [Outcome]? {
        state.withLock { state in
            guard state.missingCount > 0 else { return state.values.compactMap(\.self) }
            state.done = done
            return nil
        }
    }
}

/// How many transactions of a bulk load reach the store at once, by what the turns of its batches have cost.
///
/// A turn has a cost of its own, such as that of finding a value which all lines expect, and a cost for each transaction.
/// Two batches of different sizes tell them apart.
struct BatchSize {
    private(set) var count: Int
    private var last: (count: Int, nanoseconds: Double)?
    /// The cost of a further transaction, from the second batch on.
    private var transactionNanoseconds: Double?
    /// The cost that the batches of all loads may have together.
    static let time = Duration.milliseconds(2)
    /// The mailbox keeps room for other clients.
    static let countMax = 1024

    init(first count: Int = 8) { self.count = count }

    /// Takes the cost of the turn of a batch.
    ///
    /// The next one is as large as costs the stated time, divided by the number of loads that are under way. Where the turn
    /// itself costs more than that, a batch may cost as much again: a smaller one would hardly be quicker, and the load
    /// would have more turns. It grows twofold to fourfold at most, because a few transactions say little.
    mutating func adapt(to cost: Duration, of measuredCount: Int, among loadsCount: Int) {
        let taken = cost / .nanoseconds(1)
        let allowed = Self.time / .nanoseconds(1) / Double(max(1, loadsCount))
        let before = last
        last = (measuredCount, taken)
        if let before, 2 * abs(measuredCount - before.count) >= max(measuredCount, before.count) {
            transactionNanoseconds = max(0, (taken - before.nanoseconds) / Double(measuredCount - before.count))
        } else if taken > 2 * allowed {
            // Two batches of nearly equal size do not separate the two costs; half of the size does.
            transactionNanoseconds = nil
        }
        let most = min(Self.countMax, (taken <= allowed ? 4 : 2) * measuredCount)
        guard let each = transactionNanoseconds else {
            count = taken <= allowed ? most : max(1, measuredCount / 2)
            return
        }
        // No transaction costs more than the whole turn.
        let further = min(each, taken / Double(measuredCount))
        let fixed = max(0, taken - further * Double(measuredCount))
        let fitting = further > 0 ? max(allowed - fixed, fixed) / further : Double(most)
        count = max(1, Int(min(fitting, Double(most))))
    }
}

/// The outcomes of a bulk load so far, with a bound on the values in them, which count in the memory budget.
///
/// The new values, the patches, and the expected and actual values of preconditions are values. Behind the bound, or where
/// the budget has no room, a line is answered without them: what it says of its commit comes in any case.
struct LoadOutcomes: Sendable {
    static let valuesBytesMax = 16 << 20
    /// About how many bytes the outcome of a line and its answer take without values.
    private static let lineBytes = 400

    private(set) var all: [Outcome] = []
    private(set) var isFull = false
    private(set) var hasValues = false
    private let memory: MemoryBudget
    private var bytesLeft: Int
    private var reservedBytes: Int

    /// Makes room for the outcomes of some lines, or returns nil if the budget has none.
    init?(of linesCount: Int, valuesBytesMax: Int = Self.valuesBytesMax, in memory: MemoryBudget) {
        reservedBytes = linesCount * Self.lineBytes
        guard memory.reserve(reservedBytes) else { return nil }
        self.memory = memory
        bytesLeft = valuesBytesMax
    }

    mutating func append(_ outcome: Outcome) {
        let bytes = outcome.valuesBytesCount
        guard bytes > 0 else { return all.append(outcome) }
        // The answer has them once more.
        guard !isFull, bytes <= bytesLeft, memory.reserve(2 * bytes) else {
            isFull = true
            return all.append(outcome.withoutValues)
        }
        reservedBytes += 2 * bytes
        bytesLeft -= bytes
        hasValues = true
        all.append(outcome)
    }

    mutating func append(_ outcome: Outcome, count: Int) { all += repeatElement(outcome, count: count) }

    /// Ends the count, when the answer is on its way.
    func release() { memory.release(reservedBytes) }
}
