internal import StateJSON
internal import Synchronization

extension Store {
    /// An asynchronous action creator: a function of the state at its start, which dispatches when its work is done.
    public typealias AsynchronousCreator = @Sendable (_ state: State, _ dispatch: Dispatcher) async throws -> Void

    /// Starts an asynchronous action creator in a task of its own.
    ///
    /// The task is cancelled when the token is cancelled or released, and when the store stops; the store refuses what a
    /// cancelled creator dispatches. An error that the creator throws goes to the store's `report`. The creator counts to
    /// `StoreLimits.effectsMax`. Inside a notification the cascade of the commit waits for the creator.
    ///
    /// ```swift
    /// loading = store.start { state, dispatch in
    ///     try await dispatch(Loaded(films: fetch(state.query)))
    /// }
    /// ```
    ///
    /// - Returns: the token that keeps the creator alive.
    public func start(_ creator: @escaping AsynchronousCreator) -> SubscriptionToken {
        let id = WorkID.next()
        // Inside a notification, the state is the one of its commit.
        let commit =
            untyped.isInOwnTurn
            ? untyped.notification.withLock { $0.map { ($0.causation, $0.snapshot.state.state(as: State.self)) } } : nil
        let state = commit?.1 ?? state
        untyped.run({ dispatch in try await creator(state, dispatch) }, of: "creator", id: id, commit?.0)
        return SubscriptionToken { [weak untyped] in untyped?.effects.cancel(id) }
    }

    /// Subscribes to what `transform` selects, and runs asynchronous work for each value in a task of its own.
    ///
    /// A new value cancels the work on the value before, and the end of the subscription cancels the work that runs: the
    /// store refuses what cancelled work dispatches. The cascade of the commit that made the value waits for the work. An
    /// error goes to the store's `report`. The subscription skips repeats where ``automaticallySkipsRepeats`` is true.
    ///
    /// ```swift
    /// searching = store.subscribe({ $0.select(\.query) }, effect: { query, dispatch in
    ///     try await dispatch(Found(films: search(query)))
    /// })
    /// ```
    ///
    /// - Returns: the token that keeps the subscription alive.
    public func subscribe<Value: Equatable & Sendable>(
        _ transform: (Subscription<State, State>) -> Subscription<State, Value>,
        effect work: @escaping @Sendable (_ value: Value, _ dispatch: Dispatcher) async throws -> Void
    ) -> SubscriptionToken {
        let id = WorkID.next()
        let token = subscribe(withoutRepeats(transform(wholeSubscription))) { [weak untyped] registration, change in
            guard let untyped, !registration.isOver else { return }
            untyped.run(
                { dispatch in try await work(change.new, dispatch) }, of: "subscription", id: id,
                untyped.currentCausation)
            // The subscription may have ended while the work began.
            if registration.isOver { untyped.effects.cancel(id) }
        }
        return SubscriptionToken { [weak untyped] in
            token.cancel()
            untyped?.effects.cancel(id)
        }
    }
}

private enum WorkID {
    private static let count = Atomic<UInt64>(0)

    /// An ID that no other work has; a domain would have to choose it on purpose.
    static func next() -> String { "work \(count.add(1, ordering: .relaxed).newValue)" }
}
