import StateStore
import Synchronization

// The part of ReSwift's API that its tests use, over the public API of `StateStore`.

package protocol Action {}
package struct ReSwiftInit: Action {}
package typealias Reducer<State> = (_ action: Action, _ state: State?) -> State
package typealias Middleware<State> =
    (@escaping (Action) -> Void, @escaping () -> State?) -> (@escaping (Action) -> Void) -> (Action) -> Void

enum Assertions {
    static let swiftFatalErrorClosure: (String, StaticString, UInt) -> Void = { fatalError($0, file: $1, line: $2) }
    static var fatalErrorClosure = swiftFatalErrorClosure
}

/// The state of every inner store: a value of any type, of which JSON has only how often a reducer has made it.
struct Held: StateType, Codable {
    private enum CodingKeys: CodingKey { case count }
    var value: Any? { didSet { count += 1 } }
    private var count = 0
    init() {}
    init(_ value: Any) { self.value = value }
}

/// The one type of action of every inner store, which carries an action of any type.
struct Carried: StateStore.Action {
    private enum CodingKeys: CodingKey {}
    static let type = "carried"
    private(set) var action: Action = ReSwiftInit()
    init(_ action: Action) { self.action = action }
}

private struct Reducing<State>: Domain {
    let reduce: Reducer<State>
    let hasState: Bool

    var reducer: some StateStore.Reducer<Held> {
        if !hasState { On(StoreInit.self) { held, _ in held.value = reduce(ReSwiftInit(), nil) } }
        On(Carried.self) { held, carried in held.value = reduce(carried.action, held.value as? State) }
    }
}

package protocol StoreType<State> {
    associatedtype State
    func dispatch(_ action: Action)
    func subscribe<Selected: Equatable, S: StoreSubscriber>(
        _ subscriber: S, transform: (Subscription<State>) -> Subscription<Selected>
    ) where S.StoreSubscriberStateType == Selected
}

package class Store<State>: StoreType {
    package typealias ActionCreator = (State, Store) -> Action?
    package typealias AsyncActionCreator = (State, Store, @escaping (@escaping ActionCreator) -> Void) -> Void

    private let inner: StateStore.Store<Held>
    /// The boxes of all subscriptions: the inner store alone retains a box, for as long as it has the subscription.
    private let boxes = Mutex<[() -> SubscriptionBox<State>?]>([])

    package required init(
        reducer: @escaping Reducer<State>, state: State?, middleware: [Middleware<State>] = [],
        automaticallySkipsRepeats: Bool = true
    ) {
        let (domain, held) = (Reducing(reduce: reducer, hasState: state != nil), state.map { Held($0) })
        do {
            inner = try .init(domain, state: held, automaticallySkipsRepeats: automaticallySkipsRepeats)
        } catch { fatalError("\(error)") }
        self.middleware = middleware
        if !middleware.isEmpty { install() }
    }

    package var state: State! { Self.state(in: inner.state) }
    package var middleware: [Middleware<State>] { didSet { install() } }
    var subscriptions: [SubscriptionBox<State>] { boxes.withLock { $0.compactMap { $0() } } }

    private static func state(in held: Held) -> State! { held.value as? State }

    private func install() {
        inner.middleware = middleware.map { middleware in
            .init { [weak self] action, context, next throws(Rejection) in
                guard let carried = action as? Carried else { return try next(action) }
                withoutActuallyEscaping(next) { next in
                    let process = middleware({ self?.dispatch($0) }, { Self.state(in: context.state) })
                    // Nothing behind it refuses an action: neither ReSwift's reducers nor its middleware can.
                    process { action in try? next(Carried(action)) }(carried.action)
                }
            }
        }
    }

    package func dispatch(_ action: Action) {
        _ = attempt { try inner.dispatch(Carried(action), awaiting: .cascade) }
    }

    package func dispatch(_ creator: @escaping ActionCreator) { _ = attempt(creator) }

    package func dispatch(_ creator: @escaping AsyncActionCreator, callback: ((State) -> Void)? = nil) {
        creator(state, self) { made in if self.attempt(made)?.receipt != nil { callback?(self.state) } }
    }

    private func attempt(_ creator: @escaping ActionCreator) -> Dispatched? {
        attempt {
            try inner.dispatch(
                .creator { held, _ in creator(Self.state(in: held), self).map(Carried.init) }, awaiting: .cascade)
        }
    }

    private func attempt(_ dispatch: () throws -> Dispatched) -> Dispatched? {
        do { return try dispatch() } catch { Assertions.fatalErrorClosure("\(error)", #file, #line) }
        return nil
    }

    package func subscribe<S: StoreSubscriber>(_ subscriber: S) where S.StoreSubscriberStateType == State {
        inner.subscribe(subscriber) { select(from: $0, for: subscriber) { $0 } }
    }

    package func subscribe<S: StoreSubscriber>(_ subscriber: S)
    where S.StoreSubscriberStateType == State, State: Equatable { subscribe(subscriber) { $0 } }

    package func subscribe<Selected, S: StoreSubscriber>(
        _ subscriber: S, transform: (Subscription<State>) -> Subscription<Selected>
    ) where S.StoreSubscriberStateType == Selected {
        inner.subscribe(subscriber) { select(from: $0, for: subscriber, transform) }
    }

    package func subscribe<Selected: Equatable, S: StoreSubscriber>(
        _ subscriber: S, transform: (Subscription<State>) -> Subscription<Selected>
    ) where S.StoreSubscriberStateType == Selected {
        inner.subscribe(subscriber) { select(from: $0, for: subscriber, transform) }
    }

    package func unsubscribe(_ subscriber: some StoreSubscriber) { inner.unsubscribe(subscriber) }

    private func select<Selected>(
        from whole: StateStore.Subscription<Held, Held>, for subscriber: AnyStoreSubscriber,
        _ transform: (Subscription<State>) -> Subscription<Selected>
    ) -> StateStore.Subscription<Held, Selected> {
        let original: Subscription<State> = .init(inner: whole.select { Self.state(in: $0) })
        let selection = transform(original)
        let box = subscriptionBox(
            originalSubscription: original, transformedSubscription: selection, subscriber: subscriber)
        boxes.withLock { $0.append { [weak box] in box } }
        return selection.inner.select { value in withExtendedLifetime(box) { value } }
    }

    func subscriptionBox<Selected>(
        originalSubscription: Subscription<State>, transformedSubscription: Subscription<Selected>?,
        subscriber: AnyStoreSubscriber
    ) -> SubscriptionBox<State> { .init(of: subscriber) }
}

package protocol AnyStoreSubscriber: AnyObject {}

/// A subscriber of the inner store under ReSwift's name of its method.
package protocol StoreSubscriber: AnyStoreSubscriber, StateStore.StoreSubscriber {
    associatedtype StoreSubscriberStateType where StoreSubscriberStateType == Value
    func newState(state: StoreSubscriberStateType)
}

extension StoreSubscriber {
    package func newState(_ state: StoreSubscriberStateType) { newState(state: state) }
}

/// A selection of the inner store, without its type of state, which is always the same.
package struct Subscription<Value> {
    package typealias Comparing = (_ old: Value, _ new: Value) -> Bool
    let inner: StateStore.Subscription<Held, Value>

    package func select<Part>(_ get: @escaping (Value) -> Part) -> Subscription<Part> {
        .init(inner: inner.select(get))
    }
    package func select<Part>(_ path: any KeyPath<Value, Part> & Sendable) -> Subscription<Part> {
        .init(inner: inner.select(path))
    }
    package func skipRepeats(_ isRepeat: @escaping Comparing) -> Self { .init(inner: inner.skipRepeats(isRepeat)) }
    package func skipRepeats() -> Self where Value: Equatable { .init(inner: inner.skipRepeats()) }
    package func skip(when isSkipped: @escaping Comparing) -> Self { .init(inner: inner.skip(when: isSkipped)) }
    package func only(when isIncluded: @escaping Comparing) -> Self { .init(inner: inner.only(when: isIncluded)) }
}

/// What the tests see of a subscription: whose it is, and whether the inner store has it.
package class SubscriptionBox<State> {
    private(set) weak var subscriber: AnyStoreSubscriber?
    init(of subscriber: AnyStoreSubscriber) { self.subscriber = subscriber }
    init<Selected>(
        originalSubscription: Subscription<State>, transformedSubscription: Subscription<Selected>?,
        subscriber: AnyStoreSubscriber
    ) { self.subscriber = subscriber }
}
