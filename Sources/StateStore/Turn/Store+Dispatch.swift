internal import Dispatch
internal import StateJSON
internal import Synchronization

/// What became of a dispatch.
public enum Dispatched: Sendable {
    /// It is in the history.
    case committed(Receipt)
    /// There was nothing to commit: a middleware swallowed the action, or its creator made none.
    case nothing
    /// It was dispatched inside a turn, of this store or of another, by a subscriber or a creator, and has its own turn
    /// later.
    ///
    /// If that one refuses it, the store's `report` hears of it.
    case queued

    /// The proof of the commit, where there was one.
    public var receipt: Receipt? { if case .committed(let receipt) = self { receipt } else { nil } }
}

/// What a dispatch waits for beside its own turn.
public enum Awaiting: Sendable {
    /// The completion of the cascade: every action and effect that the commit has caused is over.
    case cascade
}

/// Why an action was not committed: nothing has happened.
public enum DispatchError: Error, Sendable, CustomStringConvertible {
    /// A reducer or a middleware did not take the action at `index` of a batch.
    case rejected(Rejection, index: Int)
    /// As many actions wait as the store allows.
    case full
    /// The journal did not take it.
    case notRecorded
    /// The new state cannot be encoded.
    case failed(detail: String)
    /// The store is stopping.
    case draining
    /// The effect that dispatched it has been cancelled.
    case cancelled
    /// A condition did not hold.
    case preconditionFailed(pointer: String)
    /// A reducer dispatched it.
    case inReducer

    /// A stable name for programs; of a rejection its own.
    public var code: String {
        switch self {
        case .rejected(let rejection, _): rejection.code
        case .full: "mailbox-full"
        case .notRecorded: "not-durable"
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
        case .full: "as many actions wait as this store allows"
        case .notRecorded: "the journal could not record it"
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
        case .failed(let detail): throw .failed(detail: detail)
        case .draining: throw .draining
        }
    }
}

extension Store {
    /// An action creator: sees the state that its action will find, and may return nothing.
    ///
    /// It runs inside the turn. What it dispatches through the store it is given runs in a later one; work that takes
    /// time goes into a task that dispatches when it is done.
    public typealias ActionCreator = @Sendable (State, Store<State>) throws(Rejection) -> (any Action)?

    /// Dispatches an action and returns after its turn: subscribers have been told.
    ///
    /// Inside a turn of any store, in a notification, a middleware or a creator, it only queues the action for a later
    /// one, also from inside a `sync` on another queue. A reducer must not dispatch: it is refused, and the store's
    /// `report` hears of it. On a thread of Swift concurrency the asynchronous form is chosen, which does not block it.
    ///
    /// What runs on another thread is not seen to belong to the turn: a notification that waits until another thread has
    /// dispatched, also by `DispatchQueue.main.sync`, waits without end. Actions that stores dispatch to each other have
    /// no budget together.
    ///
    /// - Parameter id: an ID of the caller's own, under which the commit is recorded.
    /// - Throws: ``DispatchError``: nothing has happened.
    @discardableResult
    public func dispatch(_ action: any Action, id: String? = nil) throws(DispatchError) -> Dispatched {
        try dispatch(Transaction([.init(action, id: id)]))
    }

    /// Dispatches an action and returns after its turn.
    ///
    /// - Throws: ``DispatchError``: nothing has happened.
    @discardableResult
    public func dispatch(_ action: any Action, id: String? = nil) async throws(DispatchError) -> Dispatched {
        try await dispatch(Transaction([.init(action, id: id)]))
    }

    /// Dispatches several actions as one transaction: all or none, one version, one notification.
    ///
    /// - Throws: ``DispatchError``: nothing has happened.
    @discardableResult
    public func dispatch(batch actions: [any Action]) throws(DispatchError) -> Dispatched {
        try dispatch(Transaction(actions.map { .init($0) }, form: .batch))
    }

    /// Dispatches several actions as one transaction: all or none, one version, one notification.
    ///
    /// - Throws: ``DispatchError``: nothing has happened.
    @discardableResult
    public func dispatch(batch actions: [any Action]) async throws(DispatchError) -> Dispatched {
        try await dispatch(Transaction(actions.map { .init($0) }, form: .batch))
    }

    /// Dispatches what a creator makes of the state.
    ///
    /// - Throws: ``DispatchError``: nothing has happened.
    @discardableResult
    public func dispatch(_ creator: @escaping ActionCreator) throws(DispatchError) -> Dispatched {
        try dispatch(Transaction([item(creator)]))
    }

    /// Dispatches what a creator makes of the state.
    ///
    /// - Throws: ``DispatchError``: nothing has happened.
    @discardableResult
    public func dispatch(_ creator: @escaping ActionCreator) async throws(DispatchError) -> Dispatched {
        try await dispatch(Transaction([item(creator)]))
    }

    /// Dispatches an action and returns when everything that it has caused is over, too.
    ///
    /// - Throws: ``DispatchError`` when the action itself was not committed; what it caused and was refused is in the report.
    public func dispatch(
        _ action: any Action, awaiting: Awaiting
    ) async throws(DispatchError) -> (Dispatched, CascadeReport) {
        let transaction = Transaction([.init(action)])
        let (outcome, report) = await withCheckedContinuation { continuation in
            let committed = Mutex(Outcome.draining)
            submit(
                PendingTransaction(transaction) { outcome in
                    guard case .committed = outcome else {
                        return continuation.resume(returning: (outcome, CascadeReport()))
                    }
                    committed.withLock { $0 = outcome }
                } completed: { report in
                    continuation.resume(returning: (committed.withLock { $0 }, report))
                })
        }
        return (try Dispatched(outcome), report)
    }

    /// Adds an action to what is dispatched as one transaction once every subscriber has been told of the present commit.
    ///
    /// The conductor of the notification: what a hundred subscribers answer to one commit is one commit. Outside a
    /// notification it is dispatched by itself.
    ///
    /// - Throws: ``DispatchError``, only outside a notification.
    public func batchFollowUp(_ action: any Action) throws(DispatchError) {
        let isGathered =
            isInOwnTurn
            && notification.withLock { notification in
                notification?.batched.append(action)
                return notification != nil
            }
        if !isGathered { try dispatch(action) }
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
        // In a turn of another store, this one may be notification something else at the same time.
        dispatchLater(transaction, isInOwnTurn ? currentCausation : nil)
        return .queued
    }

    private func dispatch(_ transaction: Transaction) async throws(DispatchError) -> Dispatched {
        let outcome = await withCheckedContinuation { continuation in
            submit(PendingTransaction(transaction) { continuation.resume(returning: $0) })
        }
        return try Dispatched(outcome)
    }
}
