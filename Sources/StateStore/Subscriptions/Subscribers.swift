internal import Synchronization

struct Notification: Sendable {
    let causation: Causation
    let snapshot: Snapshot
    /// The follow-ups that the store dispatches as one transaction after the last subscriber.
    var batched: [any Action] = []
}

/// The subscriptions of a store, in the order in which they began.
///
/// A closure is released outside every lock, because it may own the tokens of other subscriptions.
final class Subscribers: Sendable {
    final class Registration: Sendable {
        /// Calls the subscriber; false when it has been released.
        typealias Notify =
            @Sendable (Registration, _ commit: Commit?, _ old: Snapshot?, _ new: Snapshot) -> Bool

        /// The closure in a struct: each access to a bare closure in a generic container wraps it once more.
        private struct Held {
            let notify: Notify
        }

        private let held: Mutex<Held?>
        /// The subscriber, where it is an object that can subscribe once.
        fileprivate let object: ObjectIdentifier?
        /// The key in the list, or 0 before it is there; only code under the list's lock changes it.
        fileprivate let number = Atomic<UInt64>(0)

        init(of object: ObjectIdentifier? = nil, _ notify: @escaping Notify) {
            self.object = object
            held = Mutex(Held(notify: notify))
        }

        var isOver: Bool { held.withLock { $0 == nil } }

        /// True when this call has ended the registration, because the subscriber has been released.
        fileprivate func notifyAndEnd(_ commit: Commit?, _ old: Snapshot?, _ new: Snapshot) -> Bool {
            guard let held = held.withLock({ $0 }) else { return false }
            return !held.notify(self, commit, old, new) && end()
        }

        func end() -> Bool { held.withLock { $0.take() } != nil }
    }

    private struct List {
        var registrations = PersistentMap<UInt64, Registration>()
        var lastNumber: UInt64 = 0
        var byObject: [ObjectIdentifier: Registration] = [:]
    }

    private let list = Mutex(List())
    /// A count that each turn asks for, without the lock.
    let openCount = Atomic(0)

    private func change<Result>(_ body: (inout sending List) -> sending Result) -> sending Result {
        list.withLock { list in
            defer { openCount.store(list.registrations.count, ordering: .releasing) }
            return body(&list)
        }
    }

    func add(_ registration: Registration) {
        let former: Registration? = change { list in
            guard !registration.isOver else { return nil }
            list.lastNumber += 1
            registration.number.store(list.lastNumber, ordering: .relaxed)
            list.registrations.set(list.lastNumber, registration)
            return registration.object.flatMap { list.byObject.updateValue(registration, forKey: $0) }
        }
        if let former { end(former) }
    }

    func end(_ registration: Registration) {
        if registration.end() { remove(registration) }
    }

    func end(_ object: ObjectIdentifier) {
        if let registration = list.withLock({ $0.byObject[object] }) { end(registration) }
    }

    func remove(_ registration: Registration) {
        change { list in
            list.registrations.remove(registration.number.load(ordering: .relaxed))
            if let object = registration.object, list.byObject[object] === registration { list.byObject[object] = nil }
        }
    }

    func notify(_ registration: Registration, _ snapshot: Snapshot) {
        if registration.notifyAndEnd(nil, nil, snapshot) { remove(registration) }
    }

    func notify(_ commit: Commit, from old: Snapshot, to new: Snapshot) {
        list.withLock { $0.registrations }.visit { _, registration in
            if registration.notifyAndEnd(commit, old, new) { remove(registration) }
        }
    }
}

/// The part of the state that a subscriber selects, and the changes of it that the subscriber gets.
///
/// ```swift
/// store.subscribe({ $0.select(\.favourites).select(\.count).only { $0 < $1 } }) { print("one more: \($0)") }
/// ```
///
/// Each of the filters compares the values before and after one commit. A subscriber always gets the value at the beginning
/// of its subscription.
public struct Subscription<State: StateType, Value: Sendable>: Sendable {
    let value: @Sendable (Snapshot) -> Value
    let passes: @Sendable (_ old: Snapshot, _ new: Snapshot) -> Bool

    /// Selects a part of the value with a function.
    public func select<Part: Sendable>(_ part: @escaping @Sendable (Value) -> Part) -> Subscription<State, Part> {
        .init(value: { [value] in part(value($0)) }, passes: passes)
    }

    /// Selects a part of the value by key path.
    public func select<Part: Sendable>(_ path: any KeyPath<Value, Part> & Sendable) -> Subscription<State, Part> {
        select { $0[keyPath: path] }
    }

    /// Leaves out the changes for which a function is true.
    public func skip(when isSkipped: @escaping @Sendable (_ old: Value, _ new: Value) -> Bool) -> Subscription {
        only { !isSkipped($0, $1) }
    }

    /// Leaves out the changes for which a function is false.
    public func only(when isIncluded: @escaping @Sendable (_ old: Value, _ new: Value) -> Bool) -> Subscription {
        .init(value: value) { [value, passes] old, new in passes(old, new) && isIncluded(value(old), value(new)) }
    }

    /// Leaves out the changes after which a function takes the value for the same as the one before.
    public func skipRepeats(_ areEqual: @escaping @Sendable (_ old: Value, _ new: Value) -> Bool) -> Subscription {
        skip(when: areEqual)
    }
}

extension Subscription where Value: Equatable {
    /// Leaves out the changes after which the value equals the one before.
    public func skipRepeats() -> Subscription { skip(when: ==) }
}

/// A value before and after a commit, as a subscriber gets it.
public struct Change<Value: Sendable>: Sendable {
    /// The value before the commit; nil at the beginning of the subscription.
    public let old: Value?
    /// The value after the commit.
    public let new: Value
    /// The version of the new value.
    public let version: Version
    /// The commit; nil at the beginning of the subscription.
    public let commit: Commit?
}

/// Keeps a subscription alive: the subscription ends when the token is cancelled or released.
public final class SubscriptionToken: Sendable {
    private let onCancel: @Sendable () -> Void

    init(_ onCancel: @escaping @Sendable () -> Void) {
        self.onCancel = onCancel
    }

    deinit { onCancel() }

    /// Ends the subscription: the store begins no further call of the subscriber.
    ///
    /// A call that has begun on the store's queue may still be running.
    public func cancel() { onCancel() }
}

/// An object that can subscribe to a store, which does not retain it.
public protocol StoreSubscriber<Value>: AnyObject, Sendable {
    /// The type of the values that the object gets.
    associatedtype Value: Sendable

    /// Takes a new value, on the store's queue, inside the turn.
    func newState(_ state: Value)
}
