public import Dispatch
internal import StateJSON
internal import Synchronization

/// Subscriptions to the state in process.
///
/// A subscriber gets the current value before `subscribe` returns, and then each commit that changes the value, in order
/// and once. The store calls subscribers on its queue, inside the turn, so they must be quick. Subscribing, unsubscribing
/// and dispatching inside a notification are safe. Where the call is inside a reducer, or inside a turn of another store,
/// which must not wait for this one, the subscriber gets the current value after the call has returned.
extension Store {
    var wholeSubscription: Subscription<State, State> {
        Subscription(value: { $0.state.state() }, passes: { _, _ in true })
    }

    /// Subscribes to the changes of what `transform` selects: each with the value before, the version and the commit.
    ///
    /// The subscription skips repeats of an `Equatable` value where ``automaticallySkipsRepeats`` is true.
    ///
    /// - Returns: the token that keeps the subscription alive.
    public func subscribe<Value: Sendable>(
        changesOf transform: (Subscription<State, State>) -> Subscription<State, Value>,
        notify: @escaping @Sendable (Change<Value>) -> Void
    ) -> SubscriptionToken {
        subscribe(withoutRepeats(transform(wholeSubscription))) { _, change in notify(change) }
    }

    /// Subscribes to what `transform` selects.
    ///
    /// The subscription skips repeats of an `Equatable` value where ``automaticallySkipsRepeats`` is true.
    ///
    /// - Returns: the token that keeps the subscription alive.
    public func subscribe<Value: Sendable>(
        _ transform: (Subscription<State, State>) -> Subscription<State, Value>,
        newState notify: @escaping @Sendable (Value) -> Void
    ) -> SubscriptionToken {
        subscribe(changesOf: transform) { notify($0.new) }
    }

    /// Subscribes to a part of the state, without repeats where ``automaticallySkipsRepeats`` is true.
    ///
    /// - Returns: the token that keeps the subscription alive.
    public func subscribe<Value: Equatable & Sendable>(
        _ path: any KeyPath<State, Value> & Sendable, newState notify: @escaping @Sendable (Value) -> Void
    ) -> SubscriptionToken {
        subscribe({ $0.select(path) }, newState: notify)
    }

    /// Subscribes to the whole state, without repeats where it is `Equatable` and ``automaticallySkipsRepeats`` is true.
    ///
    /// - Returns: the token that keeps the subscription alive.
    public func subscribe(newState notify: @escaping @Sendable (State) -> Void) -> SubscriptionToken {
        subscribe({ $0 }, newState: notify)
    }

    /// Subscribes to a named view, which the store evaluates only after commits that change something it reads.
    ///
    /// - Returns: the token that keeps the subscription alive; nil when the domain has no view of this name and type.
    public func subscribe<Value: Equatable & Sendable>(
        view name: String, as type: Value.Type = Value.self, newState notify: @escaping @Sendable (Value) -> Void
    ) -> SubscriptionToken? {
        guard view(name, as: type) != nil, let number = untyped.domain.number(ofView: name) else { return nil }
        let value: @Sendable (Snapshot) -> Value? = { [domain = untyped.domain] snapshot in
            domain.view(name, in: snapshot) as? Value
        }
        let isChanged: @Sendable (Snapshot, Snapshot) -> Bool = {
            $0.viewVersions[number] != $1.viewVersions[number]
        }
        // The subscription keeps the value before, because the cache of the view only has the newest value.
        let last = Mutex<Value?>(nil)
        return subscribe(Subscription(value: value, passes: isChanged)) { _, change in
            guard let new = change.new, last.withLock({ exchange(&$0, with: new) }) != new else { return }
            notify(new)
        }
    }

    /// The current value of a named view; nil when the domain has no view of this name and type, or the view reads itself.
    ///
    /// - Parameters:
    ///   - parameters: what a view with parameters is evaluated for; others than it takes give nil.
    ///   - subject: for whom a view that takes the subject is evaluated.
    public func view<Value: Sendable>(
        _ name: String, parameters: (any Encodable)? = nil, subject: String? = nil, as type: Value.Type = Value.self
    ) -> Value? {
        // Parameters that cannot be encoded are none that the view takes.
        let given = parameters.flatMap { try? JSON.encode($0) }.flatMap { try? JSONValue(parsing: $0) }
        let value = untyped.domain.view(name, parameters: given, subject: subject, in: untyped.latest)
        if let fault = value as? ViewReadsItself { untyped.report(.viewFailed(reason: fault.description)) }
        return value as? Value
    }

    /// Subscribes an object, which the store does not retain; it replaces the object's earlier subscription.
    ///
    /// The subscription skips repeats of an `Equatable` value where ``automaticallySkipsRepeats`` is true.
    public func subscribe<Subscriber: StoreSubscriber>(
        _ subscriber: Subscriber,
        _ transform: (Subscription<State, State>) -> Subscription<State, Subscriber.Value>
    ) {
        let subscription = withoutRepeats(transform(wholeSubscription))
        let registration = Subscribers.Registration(of: ObjectIdentifier(subscriber)) {
            [weak subscriber] _, _, old, new in
            guard let subscriber else { return false }
            if old.map({ subscription.passes($0, new) }) ?? true { subscriber.newState(subscription.value(new)) }
            return true
        }
        untyped.begin(registration)
    }

    /// Subscribes an object, which the store does not retain, to the whole state; it replaces an earlier subscription.
    public func subscribe<Subscriber: StoreSubscriber>(_ subscriber: Subscriber) where Subscriber.Value == State {
        subscribe(subscriber) { $0 }
    }

    /// Ends the subscription of an object, if it has one.
    public func unsubscribe(_ subscriber: some StoreSubscriber) {
        untyped.subscribers.end(ObjectIdentifier(subscriber))
    }

    /// The values as a sequence, beginning with the current one.
    ///
    /// A slow reader misses the values that `buffering` does not keep: by default the sequence keeps only the newest one.
    /// The sequence ends when its reader's task is cancelled.
    public func values<Value: Equatable & Sendable>(
        buffering: AsyncStream<Value>.Continuation.BufferingPolicy = .bufferingNewest(1),
        _ transform: (Subscription<State, State>) -> Subscription<State, Value>
    ) -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: buffering)
        let token = subscribe(transform) { continuation.yield($0) }
        continuation.onTermination = { _ in token.cancel() }
        return stream
    }

    /// Subscribes to what `transform` selects, and calls `notify` on the main actor, in order.
    ///
    /// The subscription skips repeats where ``automaticallySkipsRepeats`` is true. The first call comes after `subscribe` has
    /// returned, and no call comes after the token was cancelled on the main actor.
    ///
    /// - Returns: the token that keeps the subscription alive.
    public func subscribe<Value: Equatable & Sendable>(
        _ transform: (Subscription<State, State>) -> Subscription<State, Value>,
        onMainActor notify: @escaping @MainActor @Sendable (Value) -> Void
    ) -> SubscriptionToken {
        subscribe(on: .main, transform) { value in MainActor.assumeIsolated { notify(value) } }
    }

    /// Subscribes to what `transform` selects, and calls `newState` on a queue of the caller's, in order.
    ///
    /// The subscription skips repeats where ``automaticallySkipsRepeats`` is true. A turn does not wait for the queue, and no
    /// call begins after the token was cancelled.
    ///
    /// - Parameter queue: a serial queue; a concurrent one would call the subscriber out of order.
    /// - Returns: the token that keeps the subscription alive.
    public func subscribe<Value: Equatable & Sendable>(
        on queue: DispatchQueue, _ transform: (Subscription<State, State>) -> Subscription<State, Value>,
        newState notify: @escaping @Sendable (Value) -> Void
    ) -> SubscriptionToken {
        subscribe(withoutRepeats(transform(wholeSubscription))) { registration, change in
            queue.async { if !registration.isOver { notify(change.new) } }
        }
    }

    /// The commits as a sequence, from the next one on, each once and in order.
    ///
    /// The sequence ends when its reader's task is cancelled.
    ///
    /// - Parameter buffering: by default all commits that the reader has not taken are kept, whatever memory they need.
    public func commits(
        buffering: AsyncStream<Commit>.Continuation.BufferingPolicy = .unbounded
    ) -> AsyncStream<Commit> {
        let (stream, continuation) = AsyncStream.makeStream(of: Commit.self, bufferingPolicy: buffering)
        let token = subscribe(wholeSubscription) { _, change in
            if let commit = change.commit { continuation.yield(commit) }
        }
        continuation.onTermination = { _ in token.cancel() }
        return stream
    }

    func withoutRepeats<Value>(_ subscription: Subscription<State, Value>) -> Subscription<State, Value> {
        automaticallySkipsRepeats && Value.self is any Equatable.Type
            ? subscription.skip { areEqual($0, $1) } : subscription
    }

    func subscribe<Value: Sendable>(
        _ subscription: Subscription<State, Value>,
        _ notify: @escaping @Sendable (Subscribers.Registration, Change<Value>) -> Void
    ) -> SubscriptionToken {
        let registration = Subscribers.Registration { registration, commit, old, new in
            if let old, !subscription.passes(old, new) { return true }
            notify(
                registration,
                Change(
                    old: old.map(subscription.value), new: subscription.value(new), version: new.version,
                    commit: commit))
            return true
        }
        untyped.begin(registration)
        // The registration ends without the store, too: its calls may wait on another queue.
        return SubscriptionToken { [weak untyped] in
            if registration.end() { untyped?.subscribers.remove(registration) }
        }
    }

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

/// Whether two values are equal, whose type is `Equatable` where nobody can name it.
private func areEqual<Value: Sendable>(_ left: Value, _ right: Value) -> Bool {
    func areEqual<Same: Equatable>(as _: Same.Type) -> Bool { left as? Same == right as? Same }
    guard let type = Value.self as? any Equatable.Type else { return false }
    return areEqual(as: type)
}

extension UntypedStore {
    package var subscriptionsCount: Int { subscribers.openCount.load(ordering: .acquiring) }

    func notify(_ commit: Commit, from old: Snapshot, to new: Snapshot, _ causation: Causation) {
        guard subscriptionsCount > 0 else { return }
        notification.withLock { $0 = Notification(causation: causation, snapshot: new) }
        subscribers.notify(commit, from: old, to: new)
        let batched = notification.withLock { $0.take() }?.batched ?? []
        if !batched.isEmpty { dispatchFollowUp(Transaction(batched.map { .init($0) }, form: .batch), causation) }
    }

    /// Adds a registration and calls it with the current snapshot, in one step, so that it misses no commit.
    fileprivate func begin(_ registration: Subscribers.Registration) {
        let begin = { @Sendable [self] in
            subscribers.add(registration)
            // Inside a notification, the current snapshot is the one of its commit: later commits of the turn follow.
            subscribers.notify(registration, notification.withLock { $0?.snapshot } ?? latest)
        }
        switch TurnMark.current {
        case nil: onQueue(begin)
        // Inside a reducer, the current snapshot is not yet the one that the reducer makes.
        case let mark? where mark.queue === queue && !mark.isReducing: begin()
        case _?: onQueueLater(begin)
        }
    }
}

private enum WorkID {
    private static let count = Atomic<UInt64>(0)

    /// An ID that no other work has; a domain would have to choose it on purpose.
    static func next() -> String { "work \(count.add(1, ordering: .relaxed).newValue)" }
}
