internal import Dispatch
internal import StateJSON
internal import Synchronization

/// One authoritative state, changed only by actions, one turn after another on a serial queue.
///
/// Any thread may call any method, also inside a notification. Reading never waits for writing.
///
/// ```swift
/// let store = try Store(Counter())
/// let token = store.subscribe(\.value) { print($0) }
/// try store.dispatch(Counter.Add(amount: 2))
/// ```
public final class Store<State: StateType>: Sendable {
    /// Where a store begins: at the start of a history, or where a journal has left it.
    package struct Origin: Sendable {
        package var state: State
        package var cursor: Cursor
        package var keys: [KeyRecord]

        /// An origin; by default of a new history.
        package init(state: State, cursor: Cursor = Cursor(.random(), 0), keys: [KeyRecord] = []) {
            self.state = state
            self.cursor = cursor
            self.keys = keys
        }
    }

    /// Whether a subscription to an `Equatable` value skips what is equal to what it was told last.
    public let automaticallySkipsRepeats: Bool

    let model: CompiledDomain<State>
    /// The published present and everything that watches it.
    package let hub: WatchHub
    /// Where the commits go; nil for a store that keeps them in memory only.
    package let journal: (any Journal)?
    let queue = DispatchQueue(label: "storekeeper.store")
    let cascades: Mutex<Cascades>
    let effects: Effects
    let subscribers = Subscribers<State>()
    /// What is being told to subscribers; only looked at on the queue.
    let notification = Mutex<Notification<State>?>(nil)
    private let epoch: Epoch
    private let mailbox: Mutex<Mailbox>
    /// Changed only in a turn, on the queue; the mutex lets the compiler see that it is safe.
    let core: Mutex<Core<State>>
    /// In a mutex of their own: a middleware, a creator or a reducer may read and set them while a turn holds the core.
    private let installedMiddleware: Mutex<[Middleware<State>]>
    private let now: @Sendable () -> Timestamp
    let report: @Sendable (StoreEvent) -> Void

    package init(
        model: CompiledDomain<State>, middleware: [Middleware<State>] = [.validation],
        limits: StoreLimits = StoreLimits(),
        origin: Origin? = nil, automaticallySkipsRepeats: Bool = true, now: @escaping @Sendable () -> Timestamp,
        journal: (any Journal)? = nil, watchLimits: WatchLimits = WatchLimits(), journalOldest: Version? = nil,
        clock: @escaping @Sendable () -> Instant = { Instant(nanoseconds: 0) },
        queues: WatchHub.Queues = .dispatch(), report: @escaping @Sendable (StoreEvent) -> Void = { _ in }
    ) {
        let origin = origin ?? Origin(state: model.initial)
        let core = Core(
            model: model, epoch: origin.cursor.epoch, middleware: middleware, limits: limits, state: origin.state,
            version: origin.cursor.version, keys: origin.keys)
        self.model = model
        self.automaticallySkipsRepeats = automaticallySkipsRepeats
        epoch = origin.cursor.epoch
        mailbox = Mutex(Mailbox(capacity: limits.mailboxMax))
        cascades = Mutex(Cascades(limits: limits))
        effects = Effects(countMax: limits.effectsMax)
        hub = WatchHub(
            core.latest, catalogue: model.catalogue, limits: limits, watchLimits: watchLimits,
            journalOldest: journalOldest, queues: queues, now: clock)
        self.core = Mutex(core)
        self.journal = journal
        installedMiddleware = Mutex(middleware)
        self.report = report
        self.now = now
        journal?.follow { [weak self] in self?.takeInLater() }
    }

    /// The state after the last turn.
    public var state: State { latest.state }

    /// The version of ``state``.
    public var version: Version { latest.version }

    /// The steps that every action passes, in order; what is set is in force from the next turn on.
    public var middleware: [Middleware<State>] {
        get { installedMiddleware.withLock { $0 } }
        set {
            // What the old ones hold is let go of outside the lock.
            _ = installedMiddleware.withLock { exchange(&$0, with: newValue) }
        }
    }

    /// The published snapshot.
    var latest: Snapshot<State> {
        // The store publishes no other type.
        unsafeDowncast(hub.latest, to: Snapshot<State>.self)
    }

    /// Whether the present thread is inside a turn of this store.
    var isInOwnTurn: Bool { TurnMark.current?.store == ObjectIdentifier(self) }

    /// Runs something on the queue as part of a turn, and returns after it.
    func onQueue(_ body: () -> Void) {
        queue.sync { TurnMark.with(ObjectIdentifier(self), body) }
    }

    /// How many transactions wait for a turn.
    package var waitingCount: Int { mailbox.withLock { $0.count } }

    /// Hands a transaction over and returns; the outcome comes on the store's queue, after the turn.
    package func submit(_ pending: PendingTransaction) {
        enqueue(pending)
        flush()
    }

    /// Hands a transaction over without asking for a turn: ``flush()`` does, once for many.
    package func enqueue(_ pending: PendingTransaction) {
        if let refusal = mailbox.withLock({ $0.enqueue(pending) }) { pending.complete(refusal) }
    }

    /// Has a turn run for what was enqueued, if anything was.
    package func flush() {
        guard mailbox.withLock({ $0.claimTurn() }) else { return }
        queue.async { TurnMark.with(ObjectIdentifier(self)) { self.turn() } }
    }

    /// Runs a turn for what was enqueued, if anything was, and returns after it.
    ///
    /// It must not be called on the store's queue.
    package func flushNow() {
        dispatchPrecondition(condition: .notOnQueue(queue))
        guard mailbox.withLock({ $0.claimTurn() }) else { return }
        onQueue { turn() }
    }

    /// Hands a transaction over and waits for its turn.
    ///
    /// It must not be called on the store's queue: not in a reducer, a middleware or a notification.
    package func submitNow(_ transaction: Transaction) -> Outcome {
        dispatchPrecondition(condition: .notOnQueue(queue))
        let outcome = Mutex<Outcome>(.draining)
        let pending = PendingTransaction(transaction) { result in outcome.withLock { $0 = result } }
        // Even if a turn is already due, running one here is the shortest way, and the later one finds nothing.
        if let refusal = mailbox.withLock({ $0.enqueue(pending) }) { return refusal }
        onQueue { turn() }
        return outcome.withLock { $0 }
    }

    /// Cancels the effects, refuses what comes from now on, finishes what waits, and returns when it is done.
    package func drain() {
        effects.stop()
        mailbox.withLock { $0.close() }
        onQueue { turn() }
    }

    /// How often a turn is computed anew because another writer has appended first; then its actions are refused.
    private static var turnAttemptsMax: Int { 100 }

    /// The only place where order matters: take, apply, append, publish, follow up, answer.
    private func turn() {
        let pending = mailbox.withLock { $0.takeAll() }
        guard !pending.isEmpty else { return }
        for _ in 0..<Self.turnAttemptsMax where tryTurn(pending) { return }
        for pending in pending { answer(pending, .notRecorded) }
    }

    /// Computes a turn on the newest state and lands it.
    ///
    /// - Returns: false where another writer's commits came first; they have been taken in.
    private func tryTurn(_ pending: [PendingTransaction]) -> Bool {
        let (time, before, middleware) = (now(), latest, middleware)
        let result = core.withLock { core in
            core.middleware = middleware
            return core.turn(pending.map(\.transaction), at: time)
        }
        let commits = result.commits
        switch commits.isEmpty ? .landed : journal?.append(commits, after: before.version) ?? .landed {
        case .landed: land(result, of: pending, from: before)
        case .refused:
            if takeIn() { return false }
            refuseAll(pending, result.outcomes)
        case .unknown: refuseAll(pending, result.outcomes)
        }
        return true
    }

    private func land(_ result: Core<State>.Turn, of pending: [PendingTransaction], from before: Snapshot<State>) {
        if !result.commits.isEmpty {
            core.withLock { $0.adopt(result) }
            publish(result.latest, result.commits)
        }
        if result.hasConsequences || subscribers.count > 0 { followUp(result, of: pending, from: before) }
        for (pending, outcome) in zip(pending, result.outcomes) { answer(pending, outcome) }
    }

    private func publish(_ snapshot: Snapshot<State>, _ commits: [Commit]) {
        hub.publish(snapshot, commits)
        journal?.offer(snapshot) { [hub] in hub.journalBegins(at: $0) }
    }

    /// Lets each commit have its consequences: subscribers are told, what they and middleware dispatch waits for a later
    /// turn, effects start.
    private func followUp(_ result: Core<State>.Turn, of pending: [PendingTransaction], from before: Snapshot<State>) {
        var causations: [Version: Causation] = [:]
        for (pending, outcome) in zip(pending, result.outcomes) {
            if let causation = pending.transaction.causation, case .committed(let receipt) = outcome {
                causations[receipt.version] = causation
            }
        }
        var before = before
        for consequence in result.consequences {
            let commit = consequence.commit
            let origin = causations[commit.version]
            let causation = Causation(
                cause: commit.id, root: origin?.root ?? commit.id, rootVersion: origin?.rootVersion ?? commit.version,
                depth: (origin?.depth ?? 0) + 1)
            for action in consequence.followUps { follow([.init(action)], .single, causation) }
            let snapshot = unsafeDowncast(consequence.snapshot, to: Snapshot<State>.self)
            tell(commit, from: before, to: snapshot, causation)
            for effect in consequence.effects {
                for handler in model.effects(of: effect.entry) {
                    run(handler, effect.action, snapshot.state, causation)
                }
            }
            before = snapshot
        }
        for (index, actions) in result.uncommittedFollowUps {
            for action in actions { dispatchLater(Transaction([.init(action)]), pending[index].transaction.causation) }
        }
    }

    private func answer(_ pending: PendingTransaction, _ outcome: Outcome) {
        pending.complete(outcome)
        guard let completed = pending.completed, case .committed(let receipt) = outcome else { return }
        guard !cascades.withLock({ $0.watch(receipt.version, completed) }) else { return }
        var report = CascadeReport()
        report.isComplete = true
        completed(report)
    }

    /// Answers a turn that could not be recorded.
    ///
    /// Nothing was adopted, so nothing has to be undone. What was refused anyway keeps its own answer; everything after
    /// the first commit was judged by a state that never was.
    private func refuseAll(_ pending: [PendingTransaction], _ outcomes: [Outcome]) {
        let version = version
        var isOfNoState = false
        for (pending, outcome) in zip(pending, outcomes) {
            if case .committed(let receipt) = outcome {
                isOfNoState = isOfNoState || receipt.version > version
                answer(pending, receipt.version > version ? .notRecorded : outcome)
            } else {
                answer(pending, isOfNoState ? .notRecorded : outcome)
            }
        }
    }
}
