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
    private let isAbandoned: @Sendable () -> Bool

    init(
        _ transactions: [Transaction], of client: String, into outcomes: LoadOutcomes, store: any AnyStore,
        among loads: BulkLoads, isAbandoned: @escaping @Sendable () -> Bool = { false }
    ) {
        // A value that is compared or sent with each line may be large.
        let hasValues = transactions.contains { $0.isConditional || $0.wantsRepresentation }
        progress = Mutex(
            Progress(rest: transactions[...], outcomes: outcomes, batch: BatchSize(first: hasValues ? 1 : 8)))
        self.client = client
        self.store = store
        self.loads = loads
        self.isAbandoned = isAbandoned
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

    /// The next batch, unless all are done or the client has gone.
    private func nextBatch() -> [Transaction]? {
        guard !isAbandoned() else { return nil }
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
        // What is left ends outside the lock: it is as long as the client has made it.
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

    /// Sets the outcome of a transaction; the last one to be set calls the function that waits for them, if there is one.
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
