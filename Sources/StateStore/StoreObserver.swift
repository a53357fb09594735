/// The functions that a store calls with the figures of its work, for metrics.
///
/// A store calls each of them once a turn, an append or a pass, and ``decided`` once for a run of equal actions: their cost is
/// shared by many actions. Any thread may call them, and none may block or call the store.
///
/// It is an object, because a copy of so many functions counts each of them.
package final class StoreObserver: Sendable {
    /// A monotonic clock, which the store reads twice a turn and twice an append.
    package let clock: @Sendable () -> Instant
    package let computed: @Sendable (_ transactionsCount: Int, _ time: Duration) -> Void
    /// Takes how many actions of a type have had an outcome, before their clients get it.
    package let decided: @Sendable (_ type: String, _ outcome: Outcome.Kind, _ count: Int) -> Void
    package let landed: @Sendable (_ commitsCount: Int) -> Void
    package let appended: @Sendable (_ result: AppendResult, _ commitsCount: Int, _ time: Duration) -> Void
    package let woken: @Sendable (_ watchesCount: Int) -> Void
    /// Takes how much later than its time a scheduled action is committed or refused.
    package let fired: @Sendable (_ late: Duration) -> Void

    package init(
        clock: @escaping @Sendable () -> Instant,
        computed: @escaping @Sendable (_ transactionsCount: Int, _ time: Duration) -> Void,
        decided: @escaping @Sendable (_ type: String, _ outcome: Outcome.Kind, _ count: Int) -> Void,
        landed: @escaping @Sendable (_ commitsCount: Int) -> Void,
        appended: @escaping @Sendable (_ result: AppendResult, _ commitsCount: Int, _ time: Duration) -> Void,
        woken: @escaping @Sendable (_ watchesCount: Int) -> Void,
        fired: @escaping @Sendable (_ late: Duration) -> Void = { _ in }
    ) {
        self.fired = fired
        self.clock = clock
        self.computed = computed
        self.decided = decided
        self.landed = landed
        self.appended = appended
        self.woken = woken
    }
}

extension Outcome {
    package enum Kind: String, Sendable, CaseIterable {
        case committed, replayed, nothing, rejected, full, unknown, failed, draining
        case dryRun = "dry_run"
        case preconditionFailed = "precondition_failed"
        case keyReused = "key_reused"
        case notRecorded = "not_recorded"
    }

    package var kind: Kind {
        switch self {
        case .committed(let receipt): receipt.isReplay ? .replayed : .committed
        case .wouldCommit: .dryRun
        case .nothingCommitted: .nothing
        case .rejected: .rejected
        case .preconditionFailed: .preconditionFailed
        case .keyReused: .keyReused
        case .full: .full
        case .notRecorded: .notRecorded
        case .unknown: .unknown
        case .failed: .failed
        case .draining: .draining
        }
    }
}

/// The tally of a turn's actions: neighbours with one type and one outcome are reported as one run.
struct ActionTally {
    private let report: @Sendable (_ type: String, _ outcome: Outcome.Kind, _ count: Int) -> Void
    private var run: (type: String, outcome: Outcome.Kind, count: Int)?

    init(_ observer: StoreObserver) { report = observer.decided }

    mutating func add(_ transaction: Transaction, _ outcome: Outcome) {
        let kind = outcome.kind
        for index in transaction.items.indices {
            var type = transaction.type(at: index)
            if type == nil, case .committed(let receipt) = outcome { type = receipt.types.first }
            guard let type else { continue }
            if let run, run.outcome == kind, run.type == type {
                self.run?.count += 1
            } else {
                end()
                run = (type, kind, 1)
            }
        }
    }

    mutating func end() {
        guard let run else { return }
        report(run.type, run.outcome, run.count)
        self.run = nil
    }
}
