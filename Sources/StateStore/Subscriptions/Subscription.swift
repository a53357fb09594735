/// Which part of the state a subscriber cares about, and which of its changes.
///
/// ```swift
/// store.subscribe({ $0.select(\.favourites).select(\.count).only { $0 < $1 } }) { print("one more: \($0)") }
/// ```
///
/// Every step compares the values before and after one commit; the one that stands when the subscription begins is told
/// whatever they say.
public struct Subscription<State: StateType, Value: Sendable>: Sendable {
    let value: @Sendable (Snapshot<State>) -> Value
    /// Whether the change from one snapshot to the next is told.
    let tells: @Sendable (_ old: Snapshot<State>, _ new: Snapshot<State>) -> Bool

    /// Looks at a part of the value.
    public func select<Part: Sendable>(_ part: @escaping @Sendable (Value) -> Part) -> Subscription<State, Part> {
        .init(value: { [value] in part(value($0)) }, tells: tells)
    }

    /// Looks at a part of the value.
    public func select<Part: Sendable>(_ path: any KeyPath<Value, Part> & Sendable) -> Subscription<State, Part> {
        select { $0[keyPath: path] }
    }

    /// Leaves out the changes of which this is true.
    public func skip(when isSkipped: @escaping @Sendable (_ old: Value, _ new: Value) -> Bool) -> Subscription {
        only { !isSkipped($0, $1) }
    }

    /// Tells only the changes of which this is true.
    public func only(when isTold: @escaping @Sendable (_ old: Value, _ new: Value) -> Bool) -> Subscription {
        .init(value: value) { [value, tells] old, new in tells(old, new) && isTold(value(old), value(new)) }
    }
}

extension Subscription where Value: Equatable {
    /// Leaves out what is equal to what it was before.
    public func skipRepeats() -> Subscription { skip(when: ==) }
}

/// A value before and after a commit, as a subscriber is told of it.
public struct Change<Value: Sendable>: Sendable {
    /// The value before the commit; nil when the subscription begins.
    public let old: Value?
    /// The value after it.
    public let new: Value
    /// The version that the commit made; when the subscription begins, the version of then.
    public let version: Version
    /// The commit; nil when the subscription begins.
    public let commit: Commit?
}

/// Keeps a subscription alive: it ends when this is cancelled or let go of.
public final class SubscriptionToken: Sendable {
    private let onCancel: @Sendable () -> Void

    init(_ onCancel: @escaping @Sendable () -> Void) {
        self.onCancel = onCancel
    }

    deinit { onCancel() }

    /// Ends the subscription: no call begins any more.
    ///
    /// One that has begun on the store's queue may still be running.
    public func cancel() { onCancel() }
}

/// An object that subscribes for itself, and is let go of when nobody else holds it.
public protocol StoreSubscriber<Value>: AnyObject, Sendable {
    /// What it is told.
    associatedtype Value: Sendable

    /// Takes a new value, on the store's queue.
    func newState(_ state: Value)
}
