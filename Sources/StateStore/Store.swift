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

    let model: Model<State>
    /// The published present and everything that watches it.
    package let hub: WatchHub
    /// Where the commits go; nil for a store that keeps them in memory only.
    package let journal: (any Journal)?
    let queue = DispatchQueue(label: "storekeeper.store")
    let cascades: Mutex<Cascades>
    let effects: Effects
    let subscribers = Subscribers<State>()
    /// What is being told to subscribers; only looked at on the queue.
    let telling = Mutex<Telling<State>?>(nil)
    private let epoch: Epoch
    private let mailbox: Mutex<Mailbox>
    /// Changed only in a turn, on the queue; the mutex lets the compiler see that it is safe.
    let core: Mutex<Core<State>>
    /// In a mutex of their own: a middleware, a creator or a reducer may read and set them while a turn holds the core.
    private let steps: Mutex<[Middleware<State>]>
    private let now: @Sendable () -> Timestamp
    let report: @Sendable (StoreEvent) -> Void

    package init(
        model: Model<State>, middleware: [Middleware<State>] = [.validation], limits: StoreLimits = StoreLimits(),
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
        steps = Mutex(middleware)
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
        get { steps.withLock { $0 } }
        set {
            // What the old ones hold is let go of outside the lock.
            _ = steps.withLock { exchange(&$0, with: newValue) }
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

    /// How many submissions wait for a turn.
    package var waitingCount: Int { mailbox.withLock { $0.count } }

    /// Hands a submission over and returns; the outcome comes on the store's queue, after the turn.
    package func submit(_ envelope: Envelope) {
        enqueue(envelope)
        flush()
    }

    /// Hands a submission over without asking for a turn: ``flush()`` does, once for many.
    package func enqueue(_ envelope: Envelope) {
        if let refusal = mailbox.withLock({ $0.enqueue(envelope) }) { envelope.complete(refusal) }
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

    /// Hands a submission over and waits for its turn.
    ///
    /// It must not be called on the store's queue: not in a reducer, a middleware or a notification.
    package func submitNow(_ submission: Submission) -> Outcome {
        dispatchPrecondition(condition: .notOnQueue(queue))
        let outcome = Mutex<Outcome>(.draining)
        let envelope = Envelope(submission) { result in outcome.withLock { $0 = result } }
        // Even if a turn is already due, running one here is the shortest way, and the later one finds nothing.
        if let refusal = mailbox.withLock({ $0.enqueue(envelope) }) { return refusal }
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
        let envelopes = mailbox.withLock { $0.takeAll() }
        guard !envelopes.isEmpty else { return }
        for _ in 0..<Self.turnAttemptsMax where tryTurn(envelopes) { return }
        for envelope in envelopes { answer(envelope, .notRecorded) }
    }

    /// Computes a turn on the newest state and lands it.
    ///
    /// - Returns: false where another writer's commits came first; they have been taken in.
    private func tryTurn(_ envelopes: [Envelope]) -> Bool {
        let (time, before, middleware) = (now(), latest, middleware)
        let result = core.withLock { core in
            core.middleware = middleware
            return core.turn(envelopes.map(\.submission), at: time)
        }
        let commits = result.commits
        switch commits.isEmpty ? .landed : journal?.append(commits, after: before.version) ?? .landed {
        case .landed: land(result, of: envelopes, from: before)
        case .refused:
            if takeIn() { return false }
            refuseAll(envelopes, result.outcomes)
        case .unknown: refuseAll(envelopes, result.outcomes)
        }
        return true
    }

    private func land(_ result: Core<State>.Turn, of envelopes: [Envelope], from before: Snapshot<State>) {
        if !result.commits.isEmpty {
            core.withLock { $0.adopt(result) }
            publish(result.latest, result.commits)
        }
        if result.hasConsequences || subscribers.count > 0 { followUp(result, of: envelopes, from: before) }
        for (envelope, outcome) in zip(envelopes, result.outcomes) { answer(envelope, outcome) }
    }

    private func publish(_ snapshot: Snapshot<State>, _ commits: [Commit]) {
        hub.publish(snapshot, commits)
        journal?.offer(snapshot) { [hub] in hub.journalBegins(at: $0) }
    }

    /// Lets each commit have its consequences: subscribers are told, what they and middleware dispatch waits for a later
    /// turn, effects start.
    private func followUp(_ result: Core<State>.Turn, of envelopes: [Envelope], from before: Snapshot<State>) {
        var lineages: [Version: Lineage] = [:]
        for (envelope, outcome) in zip(envelopes, result.outcomes) {
            if let lineage = envelope.submission.lineage, case .committed(let receipt) = outcome {
                lineages[receipt.version] = lineage
            }
        }
        var before = before
        for step in result.steps {
            let commit = step.commit
            let origin = lineages[commit.version]
            let lineage = Lineage(
                cause: commit.id, root: origin?.root ?? commit.id, rootVersion: origin?.rootVersion ?? commit.version,
                depth: (origin?.depth ?? 0) + 1)
            for action in step.followUps { follow([.init(action)], .single, lineage) }
            let snapshot = unsafeDowncast(step.snapshot, to: Snapshot<State>.self)
            tell(commit, from: before, to: snapshot, lineage)
            for effect in step.effects {
                for handler in model.effects(of: effect.route) { run(handler, effect.action, snapshot.state, lineage) }
            }
            before = snapshot
        }
        for (index, actions) in result.strays {
            for action in actions { dispatchLater(Submission([.init(action)]), envelopes[index].submission.lineage) }
        }
    }

    private func answer(_ envelope: Envelope, _ outcome: Outcome) {
        envelope.complete(outcome)
        guard let settled = envelope.settled, case .committed(let receipt) = outcome else { return }
        guard !cascades.withLock({ $0.watch(receipt.version, settled) }) else { return }
        var report = CascadeReport()
        report.isSettled = true
        settled(report)
    }

    /// Answers a turn that could not be recorded.
    ///
    /// Nothing was adopted, so nothing has to be undone. What was refused anyway keeps its own answer; everything after
    /// the first commit was judged by a state that never was.
    private func refuseAll(_ envelopes: [Envelope], _ outcomes: [Outcome]) {
        let version = version
        var isOfNoState = false
        for (envelope, outcome) in zip(envelopes, outcomes) {
            if case .committed(let receipt) = outcome {
                isOfNoState = isOfNoState || receipt.version > version
                answer(envelope, receipt.version > version ? .notRecorded : outcome)
            } else {
                answer(envelope, isOfNoState ? .notRecorded : outcome)
            }
        }
    }
}
