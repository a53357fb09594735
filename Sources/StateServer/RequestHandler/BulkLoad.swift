internal import MicroHTTP
internal import StateStore
internal import Synchronization

/// The transactions of a bulk load, which reach the store in batches, each after the landing of the one before.
///
/// A turn has eight, so that another client's action waits for these only; all loads have half of the mailbox.
final class BulkLoad: Sendable {
    enum Standing {
        case wanted, abandoned
        case refused(Outcome)
    }

    private static let batchTransactionsMax = 64
    private static let batchBytesMax = 256 << 10
    private static let turnTransactionsMax = 8

    private let progress: Mutex<LoadProgress>
    private let client: String
    private let store: UntypedStore
    private let loads: BulkLoads
    private let standing: @Sendable () -> Standing

    init(
        _ transactions: [Transaction], of client: String, into outcomes: LoadOutcomes, store: UntypedStore,
        among loads: BulkLoads, standing: @escaping @Sendable () -> Standing = { .wanted }
    ) {
        progress = Mutex(LoadProgress(rest: transactions[...], outcomes: outcomes))
        self.client = client
        self.store = store
        self.loads = loads
        self.standing = standing
    }

    /// The outcomes come to `done` in order, on the thread of the last turn; fewer if the client has gone.
    func run(_ done: @escaping @Sendable (LoadOutcomes) -> Void) {
        loads.begin()
        proceed { [loads] outcomes in
            loads.end()
            done(outcomes)
        }
    }

    /// Enqueues batches in a loop: a mailbox that is closed or full refuses one before this thread goes on.
    private func proceed(_ done: @escaping @Sendable (LoadOutcomes) -> Void) {
        while let batch = nextBatch() {
            let collector = OutcomeCollector(count: batch.count)
            enqueue(batch[...], collector)
            let outcomes = collector.outcomes { [self] outcomes in
                take(outcomes)
                if progress.withLock({ $0.rest.isEmpty }) { return proceed(done) }
                // A turn that already waits comes first, without the next batch.
                store.onQueueLater { [self] in
                    proceed(done)
                    store.flush()
                }
            }
            guard let outcomes else { return }
            take(outcomes)
        }
        done(progress.withLock { $0.outcomes })
    }

    private func enqueue(_ batch: ArraySlice<Transaction>, _ collector: OutcomeCollector) {
        // A store that stops waits for two further turns at most, and refuses all the same.
        let count = collector.isDraining ? batch.count : Self.turnTransactionsMax
        for (index, transaction) in zip(batch.indices, batch).prefix(count) {
            store.enqueue(PendingTransaction(transaction, client: client) { collector.set(index, $0) })
        }
        let rest = batch.dropFirst(count)
        guard !rest.isEmpty else { return }
        store.flush()
        store.onQueueLater { [self] in
            store.onQueueLater { [self] in
                enqueue(rest, collector)
                store.flush()
            }
        }
    }

    private func nextBatch() -> [Transaction]? {
        let standing = standing()
        guard case .wanted = standing else {
            _ = progress.withLock { $0.end(standing) }
            return nil
        }
        let room = max(1, min(Self.batchTransactionsMax, store.mailboxMax / 2 / max(1, loads.count)))
        return progress.withLock { progress in
            guard !progress.rest.isEmpty else { return nil }
            var bytesLeft = Self.batchBytesMax
            let batch = progress.rest.prefix(room).prefix(while: { transaction in
                defer { bytesLeft -= transaction.sentBytesCount }
                return bytesLeft > 0
            })
            progress.rest = progress.rest.dropFirst(batch.count)
            return progress.outcomes.isFull ? batch.map(\.withoutRepresentation) : Array(batch)
        }
    }

    private func take(_ outcomes: [Outcome]) {
        _ = progress.withLock { progress -> ArraySlice<Transaction> in
            for outcome in outcomes { progress.outcomes.append(outcome) }
            return if case .draining? = outcomes.last { progress.end(.refused(.draining)) } else { [] }
        }
    }
}

struct LoadProgress {
    var rest: ArraySlice<Transaction>
    var outcomes: LoadOutcomes

    /// Ends a load; the caller drops its rest outside the lock, because it is as long as the client has made it.
    mutating func end(_ standing: BulkLoad.Standing) -> ArraySlice<Transaction> {
        if case .refused(let outcome) = standing { outcomes.append(outcome, count: rest.count) }
        return exchange(&rest, with: [])
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
        var isDraining = false
        var values: [Outcome?]
        var done: (@Sendable ([Outcome]) -> Void)?
    }

    private let state: Mutex<State>

    init(count: Int) { state = Mutex(State(missingCount: count, values: Array(repeating: nil, count: count))) }

    func set(_ index: Int, _ outcome: Outcome) {
        let (done, outcomes) = state.withLock { state -> ((@Sendable ([Outcome]) -> Void)?, [Outcome]) in
            state.values[index] = outcome
            if case .draining = outcome { state.isDraining = true }
            state.missingCount -= 1
            guard state.missingCount == 0, let done = state.done.take() else { return (nil, []) }
            return (done, state.values.compactMap(\.self))
        }
        done?(outcomes)
    }

    var isDraining: Bool { state.withLock { $0.isDraining } }

    func outcomes(orLater done: @escaping @Sendable ([Outcome]) -> Void) -> [Outcome]? {
        state.withLock { state in
            guard state.missingCount > 0 else { return state.values.compactMap(\.self) }
            state.done = done
            return nil
        }
    }
}

struct LoadOutcomes: Sendable {
    static let valuesBytesMax = 16 << 20
    /// About so much memory the outcome of a line and its answer take without values.
    private static let lineBytes = 400

    private(set) var all: [Outcome] = []
    private(set) var isFull = false
    private(set) var hasValues = false
    private let memory: MemoryBudget
    private var bytesLeft: Int
    private var reservedBytes: Int

    init?(of linesCount: Int, valuesBytesMax: Int = Self.valuesBytesMax, in memory: MemoryBudget) {
        reservedBytes = linesCount * Self.lineBytes
        guard memory.reserve(reservedBytes) == nil else { return nil }
        self.memory = memory
        bytesLeft = valuesBytesMax
    }

    mutating func append(_ outcome: Outcome) {
        let bytes = outcome.valuesBytesCount
        guard bytes > 0 else { return all.append(outcome) }
        // The answer has them once more.
        guard !isFull, bytes <= bytesLeft, memory.reserve(2 * bytes) == nil else {
            isFull = true
            return all.append(outcome.withoutValues)
        }
        reservedBytes += 2 * bytes
        bytesLeft -= bytes
        hasValues = true
        all.append(outcome)
    }

    mutating func append(_ outcome: Outcome, count: Int) { all += repeatElement(outcome, count: count) }

    func release() { memory.release(reservedBytes) }
}
