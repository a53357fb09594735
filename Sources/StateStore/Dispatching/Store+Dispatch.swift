internal import Dispatch
internal import StateJSON
internal import Synchronization

/// The result of a dispatch that did not fail.
public struct Dispatched: Sendable {
    /// Whether there is a commit.
    public enum Result: Sendable {
        /// The action is committed.
        case committed(Receipt)
        /// There is nothing to commit: a middleware swallowed the action, or the creator made none.
        case nothing
        /// A subscriber, a middleware or a creator dispatched the action inside a turn of this store or of another; the
        /// store has queued it for a later turn.
        ///
        /// Where that turn refuses the action, the store calls its `report`.
        case queued
    }

    /// Whether there is a commit.
    public let result: Result
    /// The report of the cascade, which lists the refused follow-ups; nil where the dispatch has not awaited it.
    public let cascade: CascadeReport?

    /// The receipt of the commit, once there is a commit.
    public var receipt: Receipt? { if case .committed(let receipt) = result { receipt } else { nil } }
}

/// The event that a dispatch waits for.
public enum Awaiting: Sendable {
    /// The end of the action's own turn, when the subscribers have been notified.
    case turn
    /// The completion of the cascade: what middleware, subscribers and effects have dispatched because of the action is
    /// applied, too.
    ///
    /// Subscribers on queues of their own may come later.
    case cascade
}

/// Why an action was not committed.
///
/// The state is unchanged. After ``outcomeUnknown(id:)`` the action may be committed all the same, which a restart shows.
public enum DispatchError: Error, Sendable, CustomStringConvertible {
    /// A reducer or a middleware rejected the action at `index` of a batch.
    case rejected(Rejection, index: Int)
    /// The mailbox or the ledger of idempotency keys is full.
    case full
    /// The journal did not take the commit.
    case notRecorded
    /// The journal failed while it took the commit: the commit may be there after a restart, unless a later one lands first.
    case outcomeUnknown(id: String?)
    /// The new state cannot be encoded.
    case failed(detail: String)
    /// The store is stopping.
    case draining
    /// The effect that dispatched the action has been cancelled.
    case cancelled
    /// A precondition did not hold.
    case preconditionFailed(pointer: String)
    /// A reducer dispatched the action, which it must not do.
    case inReducer

    /// A stable name for programs; for a rejection, the rejection's code.
    public var code: String { words.code }

    /// A sentence for people.
    public var description: String { words.sentence }

    private var words: (code: String, sentence: String) {
        switch self {
        case .rejected(let rejection, _): (rejection.code, rejection.detail)
        case .full: ("mailbox-full", "too many actions wait")
        case .notRecorded: ("not-durable", "the journal could not record it")
        case .outcomeUnknown:
            ("outcome-unknown", "the journal failed while it recorded it; whether it is committed is not known")
        case .failed(let detail): ("internal", detail)
        case .draining: ("draining", "the store is stopping")
        case .cancelled: ("cancelled", "the effect that dispatched it has been cancelled")
        case .preconditionFailed(let pointer): ("precondition-failed", "\(pointer) is not as expected")
        case .inReducer:
            (
                "dispatch-in-reducer",
                "a reducer must not dispatch; what an action causes a subscriber, a middleware or an effect dispatches"
            )
        }
    }
}

extension Dispatched {
    init(_ outcome: Outcome, _ cascade: CascadeReport? = nil) throws(DispatchError) {
        self.cascade = cascade
        switch outcome {
        case .committed(let receipt): result = .committed(receipt)
        case .nothingCommitted, .wouldCommit: result = .nothing
        case .rejected(let rejection, let index): throw .rejected(rejection, index: index)
        case .preconditionFailed(let failure): throw .preconditionFailed(pointer: failure.pointer.description)
        case .keyReused(let key): throw .failed(detail: "the idempotency key \(key) was used for something else")
        case .full: throw .full
        case .notRecorded: throw .notRecorded
        case .unknown(let id): throw .outcomeUnknown(id: id)
        case .failed(let detail): throw .failed(detail: detail)
        case .draining: throw .draining
        }
    }
}

extension Store {
    /// An action creator: a function from the state that its action will find to an action, or to nil.
    ///
    /// The creator runs inside the turn, so it must be quick: slow work belongs in a task that dispatches when it is done.
    /// An action that the creator dispatches through its store argument gets a later turn, as a follow-up of what the creator
    /// makes; the store drops it in a dry run, and where it refuses what the creator makes.
    public typealias ActionCreator = @Sendable (State, Store<State>) throws(Rejection) -> (any Action)?

    /// The actions that a dispatch makes one transaction of.
    public enum Actions: Sendable {
        /// Several actions: all or none, one version, one notification.
        case batch([any Action])
        /// The action that a creator makes of the state in its turn, if it makes one.
        case creator(ActionCreator)
    }

    /// Dispatches a batch, or what a creator makes, as one transaction and returns after its turn or its cascade.
    ///
    /// - Throws: ``DispatchError`` when the transaction itself was not committed; the state is then unchanged.
    @discardableResult
    public func dispatch(_ actions: Actions, awaiting: Awaiting = .turn) throws(DispatchError) -> Dispatched {
        try untyped.dispatch(transaction(of: actions), awaiting)
    }

    /// Dispatches a batch, or what a creator makes, as one transaction, without blocking a thread.
    ///
    /// - Throws: ``DispatchError`` when the transaction itself was not committed; the state is then unchanged.
    @discardableResult
    public func dispatch(_ actions: Actions, awaiting: Awaiting = .turn) async throws(DispatchError) -> Dispatched {
        try await untyped.dispatch(transaction(of: actions), awaiting)
    }

    /// Dispatches an action and returns after its turn, when the subscribers have been notified, or after its cascade.
    ///
    /// Inside a turn of any store (in a notification, a middleware or a creator, also in a `sync` on another queue) the
    /// call only queues the action for a later turn, and awaits nothing: in a middleware or a creator of this store as a
    /// follow-up, as ``MiddlewareContext/dispatch(_:)`` does. A reducer must not dispatch: the store refuses the action and
    /// calls its `report`. In an asynchronous function Swift chooses the asynchronous form, which does not block the thread.
    ///
    /// The store does not see that a block on another thread belongs to the turn: a notification that waits until another
    /// thread has dispatched, also by `DispatchQueue.main.sync`, waits without end. Actions that two stores dispatch to
    /// each other have no common budget.
    ///
    /// - Parameters:
    ///   - id: the caller's own ID for the commit.
    ///   - awaiting: the event after which the call returns.
    /// - Throws: ``DispatchError`` when the action itself was not committed; the state is then unchanged.
    @discardableResult
    public func dispatch(
        _ action: any Action, id: String? = nil, awaiting: Awaiting = .turn
    ) throws(DispatchError) -> Dispatched {
        try untyped.dispatch(Transaction([.init(action, id: id)]), awaiting)
    }

    /// Dispatches an action and returns after its turn or its cascade, without blocking a thread.
    ///
    /// - Throws: ``DispatchError`` when the action itself was not committed; the state is then unchanged.
    @discardableResult
    public func dispatch(
        _ action: any Action, id: String? = nil, awaiting: Awaiting = .turn
    ) async throws(DispatchError) -> Dispatched {
        try await untyped.dispatch(Transaction([.init(action, id: id)]), awaiting)
    }

    /// Adds an action to the batch that the store dispatches after every subscriber has been notified of the commit.
    ///
    /// The follow-ups that a hundred subscribers have to one commit are then one commit. Outside a notification the store
    /// dispatches the action on its own.
    ///
    /// - Throws: ``DispatchError``, only outside a notification.
    public func batchFollowUp(_ action: any Action) throws(DispatchError) {
        let isBatched =
            untyped.isInOwnTurn
            && untyped.notification.withLock { notification in
                notification?.batched.append(action)
                return notification != nil
            }
        if !isBatched { try dispatch(action) }
    }

    private func transaction(of actions: Actions) -> Transaction {
        switch actions {
        case .batch(let actions): Transaction(actions.map { .init($0) }, form: .batch)
        case .creator(let creator):
            Transaction([
                .init(content: .creator { [self] (state) throws(Rejection) in try creator(state.state(), self) })
            ])
        }
    }
}

extension UntypedStore {
    package func dispatch(_ transaction: Transaction, _ awaiting: Awaiting) throws(DispatchError) -> Dispatched {
        guard let mark = TurnMark.current else {
            guard awaiting == .cascade else { return try Dispatched(submitNow(transaction)) }
            let ended = Awaited<(Outcome, CascadeReport)>()
            enqueue(awaitingCascade(transaction) { ended.take(($0, $1)) })
            flushNow()
            let (outcome, report) = ended.wait()
            return try Dispatched(outcome, report)
        }
        guard !mark.isReducing else {
            refuse(transaction, .inReducer, nil)
            throw .inReducer
        }
        if isInOwnTurn, let collector = mark.collector {
            collector.collect(transaction)
        } else if isInOwnTurn, let causation = currentCausation {
            dispatchFollowUp(transaction, causation)
        } else {
            // Inside another store's turn, this store may be notifying of a commit that has nothing to do with the action.
            submit(PendingTransaction(transaction) { [weak self] in self?.reportIfRefused(transaction, $0, nil) })
        }
        return Dispatched(result: .queued, cascade: nil)
    }

    func dispatch(_ transaction: Transaction, _ awaiting: Awaiting) async throws(DispatchError)
        -> Dispatched
    {
        let (outcome, report): (Outcome, CascadeReport?) = await withCheckedContinuation { continuation in
            submit(
                awaiting == .cascade
                    ? awaitingCascade(transaction) { continuation.resume(returning: ($0, $1)) }
                    : PendingTransaction(transaction) { continuation.resume(returning: ($0, nil)) })
        }
        return try Dispatched(outcome, report)
    }

    private func awaitingCascade(
        _ transaction: Transaction, _ completed: @escaping @Sendable (Outcome, CascadeReport) -> Void
    ) -> PendingTransaction {
        PendingTransaction(
            transaction, complete: { if !$0.mayBeginCascade { completed($0, CascadeReport()) } }, completed: completed)
    }

    /// Computes the effect of a dry run on the published state, on the caller's thread, one call at a time and perhaps
    /// at the same time as a turn.
    ///
    /// A look at the idempotency keys waits for a turn, so a caller must not be on the store's queue. The outcome is
    /// never ``Outcome/committed(_:)``.
    package func dryRun(_ transaction: Transaction, of client: String? = nil) -> Outcome {
        let known = transaction.idempotency == nil ? nil : outcome(byKeyOf: transaction, of: client)
        let outcome: Outcome =
            switch known {
            // The real request would be answered with the receipt of the commit that is there.
            case .committed?: .wouldCommit(isChange: false, patch: Array("[]".utf8))
            case let refusal?: refusal
            case nil: compute(PendingTransaction(transaction, client: client) { _ in })
            }
        note(transaction, outcome)
        return outcome
    }

    private func compute(_ dryRun: PendingTransaction) -> Outcome {
        let steps = steps
        return dryRunMark.withLock { mark in
            // A snapshot that is published is never taken back.
            let core = Core(latest, of: domain, steps, limits, mark: mark)
            // Actions of a middleware belong to a later turn, as in any turn.
            let turnMark = TurnMark(of: queue)
            return turnMark.with {
                core.turn([dryRun], at: now(), monotonic: monotonicNow, clock: processorTime, inside: turnMark)
            }
        }.outcomes[0]
    }
}

/// A value that one thread gives and another waits for, without a semaphore where it is there already.
final class Awaited<Value: Sendable>: Sendable {
    private let given = Mutex<(value: Value?, isGiven: DispatchSemaphore?)>((nil, nil))

    func take(_ value: Value) {
        let isGiven = given.withLock { given in
            given.value = value
            return given.isGiven
        }
        isGiven?.signal()
    }

    func wait() -> Value {
        let isGiven: DispatchSemaphore? = given.withLock { given in
            guard given.value == nil else { return nil }
            let isGiven = DispatchSemaphore(value: 0)
            given.isGiven = isGiven
            return isGiven
        }
        isGiven?.wait()
        guard let value = given.withLock({ $0.value }) else { preconditionFailure("a value is there once it is given") }
        return value
    }
}
