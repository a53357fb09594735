import Dispatch
import Glibc
import Synchronization
import Testing

@testable import StateStore

/// A domain whose reducer dispatches, which a reducer must not do.
private struct Rebel: Domain {
    struct State: StateType, Codable, Equatable { var count = 0 }
    struct Go: Action { static let type = "rebel/go" }

    let dispatch: @Sendable () -> Void

    var reducer: some Reducer<State> {
        On(Go.self) { state, _ in
            state.count += 1
            dispatch()
        }
    }
}

/// Holds a store that is made after the objects that refer to it.
private final class Later<Value: Sendable>: Sendable {
    private let stored = Mutex<Value?>(nil)
    var value: Value? { stored.withLock { $0 } }
    func set(_ value: Value) { stored.withLock { $0 = value } }
}

/// Counts its instances that have not been released.
private final class Load: Sendable {
    let count: Atomic<Int>
    init() { count = Atomic(0) }

    final class Piece: Sendable {
        private let load: Load
        let token: SubscriptionToken?
        init(_ load: Load, holding token: SubscriptionToken? = nil) {
            self.load = load
            self.token = token
            load.count.add(1, ordering: .relaxed)
        }
        deinit { load.count.subtract(1, ordering: .relaxed) }
    }
}

@Suite("Calls from inside a turn", .timeLimit(.minutes(5)))
struct ReentrancyTests {
    /// Runs two functions on two threads, also on one processor, and returns after both.
    private func atOnce(_ body: @escaping @Sendable (_ side: Int) -> Void) {
        let group = DispatchGroup()
        DispatchQueue.global().async(group: group) { body(0) }
        body(1)
        group.wait()
    }

    @Test("a dispatch by sync on another queue, inside a notification, is queued with its cause")
    func syncOnOwnQueue() throws {
        let store = try Store(Plain())
        let ownQueue = DispatchQueue(label: "own")
        let (results, commits) = (Collection<Dispatched>(), Collection<Commit>())
        let token = store.subscribe(
            changesOf: { $0.select(\.other) },
            notify: { [weak store] change in
                if let commit = change.commit { commits.add(commit) }
                guard change.new == 1, let store else { return }
                ownQueue.sync { if let result = try? store.dispatch(Plain.SetOther(other: 2)) { results.add(result) } }
            })

        try store.dispatch(Plain.SetOther(other: 1))
        store.drain()

        #expect(store.state.other == 2)
        #expect(
            results.values.allSatisfy { if case .queued = $0.result { true } else { false } }
                && results.values.count == 1)
        #expect(commits.values.map(\.cause) == [nil, commits.values.first?.id])
        withExtendedLifetime(token) {}
    }

    @Test("a subscription by sync on another queue, inside a notification, gets its first value at once")
    func subscribeOnOwnQueue() throws {
        let store = try Store(Plain())
        let ownQueue = DispatchQueue(label: "own")
        let seen = Collection<Int>()
        let tokens = Collection<SubscriptionToken>()
        let token = store.subscribe(\.other) { [weak store] value in
            guard value == 1, let store else { return }
            ownQueue.sync { tokens.add(store.subscribe(\.other) { seen.add($0) }) }
        }

        try store.dispatch(Plain.SetOther(other: 1))
        try store.dispatch(Plain.SetOther(other: 2))

        #expect(seen.values == [1, 2])
        withExtendedLifetime(token) {}
    }

    @Test("two stores that dispatch to each other from two threads do not deadlock")
    func twoStores() throws {
        let (left, right) = (try Store(Plain()), try Store(Plain()))
        let results = Collection<Dispatched>()
        let reached = DispatchSemaphore(value: 0)
        @Sendable func pass(_ value: Int, to other: Store<Plain.State>?) {
            if value == 100 { reached.signal() }
            guard (1..<100).contains(value), let other else { return }
            if let result = try? other.dispatch(Plain.SetOther(other: value + 1)) { results.add(result) }
        }
        let tokens = [
            left.subscribe(\.other) { [weak right] in pass($0, to: right) },
            right.subscribe(\.other) { [weak left] in pass($0, to: left) },
        ]

        for _ in 0..<50 {
            atOnce { side in _ = try? (side == 0 ? left : right).dispatch(Plain.SetOther(other: 1)) }
        }
        #expect(reached.wait(timeout: .now() + 60) == .success)

        #expect(!results.values.isEmpty)
        #expect(results.values.allSatisfy { if case .queued = $0.result { true } else { false } })
        withExtendedLifetime(tokens) {}
    }

    @Test("a dispatch from another store's turn is not part of the cascade that this store is notifying of")
    func foreignCause() throws {
        let (left, right) = (try Store(Plain()), try Store(Plain()))
        let commits = Collection<Commit>()
        let (isTelling, hasDispatched) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let tokens = [
            right.subscribe(
                changesOf: { $0.select(\.other) },
                notify: { change in
                    if let commit = change.commit { commits.add(commit) }
                    guard change.new == 1 else { return }
                    isTelling.signal()
                    hasDispatched.wait()
                }),
            left.subscribe(\.other) { [weak right] value in
                guard value == 1 else { return }
                isTelling.wait()
                _ = try? right?.dispatch(Plain.SetOther(other: 2))
                hasDispatched.signal()
            },
        ]

        atOnce { side in _ = try? (side == 0 ? left : right).dispatch(Plain.SetOther(other: 1)) }
        right.drain()

        #expect(right.state.other == 2)
        #expect(commits.values.map(\.cause) == [nil, nil])
        withExtendedLifetime(tokens) {}
    }

    @Test("two stores whose notifications subscribe to each other notify both, and neither waits for the other")
    func twoSubscribers() throws {
        let (left, right) = (try Store(Plain()), try Store(Plain()))
        let (seen, tokens) = (Collection<Int>(), Collection<SubscriptionToken>())
        let bothTell = Mutex(0)
        @Sendable func subscribe(_ value: Int, to other: Store<Plain.State>?) {
            guard value == 1, let other else { return }
            // Both stores are in their turns before either subscribes.
            bothTell.withLock { $0 += 1 }
            while bothTell.withLock({ $0 < 2 }) { usleep(100) }
            tokens.add(other.subscribe(\.other) { seen.add($0) })
        }
        let own = [
            left.subscribe(\.other) { [weak right] in subscribe($0, to: right) },
            right.subscribe(\.other) { [weak left] in subscribe($0, to: left) },
        ]

        atOnce { side in _ = try? (side == 0 ? left : right).dispatch(Plain.SetOther(other: 1)) }
        // This work runs after the queued work.
        left.drain()
        right.drain()

        #expect(seen.values == [1, 1])
        #expect(tokens.values.count == 2)
        withExtendedLifetime(own) {}
    }

    @Test("a subscription in another store's turn that is cancelled before it begins gets no value")
    func cancelledBeforeBegin() throws {
        let (left, right) = (try Store(Plain()), try Store(Plain()))
        let seen = Collection<Int>()
        let token = left.subscribe(\.other) { [weak right] value in
            guard value == 1, let right else { return }
            right.queue.suspend()
            right.subscribe(\.other) { seen.add($0) }.cancel()
            right.queue.resume()
        }

        try left.dispatch(Plain.SetOther(other: 1))
        try right.dispatch(Plain.SetOther(other: 7))

        #expect(seen.values == [])
        #expect(right.untyped.subscriptionsCount == 0)
        withExtendedLifetime(token) {}
    }

    @Test("a middleware, a creator and a reducer can read and set the middleware, for the next turn")
    func middleware() throws {
        let later = Later<Store<Rebel.State>>()
        let counts = Collection<Int>()
        let look: @Sendable () -> Void = {
            guard let store = later.value else { return }
            counts.add(store.middleware.count)
            store.middleware = store.middleware + [Middleware { action, _, next throws(Rejection) in try next(action) }]
        }
        let looking = Middleware<Rebel.State> { action, _, next throws(Rejection) in
            look()
            try next(action)
        }
        let store = try Store(Rebel(dispatch: look), middleware: [looking])
        later.set(store)

        try store.dispatch(
            .creator { _, _ in
                look()
                return Rebel.Go()
            })
        store.middleware = []
        try store.dispatch(Rebel.Go())

        #expect(counts.values == [1, 2, 3, 0])
        #expect(store.middleware.count == 1)
        #expect(store.state.count == 2)
    }

    @Test("a middleware, a creator and a reducer read the state before the turn from the store")
    func reading() throws {
        let later = Later<Store<Rebel.State>>()
        let seen = Collection<Int>()
        let look: @Sendable () -> Void = {
            guard let store = later.value else { return }
            seen.add(
                store.state.count + Int(store.version) + store.untyped.subscriptionsCount + store.untyped.waitingCount)
            _ = try? store.latest.whole()
        }
        let store = try Store(
            Rebel(dispatch: look),
            middleware: [
                Middleware { action, _, next throws(Rejection) in
                    look()
                    try next(action)
                    look()
                }
            ])
        later.set(store)

        try store.dispatch(
            .creator { _, _ in
                look()
                return Rebel.Go()
            })

        // The action itself waits for its landing.
        #expect(seen.values == [1, 1, 1, 1])
    }

    @Test("a dispatch inside a reducer is refused and reported, and the action is committed", arguments: [false, true])
    func reducer(isOnOwnQueue: Bool) throws {
        let later = Later<Store<Rebel.State>>()
        let (codes, events) = (Collection<String>(), Collection<StoreEvent>())
        let ownQueue = DispatchQueue(label: "own")
        let store = try Store(
            Rebel {
                let dispatch: @Sendable () -> Void = {
                    do {
                        _ = try later.value?.dispatch(Rebel.Go())
                    } catch {
                        codes.add((error as? DispatchError)?.code ?? "")
                    }
                }
                if isOnOwnQueue { ownQueue.sync(execute: dispatch) } else { dispatch() }
            }, report: { events.add($0) })
        later.set(store)

        let dispatched = try store.dispatch(Rebel.Go())
        store.drain()

        #expect(dispatched.receipt?.version == 1)
        #expect(store.state.count == 1)
        #expect(codes.values == ["dispatch-in-reducer"])
        guard case .followUpRefused(let refused, nil)? = events.values.first else { Issue.record("none"); return }
        #expect(refused.type == "rebel/go")
        #expect(refused.code == "dispatch-in-reducer")
        #expect(events.values.count == 1)
    }

    @Test("a cancelled subscription releases its closure at once, also one that owns other subscriptions")
    func cancelled() throws {
        let store = try Store(Plain())
        let load = Load()
        let inner = store.subscribe(\.other) { [piece = Load.Piece(load)] _ in withExtendedLifetime(piece) {} }
        var held = inner
        for _ in 0..<40 {
            let piece = Load.Piece(load, holding: held)
            held = store.subscribe(\.other) { _ in withExtendedLifetime(piece) {} }
        }
        #expect(load.count.load(ordering: .relaxed) == 41)

        held.cancel()

        // Each closure owns the token of the next; the test also holds the first token.
        #expect(load.count.load(ordering: .relaxed) == 1)
        inner.cancel()
        #expect(load.count.load(ordering: .relaxed) == 0)
        #expect(store.untyped.subscriptionsCount == 0)
    }

    @Test("a subscription that is cancelled inside its own notification is released after it")
    func cancelsItself() throws {
        let store = try Store(Plain())
        let load = Load()
        let own = Mutex<SubscriptionToken?>(nil)
        let alive = Collection<Int>()
        let token = store.subscribe(\.other) { [piece = Load.Piece(load)] value in
            guard value == 1 else { return }
            own.withLock { $0.take() }?.cancel()
            withExtendedLifetime(piece) { alive.add(load.count.load(ordering: .relaxed)) }
        }
        own.withLock { $0 = token }

        try store.dispatch(Plain.SetOther(other: 1))

        #expect(alive.values == [1])
        #expect(load.count.load(ordering: .relaxed) == 0)
    }

    @Test("an object that subscribes again releases its earlier subscription")
    func replaced() throws {
        let store = try Store(Plain())
        let load = Load()
        let recorder = Recorder<Int>()
        store.subscribe(recorder) { [piece = Load.Piece(load)] in
            $0.select { state in
                withExtendedLifetime(piece) {}
                return state.other
            }
        }

        store.subscribe(recorder) { $0.select(\.other) }

        #expect(load.count.load(ordering: .relaxed) == 0)
        #expect(store.untyped.subscriptionsCount == 1)
    }
}
