internal import Dispatch
internal import StateJSON
internal import Synchronization

/// The result of a dispatch that did not fail.
public enum Dispatched: Sendable {
    /// The action is committed.
    case committed(Receipt)
    /// There is nothing to commit: a middleware swallowed the action, or the creator made none.
    case nothing
    /// A subscriber, a middleware or a creator dispatched the action inside a turn of this store or of another; the store
    /// has queued it for a later turn.
    ///
    /// Where that turn refuses the action, the store calls its `report`.
    case queued

    /// The receipt of the commit, once there is a commit.
    public var receipt: Receipt? { if case .committed(let receipt) = self { receipt } else { nil } }
}

/// The event besides its own turn that a dispatch waits for.
public enum Awaiting: Sendable {
    /// The completion of the cascade: no follow-up of the commit waits and no effect of it runs.
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
    public var code: String {
        switch self {
        case .rejected(let rejection, _): rejection.code
        case .full: "mailbox-full"
        case .notRecorded: "not-durable"
        case .outcomeUnknown: "outcome-unknown"
        case .failed: "internal"
        case .draining: "draining"
        case .cancelled: "cancelled"
        case .preconditionFailed: "precondition-failed"
        case .inReducer: "dispatch-in-reducer"
        }
    }

    /// A sentence for people.
    public var description: String {
        switch self {
        case .rejected(let rejection, _): rejection.detail
        case .full: "too many actions wait"
        case .notRecorded: "the journal could not record it"
        case .outcomeUnknown: "the journal failed while it recorded it; whether it is committed is not known"
        case .failed(let detail): detail
        case .draining: "the store is stopping"
        case .cancelled: "the effect that dispatched it has been cancelled"
        case .preconditionFailed(let pointer): "\(pointer) is not as expected"
        case .inReducer:
            "a reducer must not dispatch; what an action causes a subscriber, a middleware or an effect dispatches"
        }
    }
}

extension Dispatched {
    init(_ outcome: Outcome) throws(DispatchError) {
        switch outcome {
        case .committed(let receipt): self = .committed(receipt)
        case .nothingCommitted, .wouldCommit: self = .nothing
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

    /// Dispatches an action and returns after its turn, when the subscribers have been notified.
    ///
    /// Inside a turn of any store (in a notification, a middleware or a creator, also in a `sync` on another queue) the
    /// call only queues the action for a later turn: in a middleware or a creator of this store as a follow-up, as
    /// ``MiddlewareContext/dispatch(_:)`` does. A reducer must not dispatch: the store refuses the action and calls
    /// its `report`. In an asynchronous function Swift chooses the asynchronous form, which does not block the thread.
    ///
    /// The store does not see that a block on another thread belongs to the turn: a notification that waits until another
    /// thread has dispatched, also by `DispatchQueue.main.sync`, waits without end. Actions that two stores dispatch to
    /// each other have no common budget.
    ///
    /// - Parameter id: the caller's own ID for the commit.
    /// - Throws: ``DispatchError``; the state is then unchanged.
    @discardableResult
    public func dispatch(_ action: any Action, id: String? = nil) throws(DispatchError) -> Dispatched {
        try dispatch(Transaction([.init(action, id: id)]))
    }

    /// Dispatches an action and returns after its turn, without blocking a thread.
    ///
    /// - Throws: ``DispatchError``; the state is then unchanged.
    @discardableResult
    public func dispatch(_ action: any Action, id: String? = nil) async throws(DispatchError) -> Dispatched {
        try await dispatch(Transaction([.init(action, id: id)]))
    }

    /// Dispatches several actions as one transaction: all or none, one version, one notification.
    ///
    /// - Throws: ``DispatchError``; the state is then unchanged.
    @discardableResult
    public func dispatch(batch actions: [any Action]) throws(DispatchError) -> Dispatched {
        try dispatch(Transaction(actions.map { .init($0) }, form: .batch))
    }

    /// Dispatches several actions as one transaction: all or none, one version, one notification.
    ///
    /// - Throws: ``DispatchError``; the state is then unchanged.
    @discardableResult
    public func dispatch(batch actions: [any Action]) async throws(DispatchError) -> Dispatched {
        try await dispatch(Transaction(actions.map { .init($0) }, form: .batch))
    }

    /// Dispatches the action that a creator makes of the state in its turn.
    ///
    /// - Throws: ``DispatchError``; the state is then unchanged.
    @discardableResult
    public func dispatch(_ creator: @escaping ActionCreator) throws(DispatchError) -> Dispatched {
        try dispatch(Transaction([item(creator)]))
    }

    /// Dispatches the action that a creator makes of the state in its turn.
    ///
    /// - Throws: ``DispatchError``; the state is then unchanged.
    @discardableResult
    public func dispatch(_ creator: @escaping ActionCreator) async throws(DispatchError) -> Dispatched {
        try await dispatch(Transaction([item(creator)]))
    }

    /// Dispatches an action and returns when its cascade is complete: what middleware, subscribers and effects have dispatched
    /// because of it is applied, too.
    ///
    /// It does not wait for subscribers on queues of their own. Inside a turn the call only queues the action.
    ///
    /// - Returns: the result of the action and the report of its cascade, which lists the refused follow-ups.
    /// - Throws: ``DispatchError`` when the action itself was not committed.
    @discardableResult
    public func dispatch(
        _ action: any Action, id: String? = nil, awaiting: Awaiting
    ) throws(DispatchError) -> (Dispatched, CascadeReport) {
        try dispatchAwaiting(Transaction([.init(action, id: id)]))
    }

    /// Dispatches an action and returns when its cascade is complete, without blocking a thread.
    ///
    /// - Returns: the result of the action and the report of its cascade, which lists the refused follow-ups.
    /// - Throws: ``DispatchError`` when the action itself was not committed.
    @discardableResult
    public func dispatch(
        _ action: any Action, id: String? = nil, awaiting: Awaiting
    ) async throws(DispatchError) -> (Dispatched, CascadeReport) {
        try await dispatchAwaiting(Transaction([.init(action, id: id)]))
    }

    /// Dispatches several actions as one transaction and returns when its cascade is complete.
    ///
    /// - Throws: ``DispatchError`` when the transaction itself was not committed.
    @discardableResult
    public func dispatch(
        batch actions: [any Action], awaiting: Awaiting
    ) throws(DispatchError) -> (Dispatched, CascadeReport) {
        try dispatchAwaiting(Transaction(actions.map { .init($0) }, form: .batch))
    }

    /// Dispatches several actions as one transaction and returns when its cascade is complete, without blocking a thread.
    ///
    /// - Throws: ``DispatchError`` when the transaction itself was not committed.
    @discardableResult
    public func dispatch(
        batch actions: [any Action], awaiting: Awaiting
    ) async throws(DispatchError) -> (Dispatched, CascadeReport) {
        try await dispatchAwaiting(Transaction(actions.map { .init($0) }, form: .batch))
    }

    /// Dispatches the action that a creator makes and returns when its cascade is complete.
    ///
    /// - Throws: ``DispatchError`` when the action itself was not committed.
    @discardableResult
    public func dispatch(
        _ creator: @escaping ActionCreator, awaiting: Awaiting
    ) throws(DispatchError) -> (Dispatched, CascadeReport) {
        try dispatchAwaiting(Transaction([item(creator)]))
    }

    /// Dispatches the action that a creator makes and returns when its cascade is complete, without blocking a thread.
    ///
    /// - Throws: ``DispatchError`` when the action itself was not committed.
    @discardableResult
    public func dispatch(
        _ creator: @escaping ActionCreator, awaiting: Awaiting
    ) async throws(DispatchError) -> (Dispatched, CascadeReport) {
        try await dispatchAwaiting(Transaction([item(creator)]))
    }

    /// Adds an action to the batch that the store dispatches after every subscriber has been notified of the commit.
    ///
    /// The follow-ups that a hundred subscribers have to one commit are then one commit. Outside a notification the store
    /// dispatches the action on its own.
    ///
    /// - Throws: ``DispatchError``, only outside a notification.
    public func batchFollowUp(_ action: any Action) throws(DispatchError) {
        let isBatched =
            isInOwnTurn
            && notification.withLock { notification in
                notification?.batched.append(action)
                return notification != nil
            }
        if !isBatched { try dispatch(action) }
    }

    private func item(_ creator: @escaping ActionCreator) -> Transaction.Item {
        .init(creator: { [self] (state) throws(Rejection) in
            guard let state = state as? State else { return nil }
            return try creator(state, self)
        })
    }

    private func dispatch(_ transaction: Transaction) throws(DispatchError) -> Dispatched {
        guard let mark = TurnMark.current else { return try Dispatched(submitNow(transaction)) }
        guard mark.phase != .reducing else {
            refuse(transaction, .inReducer, nil)
            throw .inReducer
        }
        if isInOwnTurn, let collector = mark.collector {
            collector.collect(FollowUp(items: transaction.items, form: transaction.form))
            return .queued
        }
        // Inside another store's turn, this store may be notifying of a commit that has nothing to do with the action.
        dispatchLater(transaction, isInOwnTurn ? currentCausation : nil)
        return .queued
    }

    private func dispatch(_ transaction: Transaction) async throws(DispatchError) -> Dispatched {
        let outcome = await withCheckedContinuation { continuation in
            submit(PendingTransaction(transaction) { continuation.resume(returning: $0) })
        }
        return try Dispatched(outcome)
    }

    private func dispatchAwaiting(_ transaction: Transaction) throws(DispatchError) -> (Dispatched, CascadeReport) {
        guard TurnMark.current == nil else { return (try dispatch(transaction), CascadeReport()) }
        let isComplete = DispatchSemaphore(value: 0)
        let result = Mutex((outcome: Outcome.draining, report: CascadeReport()))
        enqueue(
            awaiting(transaction) { outcome, report in
                result.withLock { $0 = (outcome, report) }
                isComplete.signal()
            })
        flushNow()
        isComplete.wait()
        let (outcome, report) = result.withLock { $0 }
        return (try Dispatched(outcome), report)
    }

    private func dispatchAwaiting(
        _ transaction: Transaction
    ) async throws(DispatchError) -> (Dispatched, CascadeReport) {
        let (outcome, report) = await withCheckedContinuation { continuation in
            submit(awaiting(transaction) { continuation.resume(returning: ($0, $1)) })
        }
        return (try Dispatched(outcome), report)
    }

    /// A transaction whose end is that of its cascade.
    private func awaiting(
        _ transaction: Transaction, _ completed: @escaping @Sendable (Outcome, CascadeReport) -> Void
    ) -> PendingTransaction {
        let ended = Mutex(Outcome.draining)
        return PendingTransaction(transaction) { outcome in
            switch outcome {
            case .committed, .nothingCommitted: ended.withLock { $0 = outcome }
            case .wouldCommit, .rejected, .preconditionFailed, .keyReused, .full, .notRecorded, .unknown, .failed,
                .draining:
                completed(outcome, CascadeReport())
            }
        } completed: { report in
            completed(ended.withLock { $0 }, report)
        }
    }
}
