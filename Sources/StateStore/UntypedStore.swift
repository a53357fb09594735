internal import Dispatch
internal import StateJSON
internal import Synchronization

/// A store without the type of its state, as servers use it; ``Store`` is one that programs read and change in Swift types.
///
/// Any thread may call any method, also inside a notification. A reader never waits for a turn.
package final class UntypedStore: Sendable {
    package struct Origin: Sendable {
        package var state: StateBox
        package var cursor: Cursor
        package var keys: [KeyRecord]
        /// The time of the history, by which the keys expire; nil for that of the wall clock.
        package var historyTime: Timestamp?
        package var schedule: ActionSchedule

        package init(
            state: StateBox, cursor: Cursor = Cursor(.random(), 0), keys: [KeyRecord] = [],
            historyTime: Timestamp? = nil, schedule: ActionSchedule = ActionSchedule()
        ) {
            self.schedule = schedule
            self.historyTime = historyTime
            self.state = state
            self.cursor = cursor
            self.keys = keys
        }
    }

    let domain: CompiledDomain
    package let hub: WatchHub
    package let journal: (any Journal)?
    let queue = DispatchQueue(label: "storekeeper.store")
    /// How many functions are on the queue or wait for it: a loop enters an empty queue only, and so waits for nobody.
    private let queuedCount = Atomic(0)
    let cascades: Mutex<Cascades>
    let effects: Effects
    let subscribers = Subscribers()
    let notification = Mutex<Notification?>(nil)
    let inFlight = Mutex(TurnsInFlight())
    let firing = Mutex<Firing?>(nil)
    let lost = Mutex<LostHistory?>(nil)
    let onLandingThread: @Sendable (@escaping @Sendable () -> Void) -> Void
    let landings = DispatchGroup()
    let limits: StoreLimits
    let mailbox: Mutex<Mailbox>
    /// unsafe: only what runs on the queue uses it.
    nonisolated(unsafe) let core: Core
    /// unsafe: as ``core``.
    private nonisolated(unsafe) let turnMark: TurnMark
    /// The middleware has a mutex of its own: a middleware, a creator or a reducer may read and set it while a turn
    /// owns the core.
    private let installedMiddleware: Mutex<[MiddlewareStep]>
    private let isMiddlewareNew = Atomic(false)
    let now: @Sendable () -> Timestamp
    let monotonicNow: @Sendable () -> Instant
    /// The mark of the turns; nil for a store that no crash concerns.
    let mark: ReductionMark?
    /// Records what a dry run reduces; one dry run at a time has it, for as long as its reducers take.
    let dryRunMark: Mutex<ReductionMark?>
    /// Frees values whose end takes long.
    let disposal = DispatchQueue(label: "storekeeper.disposal", qos: .utility)
    private let notedMilliseconds = Atomic(Int64.min)
    let processorTime: @Sendable () -> Instant
    let report: @Sendable (StoreEvent) -> Void
    let observer: StoreObserver?
    private let ledgerCount: Atomic<Int>

    package init(
        domain: CompiledDomain, middleware: [MiddlewareStep] = [.validation],
        limits: StoreLimits = StoreLimits(),
        origin: Origin? = nil, now: @escaping @Sendable () -> Timestamp,
        journal: (any Journal)? = nil, watchLimits: WatchLimits = WatchLimits(), journalOldest: Version? = nil,
        clock: @escaping @Sendable () -> Instant = { Instant(nanoseconds: 0) },
        processorTime: @escaping @Sendable () -> Instant = { Instant(nanoseconds: 0) },
        mark: ReductionMark? = nil, queues: WatchHub.Queues = .dispatch(),
        onLandingThread: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = LandingThread().run,
        observer: StoreObserver? = nil,
        report: @escaping @Sendable (StoreEvent) -> Void = { _ in }
    ) {
        let origin = origin ?? Origin(state: domain.initial)
        let core = Core(
            domain: domain, epoch: origin.cursor.epoch, middleware: middleware, limits: limits, state: origin.state,
            version: origin.cursor.version, keys: origin.keys, historyTime: origin.historyTime,
            schedule: origin.schedule, mark: mark)
        self.domain = domain
        self.limits = limits
        mailbox = Mutex(Mailbox(capacity: limits.mailboxMax))
        cascades = Mutex(Cascades(limits: limits))
        effects = Effects(countMax: limits.effectsMax)
        let woken: @Sendable (Int) -> Void = if let observer { observer.woken } else { { _ in } }
        hub = WatchHub(
            core.latest, catalogue: domain.catalogue, limits: limits, watchLimits: watchLimits,
            journalOldest: journalOldest, queues: queues, now: clock, processorTime: processorTime, woken: woken)
        ledgerCount = Atomic(core.ledger.count)
        self.core = core
        turnMark = TurnMark(of: queue)
        self.mark = mark
        dryRunMark = Mutex(mark?.another())
        if let mark { domain.mark(by: mark) }
        self.journal = journal
        installedMiddleware = Mutex(middleware)
        self.onLandingThread = onLandingThread
        self.report = report
        self.observer = observer
        self.now = now
        monotonicNow = clock
        self.processorTime = processorTime
        guard let journal else { return }
        journal.follow { [weak self] in self?.adoptForeignCommitsLater() }
        // Another process may have appended after the origin was read: nobody was told of that.
        if journal.isShared { adoptForeignCommitsLater() }
    }

    package var version: Version { latest.version }

    var steps: [MiddlewareStep] {
        get { installedMiddleware.withLock { $0 } }
        set {
            // The old middleware is released outside the lock: its closures may own objects that use this store.
            _ = installedMiddleware.withLock { exchange(&$0, with: newValue) }
            isMiddlewareNew.store(true, ordering: .releasing)
        }
    }

    var latest: Snapshot { hub.latest }

    var isInOwnTurn: Bool { TurnMark.current?.queue === queue }

    /// Runs a function on the queue as part of a turn, and returns after it.
    func onQueue(_ body: () -> Void) {
        queuedCount.add(1, ordering: .relaxed)
        queue.sync { runAsTurn(body) }
    }

    /// Runs a function behind the turns that wait.
    package func onQueueLater(_ body: @escaping @Sendable () -> Void) {
        queuedCount.add(1, ordering: .relaxed)
        queue.async { self.runAsTurn(body) }
    }

    func onQueue(after pause: Duration, _ body: @escaping @Sendable () -> Void) {
        DispatchQueue.global().asyncAfter(deadline: .now() + .nanoseconds(Int(pause / .nanoseconds(1)))) {
            [weak self] in self?.onQueueLater(body)
        }
    }

    private func runAsTurn(_ body: () -> Void) {
        turnMark.with(body)
        queuedCount.subtract(1, ordering: .relaxed)
    }

    package var mailboxMax: Int { limits.mailboxMax }

    package var waitingCount: Int { mailbox.withLock { $0.count } }

    package var turnsInFlightCount: Int { inFlight.withLock { $0.count } }

    package var idempotencyKeysCount: Int { ledgerCount.load(ordering: .relaxed) }

    /// Enqueues a transaction, schedules a turn and returns; the transaction is completed on the store's queue.
    package func submit(_ pending: PendingTransaction) {
        enqueue(pending)
        flush()
    }

    /// Puts a transaction into the mailbox without scheduling a turn; ``flush()`` schedules one for many transactions.
    package func enqueue(_ pending: PendingTransaction) {
        guard let refusal = mailbox.withLock({ $0.enqueue(pending) }) else { return }
        note(pending.transaction, refusal)
        pending.taker.take(refusal)
    }

    package func flush() {
        if mailbox.withLock({ $0.claimTurn(onLoop: false) }) != nil { schedule() }
    }

    private func schedule() {
        onQueueLater {
            self.turn()
            self.mailbox.withLock { $0.endScheduledTurn() }
        }
    }

    /// Has a turn run for the enqueued transactions, if there are any.
    ///
    /// It runs at once where nobody is on the queue, no subscriber would run in it, and the mailbox lets the caller's loop
    /// run it, otherwise later on the queue; it may land later in any case. A caller must not be on the queue.
    package func flushNow() {
        dispatchPrecondition(condition: .notOnQueue(queue))
        // With a journal, subscribers run on the landing thread. An effect is a task of its own.
        let mayEnter =
            (journal != nil || subscribers.openCount.load(ordering: .acquiring) == 0)
            && queuedCount.compareExchange(expected: 0, desired: 1, ordering: .relaxed).exchanged
        switch mailbox.withLock({ $0.claimTurn(onLoop: mayEnter) }) {
        case .here?: return queue.sync { runAsTurn(turn) }
        case .queue?: schedule()
        case nil: break
        }
        if mayEnter { queuedCount.subtract(1, ordering: .relaxed) }
    }

    /// Enqueues a transaction, runs a turn and returns the transaction's outcome when the turn has landed.
    ///
    /// A caller must not be on the store's queue, so not in a reducer, a middleware or a notification: the process would
    /// stop.
    package func submitNow(_ transaction: Transaction) -> Outcome {
        dispatchPrecondition(condition: .notOnQueue(queue))
        let outcome = Awaited<Outcome>()
        let pending = PendingTransaction(transaction) { outcome.take($0) }
        // Where a turn is already scheduled, this one still gives the outcome soonest; the later turn has nothing to do.
        if let refusal = mailbox.withLock({ $0.enqueue(pending) }) {
            note(transaction, refusal)
            return refusal
        }
        onQueue { turn() }
        return outcome.wait()
    }

    /// Cancels the effects, refuses every later transaction, runs a turn for the waiting ones, and returns when every turn
    /// has landed.
    package func drain() {
        effects.stop()
        mailbox.withLock { $0.close() }
        onQueue { turn() }
        landings.wait()
        let time = now()
        onQueue {
            let historyTime = core.historyClock.read(wall: time, monotonic: monotonicNow)
            if historyTime.milliseconds >= noteDue { note(historyTime) }
        }
    }

    // MARK: For the turn

    func endTurn(of transactions: [PendingTransaction], taking duration: Duration?) {
        mailbox.withLock { $0.note(duration, of: transactions) }
        flush()
    }

    func release(_ turns: [ComputedTurn]) { release(turns.reduce(0) { $0 + $1.pending.count }) }

    func release(_ transactionsCount: Int) { mailbox.withLock { $0.release(transactionsCount) } }

    func compute(_ pending: [PendingTransaction]) -> ComputedTurn {
        let time = now()
        let isMiddlewareNew = isMiddlewareNew.exchange(false, ordering: .acquiringAndReleasing)
        if isMiddlewareNew { core.install(steps) }
        let turn = core.turn(pending, at: time, monotonic: monotonicNow, clock: processorTime, inside: turnMark)
        ledgerCount.store(core.ledger.count, ordering: .relaxed)
        if journal != nil, turn.historyTime.milliseconds >= noteDue { note(turn.historyTime) }
        return ComputedTurn(pending: pending, result: turn)
    }

    /// When the journal is to be told the time of the history, in milliseconds: at most once a second.
    private var noteDue: Int64 { notedMilliseconds.load(ordering: .relaxed) &+ 1000 }

    private func note(_ time: Timestamp) {
        notedMilliseconds.store(time.milliseconds, ordering: .relaxed)
        journal?.note(historyTime: time)
    }

    func outcome(byKeyOf transaction: Transaction, of client: String?) -> Outcome? {
        let time = now()
        var outcome: Outcome?
        onQueue {
            let historyTime = core.historyClock.read(wall: time, monotonic: monotonicNow)
            outcome = core.outcome(byKeyOf: transaction, of: client, at: historyTime)
        }
        return outcome
    }

    package var domainFailure: DomainFailure? { lostHistory?.failure ?? domain.failure() }

    package var lostHistory: LostHistory? { lost.withLock(\.self) }

    /// Reads again what the domain is made of; it throws why the domain goes on with what it has.
    package func reloadDomain() throws -> DomainReload {
        let reload = try domain.hooks.reload(latest.tree)
        if case .taken = reload {
            domain.loads.add()
            forgetViews()
        }
        return reload
    }

    /// Forgets the values of views, which other functions have made, and ends the waits and streams for them.
    ///
    /// A store does so itself where it has loaded its domain again; one that shares the domain, such as a fork, has to be told.
    package func forgetViews() { hub.forgetViews() }

    /// Makes a snapshot of a past state; O(n) in the size of the state.
    package func snapshot(restoring saved: SavedState, at cursor: Cursor) throws -> Snapshot {
        let state = try domain.state(from: saved.state)
        return Snapshot(
            state, try domain.tree(of: state), of: domain, at: cursor, viewVersions: [], schedule: saved.schedule)
    }
}
