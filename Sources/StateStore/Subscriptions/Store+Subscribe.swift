internal import Dispatch
internal import Synchronization

/// Following the state in process.
///
/// Every subscriber is told the value that stands now, before the call returns, and then each commit that changes it, in
/// order, once: what others dispatch meanwhile comes later. It is called on the store's queue, inside the turn: it must be
/// quick. Subscribing, unsubscribing and dispatching inside a notification are safe. Inside a turn of another store, which
/// must not wait for this one, the value that stands now is told after the call has returned.
extension Store {
    /// The whole state, to be narrowed.
    var wholeSubscription: Subscription<State, State> {
        Subscription(value: { $0.state }, tells: { _, _ in true })
    }

    /// Subscribes to what `transform` makes of the state.
    ///
    /// - Returns: what keeps the subscription alive.
    public func subscribe<Value: Sendable>(
        _ transform: (Subscription<State, State>) -> Subscription<State, Value>,
        changes tell: @escaping @Sendable (Change<Value>) -> Void
    ) -> SubscriptionToken {
        subscribe(transform(wholeSubscription), tell)
    }

    /// Subscribes to what `transform` makes of the state.
    ///
    /// - Returns: what keeps the subscription alive.
    public func subscribe<Value: Sendable>(
        _ transform: (Subscription<State, State>) -> Subscription<State, Value>,
        newState tell: @escaping @Sendable (Value) -> Void
    ) -> SubscriptionToken {
        subscribe(transform(wholeSubscription)) { tell($0.new) }
    }

    /// Subscribes to what `transform` makes of the state; repeats are skipped where the store does so by itself.
    ///
    /// - Returns: what keeps the subscription alive.
    public func subscribe<Value: Equatable & Sendable>(
        _ transform: (Subscription<State, State>) -> Subscription<State, Value>,
        newState tell: @escaping @Sendable (Value) -> Void
    ) -> SubscriptionToken {
        subscribe(withoutRepeats(transform(wholeSubscription))) { tell($0.new) }
    }

    /// Subscribes to what `transform` makes of the state; repeats are skipped where the store does so by itself.
    ///
    /// - Returns: what keeps the subscription alive.
    public func subscribe<Value: Equatable & Sendable>(
        _ transform: (Subscription<State, State>) -> Subscription<State, Value>,
        changes tell: @escaping @Sendable (Change<Value>) -> Void
    ) -> SubscriptionToken {
        subscribe(withoutRepeats(transform(wholeSubscription)), tell)
    }

    /// Subscribes to a part of the state; repeats are skipped where the store does so by itself.
    ///
    /// - Returns: what keeps the subscription alive.
    public func subscribe<Value: Equatable & Sendable>(
        _ path: any KeyPath<State, Value> & Sendable, newState tell: @escaping @Sendable (Value) -> Void
    ) -> SubscriptionToken {
        subscribe({ $0.select(path) }, newState: tell)
    }

    /// Subscribes to the whole state.
    ///
    /// - Returns: what keeps the subscription alive.
    public func subscribe(newState tell: @escaping @Sendable (State) -> Void) -> SubscriptionToken {
        subscribe({ $0 }, newState: tell)
    }

    /// Subscribes to a named view; what reads nothing that a commit has changed is not evaluated.
    ///
    /// - Returns: what keeps the subscription alive, or nil when there is no view of this name and type.
    public func subscribe<Value: Equatable & Sendable>(
        view name: String, as type: Value.Type = Value.self, newState tell: @escaping @Sendable (Value) -> Void
    ) -> SubscriptionToken? {
        guard view(name, as: type) != nil, let number = model.number(ofView: name) else { return nil }
        let value: @Sendable (Snapshot<State>) -> Value? = { [model] snapshot in
            model.view(name, in: snapshot.state, viewVersions: snapshot.viewVersions) as? Value
        }
        let isChanged: @Sendable (Snapshot<State>, Snapshot<State>) -> Bool = {
            $0.viewVersions[number] != $1.viewVersions[number]
        }
        // The value before is kept, not evaluated: the memo has the newest only.
        let last = Mutex<Value?>(nil)
        return subscribe(Subscription(value: value, tells: isChanged)) { change in
            guard let new = change.new, last.withLock({ exchange(&$0, with: new) }) != new else { return }
            tell(new)
        }
    }

    /// The value of a named view now; nil when there is no view of this name and type.
    public func view<Value: Sendable>(_ name: String, as type: Value.Type = Value.self) -> Value? {
        let latest = latest
        return model.view(name, in: latest.state, viewVersions: latest.viewVersions) as? Value
    }

    /// Subscribes an object, weakly; a subscription that it has already is replaced.
    public func subscribe<Subscriber: StoreSubscriber>(
        _ subscriber: Subscriber,
        _ transform: (Subscription<State, State>) -> Subscription<State, Subscriber.Value>
    ) {
        add(subscriber, transform(wholeSubscription))
    }

    /// Subscribes an object, weakly; a subscription that it has already is replaced.
    ///
    /// Repeats are skipped where the store does so by itself.
    public func subscribe<Subscriber: StoreSubscriber>(
        _ subscriber: Subscriber,
        _ transform: (Subscription<State, State>) -> Subscription<State, Subscriber.Value>
    ) where Subscriber.Value: Equatable {
        add(subscriber, withoutRepeats(transform(wholeSubscription)))
    }

    /// Subscribes an object to the whole state, weakly; a subscription that it has already is replaced.
    public func subscribe<Subscriber: StoreSubscriber>(_ subscriber: Subscriber) where Subscriber.Value == State {
        add(subscriber, wholeSubscription)
    }

    /// Ends the subscription of an object; one that has none is fine.
    public func unsubscribe(_ subscriber: some StoreSubscriber) {
        subscribers.end(ObjectIdentifier(subscriber))
    }

    /// The values as a sequence, beginning with the one that stands now.
    ///
    /// Whoever is slow misses what `buffering` does not keep: by default only the newest value waits. It ends when the
    /// task that reads it is cancelled.
    public func values<Value: Equatable & Sendable>(
        buffering: AsyncStream<Value>.Continuation.BufferingPolicy = .bufferingNewest(1),
        _ transform: (Subscription<State, State>) -> Subscription<State, Value>
    ) -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: buffering)
        let token = subscribe(transform) { continuation.yield($0) }
        continuation.onTermination = { _ in token.cancel() }
        return stream
    }

    /// How many subscriptions there are.
    public var subscriptionsCount: Int { subscribers.count }

    /// Tells a commit, and dispatches as one what subscribers have left to the conductor.
    func tell(_ commit: Commit, from old: Snapshot<State>, to new: Snapshot<State>, _ causation: Causation) {
        guard subscribers.count > 0 else { return }
        notification.withLock { $0 = Notification(causation: causation, snapshot: new) }
        subscribers.tell(commit, from: old, to: new)
        let batched = notification.withLock { $0.take()?.batched ?? [] }
        if !batched.isEmpty { follow(batched.map { .init($0) }, .batch, causation) }
    }

    private func withoutRepeats<Value: Equatable & Sendable>(_ subscription: Subscription<State, Value>)
        -> Subscription<State, Value>
    {
        automaticallySkipsRepeats ? subscription.skipRepeats() : subscription
    }

    private func add<Subscriber: StoreSubscriber>(
        _ subscriber: Subscriber, _ subscription: Subscription<State, Subscriber.Value>
    ) {
        let registration = Subscribers<State>.Registration { [weak subscriber] _, old, new in
            guard let subscriber else { return false }
            if old.map({ subscription.tells($0, new) }) ?? true { subscriber.newState(subscription.value(new)) }
            return true
        }
        begin(registration, of: ObjectIdentifier(subscriber))
    }

    private func subscribe<Value: Sendable>(
        _ subscription: Subscription<State, Value>, _ tell: @escaping @Sendable (Change<Value>) -> Void
    ) -> SubscriptionToken {
        let registration = Subscribers<State>.Registration { commit, old, new in
            if let old, !subscription.tells(old, new) { return true }
            tell(
                Change(
                    old: old.map(subscription.value), new: subscription.value(new), version: new.version,
                    commit: commit))
            return true
        }
        begin(registration)
        return SubscriptionToken { [weak self] in self?.subscribers.end(registration) }
    }

    /// Adds a registration and tells it what stands now, in one step: no commit slips between.
    private func begin(_ registration: Subscribers<State>.Registration, of object: ObjectIdentifier? = nil) {
        let begin = { @Sendable [self] in
            subscribers.add(registration, of: object)
            // Inside a notification, that is the state which is being told: the rest of the turn comes after it.
            subscribers.tell(registration, notification.withLock { $0?.snapshot } ?? latest)
        }
        switch TurnMark.current?.store {
        case nil: onQueue(begin)
        case ObjectIdentifier(self)?: begin()
        case _?: queue.async { [self] in TurnMark.with(ObjectIdentifier(self), begin) }
        }
    }
}

extension Store where State: Equatable {
    /// Subscribes to the whole state; repeats are skipped where the store does so by itself.
    ///
    /// - Returns: what keeps the subscription alive.
    public func subscribe(newState tell: @escaping @Sendable (State) -> Void) -> SubscriptionToken {
        subscribe({ $0 }, newState: tell)
    }

    /// Subscribes an object to the whole state, weakly; a subscription that it has already is replaced.
    ///
    /// Repeats are skipped where the store does so by itself.
    public func subscribe<Subscriber: StoreSubscriber>(_ subscriber: Subscriber) where Subscriber.Value == State {
        subscribe(subscriber) { $0 }
    }
}
