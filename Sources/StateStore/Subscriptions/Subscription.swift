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
}

extension Subscription {
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
