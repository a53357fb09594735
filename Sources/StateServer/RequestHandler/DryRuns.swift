internal import StateStore
internal import Synchronization

/// The dry runs of a request, computed as slow work beside the turns; between two of them other clients have theirs.
final class DryRuns: Sendable {
    private struct Progress {
        var rest: ArraySlice<Transaction>
        var outcomes: LoadOutcomes
    }

    enum Standing {
        case wanted, abandoned
        case refused(Outcome)
    }

    private let progress: Mutex<Progress>
    private let store: UntypedStore
    private let schedule: Schedule
    private let client: String
    private let standing: @Sendable () -> Standing

    init(
        _ transactions: [Transaction], into outcomes: LoadOutcomes, store: UntypedStore, on schedule: Schedule,
        for client: String, standing: @escaping @Sendable () -> Standing
    ) {
        progress = Mutex(Progress(rest: transactions[...], outcomes: outcomes))
        self.store = store
        self.schedule = schedule
        self.client = client
        self.standing = standing
    }

    /// The outcomes come to `done` in order, on a thread for slow work; fewer if the client has gone.
    func run(_ done: @escaping @Sendable (LoadOutcomes) -> Void) {
        schedule.slow(.dryRun, client) { [self] in
            computeNext()
            let outcomes = progress.withLock { $0.rest.isEmpty ? $0.outcomes : nil }
            if let outcomes { done(outcomes) } else { run(done) }
        }
    }

    private func computeNext() {
        let standing = standing()
        guard case .wanted = standing else {
            // The rest of the run ends outside the lock: it is as long as the client has made it.
            let rest = progress.withLock { exchange(&$0.rest, with: []) }
            guard case .refused(let outcome) = standing else { return }
            return progress.withLock { $0.outcomes.append(outcome, count: rest.count) }
        }
        guard let next = progress.withLock({ $0.rest.popFirst() }) else { return }
        let outcome = store.dryRun(next, of: client)
        progress.withLock { $0.outcomes.append(outcome) }
    }
}
