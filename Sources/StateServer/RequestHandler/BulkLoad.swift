internal import StateStore
internal import Synchronization

/// The transactions of a bulk load, which reach the store in portions.
///
/// All loads together have portions as large as the store can take in about two milliseconds of processor time, each at
/// most 1024: the actions of other clients wait no longer for their turn, and the mailbox keeps room for them.
final class BulkLoad: Sendable {
    private struct Progress {
        var rest: ArraySlice<Transaction>
        var outcomes: [Outcome] = []
        var portion = PortionSize()
    }

    private let progress: Mutex<Progress>
    private let store: any AnyStore
    private let loads: BulkLoads

    init(_ transactions: [Transaction], store: any AnyStore, among loads: BulkLoads) {
        progress = Mutex(Progress(rest: transactions[...]))
        self.store = store
        self.loads = loads
    }

    /// Enqueues the first portion, and each further one after the turn of the one before.
    ///
    /// - Parameter done: takes the outcomes in order, on the thread of the last turn.
    func run(_ done: @escaping @Sendable ([Outcome]) -> Void) {
        loads.begin()
        dispatchNext { [loads] outcomes in
            loads.end()
            done(outcomes)
        }
    }

    private func dispatchNext(_ done: @escaping @Sendable ([Outcome]) -> Void) {
        let portion = progress.withLock { progress in
            let portion = progress.rest.prefix(progress.portion.count)
            progress.rest = progress.rest.dropFirst(portion.count)
            return portion
        }
        guard !portion.isEmpty else { return done(progress.withLock { $0.outcomes }) }
        let meter = TurnMeter()
        let collector = OutcomeCollector(count: portion.count) { [self] outcomes in
            let isComplete = progress.withLock { progress in
                progress.outcomes += outcomes
                progress.portion.adapt(to: meter.cost, of: portion.count, among: loads.count)
                return progress.rest.isEmpty
            }
            if isComplete { return dispatchNext(done) }
            // A turn that already waits comes first, without the next portion.
            store.afterWaitingTurns { [self] in
                dispatchNext(done)
                store.flush()
            }
        }
        for (index, transaction) in portion.enumerated() {
            // The first one measures the turn for all.
            store.enqueue(
                PendingTransaction(transaction, meter: index == 0 ? meter : nil) { collector.set(index, $0) })
        }
    }
}

/// The bulk loads that are under way in a server.
final class BulkLoads: Sendable {
    private let active = Atomic(0)

    var count: Int { active.load(ordering: .relaxed) }

    func begin() { active.add(1, ordering: .relaxed) }

    func end() { active.subtract(1, ordering: .relaxed) }
}

/// The collector: it gathers the outcomes of several transactions and calls back with all of them, in order.
private final class OutcomeCollector: Sendable {
    private let outcomes: Mutex<(missing: Int, values: [Outcome?])>
    private let done: @Sendable ([Outcome]) -> Void

    init(count: Int, done: @escaping @Sendable ([Outcome]) -> Void) {
        outcomes = Mutex((count, Array(repeating: nil, count: count)))
        self.done = done
    }

    /// Sets the outcome of a transaction; the last one to be set calls `done`.
    func set(_ index: Int, _ outcome: Outcome) {
        let all: [Outcome]? = outcomes.withLock { state in
            state.values[index] = outcome
            state.missing -= 1
            return state.missing == 0 ? state.values.compactMap(\.self) : nil
        }
        if let all { done(all) }
    }
}
