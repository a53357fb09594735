internal import StateJSON
internal import Synchronization

struct Firing: Sendable {
    /// Whether this process writes, which the store asks before each look; of several on one history, one does.
    let mayWrite: @Sendable () -> Bool
    /// The reason for which the sender may not dispatch the action any more, or nil.
    let judge: @Sendable (ScheduledAction, any Action) -> Rejection?
    /// The time of the wall clock at which the schedule is looked at next; nil for no look.
    var nextLook: Timestamp?
    var pendingCount = 0
    var batch = FiringBatch()

    static let batchMax = 1000
    /// The longest time between two looks, in which a jump of the wall clock may go unnoticed.
    static let lookMax = Duration.seconds(1)
}

final class FiringBatch: Sendable {
    private let failed = Atomic(false)
    /// Whether the journal or the mailbox has not taken one of them, or one is not due in its turn, by a clock that has gone
    /// back; the store tries again.
    var hasFailed: Bool { failed.load(ordering: .relaxed) }

    func fail() { failed.store(true, ordering: .relaxed) }
}

extension UntypedStore {
    /// Begins to dispatch the scheduled actions: those that are overdue at once, and the others at their times.
    ///
    /// A store dispatches none before this call, so a replay and a fork dispatch none at all.
    package func beginFiring(
        mayWrite: @escaping @Sendable () -> Bool = { true },
        judge: @escaping @Sendable (ScheduledAction, any Action) -> Rejection? = { _, _ in nil }
    ) {
        firing.withLock { $0 = Firing(mayWrite: mayWrite, judge: judge) }
        let time = now()
        let overdue = latest.schedule.due(at: time, limit: .max)
        if let first = overdue.first, mayWrite() {
            report(
                .scheduledLate(
                    count: overdue.count, by: .milliseconds(time.milliseconds &- first.due.milliseconds)))
        }
        armTimer()
    }

    /// Has the schedule looked at when its first action is due, or a second later where that is earlier.
    func armTimer(after pause: Duration = .zero) {
        guard let first = latest.schedule.first else { return }
        let wait = firing.withLock { firing -> Duration? in
            guard firing != nil, firing?.pendingCount == 0 else { return nil }
            let time = now()
            let left = Duration.milliseconds(max(0, min(first.due.milliseconds &- time.milliseconds, 1 << 40)))
            let wait = max(pause, min(left, Firing.lookMax))
            let look = time.advanced(by: wait)
            if let next = firing?.nextLook, next <= look { return nil }
            firing?.nextLook = look
            return wait
        }
        if let wait { onQueue(after: wait) { [weak self] in self?.dispatchDue() } }
    }

    /// Dispatches what is due, in order; a caller is on the store's queue.
    func dispatchDue() {
        let current = firing.withLock { firing -> Firing? in
            guard firing?.pendingCount == 0 else { return nil }
            firing?.nextLook = nil
            return firing
        }
        guard let firing = current else { return }
        let due = firing.mayWrite() ? latest.schedule.due(at: now(), limit: Firing.batchMax) : []
        guard !due.isEmpty else { return armTimer(after: firing.mayWrite() ? .zero : Firing.lookMax) }
        let batch = FiringBatch()
        self.firing.withLock { firing in
            firing?.pendingCount = due.count
            firing?.batch = batch
        }
        for action in due { dispatch(action, in: batch, judgedBy: firing.judge) }
        flush()
    }

    private func dispatch(
        _ action: ScheduledAction, in batch: FiringBatch,
        judgedBy judge: @Sendable (ScheduledAction, any Action) -> Rejection?
    ) {
        do throws(Rejection) {
            let (decoded, node) = try domain.action(in: action.action, code: "invalid-action")
            if let rejection = judge(action, decoded) { throw rejection }
            let meta = node.members?.first { $0.key == "meta" }?.value.text
            let item = Transaction.Item(decoded, id: action.id, meta: meta, sent: action.action)
            let transaction = transaction(of: action, item, in: batch)
            enqueue(
                PendingTransaction(transaction) { [weak self] outcome in
                    guard let self else { return }
                    switch outcome {
                    case .rejected(let rejection, _): refuse(action, rejection, in: batch)
                    case .failed:
                        let rejection = Rejection("internal-error", "the state that it makes cannot be encoded")
                        refuse(action, rejection, in: batch)
                    // Where it is gone from the schedule, another process may have dispatched it.
                    case .nothingCommitted where latest.schedule.has(action):
                        refuse(action, Rejection("nothing-committed", "it made nothing to commit"), in: batch)
                    case .committed, .nothingCommitted: ended(action, isDone: true)
                    case .wouldCommit, .preconditionFailed, .keyReused, .full, .notRecorded, .unknown, .draining:
                        ended(action, isDone: false)
                    }
                })
        } catch { refuse(action, error, in: batch) }
    }

    private func refuse(_ action: ScheduledAction, _ rejection: Rejection, in batch: FiringBatch) {
        let refused = StoreRefused(
            action: action.type, name: action.name.text, code: rejection.code, detail: rejection.detail)
        let transaction = transaction(of: action, .init(refused, id: action.id), in: batch)
        if let causation = transaction.causation {
            let refusal = CascadeReport.Refused(
                type: action.type, cause: causation.cause ?? "", code: rejection.code, detail: rejection.detail)
            report(.followUpRefused(refusal, root: causation.root))
        }
        submit(
            PendingTransaction(transaction) { [weak self] outcome in
                self?.ended(action, isDone: outcome.mayBeginCascade)
            })
    }

    private func transaction(
        of action: ScheduledAction, _ item: Transaction.Item, in batch: FiringBatch
    ) -> Transaction {
        let cause = Cursor(latest.cursor.epoch, action.version).description
        let causation = Causation(
            cause: cause, root: action.root ?? cause, rootVersion: action.version, depth: 0, subject: action.name.by,
            chain: action.chain.next)
        return Transaction([item], subject: action.name.by, origin: .init(causation, due: (action, batch)))
    }

    private func ended(_ action: ScheduledAction, isDone: Bool) {
        if isDone { observer?.fired(.milliseconds(max(0, now().milliseconds &- action.due.milliseconds))) }
        let pause = firing.withLock { firing -> Duration? in
            firing?.pendingCount -= 1
            if !isDone { firing?.batch.fail() }
            guard let firing, firing.pendingCount == 0 else { return nil }
            return firing.batch.hasFailed ? Firing.lookMax : .zero
        }
        if let pause { armTimer(after: pause) }
    }
}
