internal import Dispatch
internal import StateJSON
internal import Synchronization

/// One authoritative state, changed only by actions, one turn after another on a serial queue.
///
/// Any thread may call any method. Reading never waits for writing.
public final class Store<State: StateType>: Sendable {
    /// What has happened in a turn, for those who watch.
    package struct Publication: Sendable {
        /// The state after the turn.
        package let snapshot: Snapshot
        /// The turn's commits in order, recorded.
        package let commits: [Commit]
    }

    /// Where a store begins: at the start of a history, or where a journal has left it.
    package struct Origin: Sendable {
        package var state: State
        package var cursor: Cursor
        package var keys: [KeyRecord]

        /// An origin; by default the initial state of a new history.
        package init(state: State = State(), cursor: Cursor = Cursor(.random(), 0), keys: [KeyRecord] = []) {
            self.state = state
            self.cursor = cursor
            self.keys = keys
        }
    }

    /// Puts commits where they survive.
    ///
    /// It throws when it did not, and then none of them has happened.
    package typealias Recorder = @Sendable ([Commit]) throws -> Void

    private let model: Model<State>
    private let epoch: Epoch
    private let queue = DispatchQueue(label: "storekeeper.store")
    private let mailbox: Mutex<Mailbox>
    /// Changed only in a turn, on the queue; the mutex lets the compiler see that it is safe.
    private let core: Mutex<Core<State>>
    private let published: Mutex<(state: State, version: Version)>
    private let recorder: Recorder?
    private let publish: @Sendable (Publication) -> Void
    private let now: @Sendable () -> Timestamp

    package init(
        model: Model<State>, middleware: [Middleware<State>] = [.validation], limits: StoreLimits = StoreLimits(),
        origin: Origin = Origin(), now: @escaping @Sendable () -> Timestamp, recorder: Recorder? = nil,
        publish: @escaping @Sendable (Publication) -> Void = { _ in }
    ) {
        self.model = model
        epoch = origin.cursor.epoch
        mailbox = Mutex(Mailbox(capacity: limits.mailboxMax))
        core = Mutex(
            Core(
                model: model, epoch: origin.cursor.epoch, middleware: middleware, limits: limits, state: origin.state,
                version: origin.cursor.version, keys: origin.keys))
        published = Mutex((origin.state, origin.cursor.version))
        self.recorder = recorder
        self.publish = publish
        self.now = now
    }

    /// The state after the last turn.
    public var state: State { published.withLock { $0.state } }

    /// The version of ``state``.
    public var version: Version { published.withLock { $0.version } }

    /// How many submissions wait for a turn.
    package var waitingCount: Int { mailbox.withLock { $0.count } }

    /// The state after the last turn, for readers that know nothing of its type.
    package var snapshot: Snapshot {
        let (state, version) = published.withLock { $0 }
        return Snapshot(state, of: model, at: Cursor(epoch, version))
    }

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
        queue.async { self.turn() }
    }

    /// Hands a submission over and waits for its turn.
    ///
    /// It must not be called on the store's queue: not in a reducer, a middleware or a publication.
    package func submitNow(_ submission: Submission) -> Outcome {
        dispatchPrecondition(condition: .notOnQueue(queue))
        let outcome = Mutex<Outcome>(.draining)
        let envelope = Envelope(submission) { result in outcome.withLock { $0 = result } }
        // Even if a turn is already due, running one here is the shortest way, and the later one finds nothing.
        if let refusal = mailbox.withLock({ $0.enqueue(envelope) }) { return refusal }
        queue.sync { self.turn() }
        return outcome.withLock { $0 }
    }

    /// Refuses what comes from now on, finishes what waits, and returns when it is done.
    package func drain() {
        mailbox.withLock { $0.close() }
        queue.sync { self.turn() }
    }

    /// The only place where order matters: take, apply, record, publish, answer.
    private func turn() {
        let envelopes = mailbox.withLock { $0.takeAll() }
        guard !envelopes.isEmpty else { return }
        let time = now()
        let result = core.withLock { $0.turn(envelopes.map(\.submission), at: time) }
        guard result.commits.isEmpty || record(result.commits) else {
            // Nothing was adopted, so nothing has to be undone. What was refused anyway keeps its own answer.
            // Everything after the first commit was judged by a state that never was.
            let version = version
            var isOfNoState = false
            for (envelope, outcome) in zip(envelopes, result.outcomes) {
                if case .committed(let receipt) = outcome {
                    isOfNoState = isOfNoState || receipt.version > version
                    envelope.complete(receipt.version > version ? .notRecorded : outcome)
                } else {
                    envelope.complete(isOfNoState ? .notRecorded : outcome)
                }
            }
            return
        }
        if !result.commits.isEmpty {
            core.withLock { $0.adopt(result) }
            published.withLock { $0 = (result.state, result.version) }
            publish(
                Publication(
                    snapshot: Snapshot(result.state, of: model, at: Cursor(epoch, result.version)),
                    commits: result.commits))
        }
        for (envelope, outcome) in zip(envelopes, result.outcomes) { envelope.complete(outcome) }
    }

    private func record(_ commits: [Commit]) -> Bool {
        guard let recorder else { return true }
        do {
            try recorder(commits)
            return true
        } catch {
            // The recorder has told whoever watches it; the clients are told that nothing has happened.
            return false
        }
    }
}
