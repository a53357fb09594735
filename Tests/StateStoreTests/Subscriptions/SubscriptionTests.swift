import Dispatch
import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

/// A domain with a text and a number, as ReSwift's own tests have.
struct Plain: Domain {
    struct State: StateType, Codable, Equatable {
        var text = ""
        var number: Int?
        var other = 0
    }
    struct SetText: Action { static let type = "text/set"; var text: String }
    struct SetNumber: Action { static let type = "number/set"; var number: Int? }
    struct SetOther: Action { static let type = "other/set"; var other: Int }

    var reducer: some Reducer<State> {
        On(StoreInit.self) { state, _ in state.text = "initial" }
        On(SetText.self) { state, action in state.text = action.text }
        On(SetNumber.self) { state, action throws(Rejection) in
            guard action.number != 13 else { throw Rejection("unlucky", "13 is not taken") }
            state.number = action.number
        }
        On(SetOther.self) { state, action in state.other = action.other }
    }
}

/// A subscriber object, as ReSwift has.
final class Recorder<Value: Sendable>: StoreSubscriber {
    let values = Collection<Value>()
    func newState(_ state: Value) { values.add(state) }
}

@Suite("Subscriptions", .timeLimit(.minutes(5)))
struct SubscriptionTests {
    @Test("the initial state comes from the init action, and no client can dispatch it")
    func initial() throws {
        let store = try Store(Plain())

        #expect(store.state.text == "initial")
        #expect(store.version == 0)
        let types = try CompiledDomain(Plain()).catalogue.types
        #expect(types == ["number/set", "other/set", "text/set"])
    }

    @Test("a store does not apply the init action to a given state")
    func given() throws {
        let store = try Store(Plain(), state: Plain.State(text: "given"))

        #expect(store.state.text == "given")
    }

    @Test("a subscriber gets the current value, then each change before dispatch returns")
    func told() throws {
        let store = try Store(Plain())
        let seen = Collection<String>()
        let token = store.subscribe(\.text) { seen.add($0) }

        try store.dispatch(Plain.SetText(text: "a"))
        let afterFirst = seen.values
        try store.dispatch(Plain.SetText(text: "b"))

        #expect(afterFirst == ["initial", "a"])
        #expect(seen.values == ["initial", "a", "b"])
        token.cancel()
    }

    @Test("a subscriber does not get commits that leave its part, or the whole state, unchanged")
    func repeats() throws {
        let store = try Store(Plain())
        let (texts, states) = (Collection<String>(), Collection<Plain.State>())
        let tokens = [store.subscribe(\.text) { texts.add($0) }, store.subscribe { states.add($0) }]

        try store.dispatch(Plain.SetOther(other: 1))
        try store.dispatch(Plain.SetOther(other: 1))
        try store.dispatch(Plain.SetText(text: "initial"))

        #expect(texts.values == ["initial"])
        #expect(states.values.map(\.other) == [0, 1])
        withExtendedLifetime(tokens) {}
    }

    @Test("in a store that keeps repeats a subscriber gets every commit, and one subscriber can still skip repeats")
    func switchedOff() throws {
        let store = try Store(Plain(), automaticallySkipsRepeats: false)
        let (all, some) = (Collection<String>(), Collection<String>())
        let tokens = [
            store.subscribe(\.text) { all.add($0) },
            store.subscribe({ $0.select(\.text).skipRepeats() }, newState: { some.add($0) }),
        ]

        for _ in 0..<3 { try store.dispatch(Plain.SetText(text: "a")) }

        #expect(all.values == ["initial", "a", "a", "a"])
        #expect(some.values == ["initial", "a"])
        withExtendedLifetime(tokens) {}
    }

    @Test("a subscriber gets a value that is not Equatable at every commit")
    func incomparable() throws {
        struct Opaque: Sendable { var text: String }
        let store = try Store(Plain())
        let count = Collection<Opaque>()
        let token = store.subscribe({ $0.select { Opaque(text: $0.text) } }, newState: { count.add($0) })

        try store.dispatch(Plain.SetOther(other: 1))

        #expect(count.values.count == 2)
        withExtendedLifetime(token) {}
    }

    @Test("skip and only compare the values before and after a commit")
    func skipAndOnly() throws {
        let store = try Store(Plain())
        let (rising, even) = (Collection<Int>(), Collection<Int>())
        let tokens = [
            store.subscribe({ $0.select(\.other).only { $0 < $1 } }, newState: { rising.add($0) }),
            store.subscribe({ $0.select(\.other).skip { !$1.isMultiple(of: 2) } }, newState: { even.add($0) }),
        ]

        for other in [1, 4, 2, 3, 6] { try store.dispatch(Plain.SetOther(other: other)) }

        #expect(rising.values == [0, 1, 4, 3, 6])
        #expect(even.values == [0, 4, 2, 6])
        withExtendedLifetime(tokens) {}
    }

    @Test("a subscriber gets the nil of an optional part once")
    func optional() throws {
        let store = try Store(Plain())
        let seen = Collection<Int?>()
        let token = store.subscribe(\.number) { seen.add($0) }

        try store.dispatch(Plain.SetNumber(number: 5))
        try store.dispatch(Plain.SetNumber(number: nil))
        try store.dispatch(Plain.SetNumber(number: nil))

        #expect(seen.values == [nil, 5, nil])
        withExtendedLifetime(token) {}
    }

    @Test("changes come with the value before, the version and the commit, without a gap")
    func contiguous() throws {
        let store = try Store(Plain())
        let changes = Collection<Change<Int>>()
        let token = store.subscribe(changesOf: { $0.select(\.other) }, notify: { changes.add($0) })

        for other in 1...5 { try store.dispatch(Plain.SetOther(other: other)) }

        #expect(changes.values.map(\.old) == [nil, 0, 1, 2, 3, 4])
        #expect(changes.values.map(\.new) == [0, 1, 2, 3, 4, 5])
        #expect(changes.values.map(\.version) == [0, 1, 2, 3, 4, 5])
        #expect(changes.values.map { $0.commit?.version } == [nil, 1, 2, 3, 4, 5])
        withExtendedLifetime(token) {}
    }

    @Test("a subscriber gets nothing after its token is cancelled or released")
    func ended() throws {
        let store = try Store(Plain())
        let (cancelled, dropped) = (Collection<Int>(), Collection<Int>())
        let token = store.subscribe(\.other) { cancelled.add($0) }
        do {
            let short = store.subscribe(\.other) { dropped.add($0) }
            withExtendedLifetime(short) {}
        }
        token.cancel()

        try store.dispatch(Plain.SetOther(other: 1))

        #expect(cancelled.values == [0])
        #expect(dropped.values == [0])
        #expect(store.untyped.subscriptionsCount == 0)
    }

    @Test("an object that subscribes again replaces its subscription")
    func replaced() throws {
        let store = try Store(Plain())
        let subscriber = Recorder<Int>()
        store.subscribe(subscriber) { $0.select(\.other) }
        store.subscribe(subscriber) { $0.select { $0.other * 10 } }

        try store.dispatch(Plain.SetOther(other: 1))

        #expect(subscriber.values.values == [0, 0, 10])
        #expect(store.untyped.subscriptionsCount == 1)
    }

    @Test("the store does not retain a subscribed object, and drops its registration after its release")
    func gone() throws {
        let store = try Store(Plain())
        var subscriber: Recorder<Plain.State>? = Recorder()
        weak let witness = subscriber
        if let subscriber { store.subscribe(subscriber) }
        let before = store.untyped.subscriptionsCount
        subscriber = nil

        try store.dispatch(Plain.SetOther(other: 1))

        #expect(before == 1)
        #expect(witness == nil)
        #expect(store.untyped.subscriptionsCount == 0)
    }

    @Test("an object gets nothing after it unsubscribes, and an object without a subscription may unsubscribe")
    func unsubscribed() throws {
        let store = try Store(Plain())
        let (subscriber, stranger) = (Recorder<Plain.State>(), Recorder<Plain.State>())
        store.subscribe(subscriber)
        store.unsubscribe(subscriber)
        store.unsubscribe(stranger)

        try store.dispatch(Plain.SetOther(other: 1))

        #expect(subscriber.values.values.count == 1)
    }

    @Test("subscribing and unsubscribing inside a notification is safe, and takes effect at once")
    func inside() throws {
        let store = try Store(Plain())
        let inner = Collection<Int>()
        let last = Collection<Int>()
        let held = Mutex<[SubscriptionToken]>([])
        let outer = store.subscribe(\.other) { [weak store] value in
            guard value == 1, let store else { return }
            let token = store.subscribe(\.other) { inner.add($0) }
            let victims = held.withLock { held in
                defer { held = [token] }
                return held
            }
            for victim in victims { victim.cancel() }
        }
        let victim = store.subscribe(\.other) { last.add($0) }
        held.withLock { $0 = [victim] }

        try store.dispatch(Plain.SetOther(other: 1))
        try store.dispatch(Plain.SetOther(other: 2))

        #expect(inner.values == [1, 2])
        #expect(last.values == [0])
        withExtendedLifetime(outer) {}
    }

    @Test("three thousand subscribers come and go")
    func many() throws {
        let store = try Store(Plain())
        let total = Collection<Int>()
        var tokens: [SubscriptionToken] = []
        for _ in 0..<3000 { tokens.append(store.subscribe(\.other) { if $0 > 0 { total.add($0) } }) }

        try store.dispatch(Plain.SetOther(other: 1))
        tokens.removeLast(1500)
        try store.dispatch(Plain.SetOther(other: 2))
        tokens = []
        try store.dispatch(Plain.SetOther(other: 3))

        #expect(total.values.count == 4500)
        #expect(store.untyped.subscriptionsCount == 0)
    }

    @Test("a sequence begins with the current value, and ends with its task")
    func sequence() async throws {
        let store = try Store(Plain())
        var seen: [Int] = []
        let values = store.values(buffering: .unbounded) { $0.select(\.other) }
        for other in 1...3 { try await store.dispatch(Plain.SetOther(other: other)) }

        for await value in values {
            seen.append(value)
            if value == 3 { break }
        }

        #expect(seen == [0, 1, 2, 3])
    }

    @Test("a slow reader of a sequence gets only the newest value")
    func slow() async throws {
        let store = try Store(Plain())
        let values = store.values { $0.select(\.other) }
        for other in 1...3 { try await store.dispatch(Plain.SetOther(other: other)) }

        var iterator = values.makeAsyncIterator()
        let first = await iterator.next()

        #expect(first == 3)
    }

    @Test("subscribing from many threads while others dispatch misses no change")
    func threads() throws {
        let store = try Store(Plain())
        let gaps = Collection<String>()
        let held = Mutex<[SubscriptionToken]>([])

        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for round in 0..<100 {
                if thread < 4 {
                    _ = try? store.dispatch(.creator { state, _ in Plain.SetOther(other: state.other + 1) })
                } else {
                    let last = Mutex<Int?>(nil)
                    let token = store.subscribe(
                        changesOf: { $0.select(\.other) },
                        notify: { change in
                            let before = last.withLock { last in
                                defer { last = change.new }
                                return last
                            }
                            if let before, change.old != before || change.new != before + 1 {
                                gaps.add("\(thread).\(round): \(before) then \(change.new)")
                            }
                        })
                    held.withLock { $0.append(token) }
                }
            }
        }

        #expect(gaps.values.isEmpty)
        #expect(store.state.other == 400)
    }
}
