import Dispatch
import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

/// The facet from the seed documents.
protocol KnowsTheCount { var counter: Int { get } }

/// A state with the count and other parts.
struct App: Domain {
    struct State: StateType, KnowsTheCount {
        var count = Plain.State()
        var items = Sample.Items()
        var counter: Int { count.other }
    }

    let evaluations: Collection<String>

    var reducer: some Reducer<State> {
        Slice("count", \.count) { Plain() }
        Slice("items", \.items) {
            Entities("entities", \.table)
            Field("marked", \.marked)
            On(Sample.Put.self) { state, action in state.table[action.id] = Sample.Item(name: action.name) }
            View("names") { [evaluations] state in
                evaluations.add("names")
                return state.table.map(\.entity.name)
            }
        }
        View("count", of: (any KnowsTheCount).self, reads: ["/count"]) { [evaluations] facet in
            evaluations.add("count")
            return facet.counter
        }
    }
}

@Suite("Views and facets", .timeLimit(.minutes(5)))
struct ViewTests {
    @Test("a facet that reads only the counter is not evaluated again after a thousand other actions")
    func untouched() throws {
        let evaluations = Collection<String>()
        let store = try Store(App(evaluations: evaluations))
        let seen = Collection<Int>()
        let token = try #require(store.subscribe(view: "count", as: Int.self) { seen.add($0) })
        let before = evaluations.values.count

        for id in 0..<1000 {
            try store.dispatch(Sample.Put(id: id, name: "n"))
            _ = store.view("count", as: Int.self)
            _ = try store.latest.encoded(.view("count"))
        }
        // An action that could change the counter, and does not, stands beside one that changes something else.
        try store.dispatch(.batch([Plain.SetOther(other: 0), Sample.Put(id: 1, name: "other")]))
        _ = store.view("count", as: Int.self)
        let between = evaluations.values.count
        try store.dispatch(Plain.SetOther(other: 7))

        #expect(before == 1)
        #expect(between == 1)
        #expect(seen.values == [0, 7])
        #expect(evaluations.values == ["count", "count"])
        withExtendedLifetime(token) {}
    }

    @Test("concurrent readers, in process and of JSON, make a view evaluate once per version")
    func once() throws {
        let evaluations = Collection<String>()
        let store = try Store(App(evaluations: evaluations))

        for version in 1...5 {
            try store.dispatch(Plain.SetOther(other: version))
            DispatchQueue.concurrentPerform(iterations: 8) { index in
                let value = index.isMultiple(of: 2) ? store.view("count", as: Int.self) : nil
                let json = try? text(store.latest.encoded(.view("count"))?.bytes)
                #expect(value ?? version == version)
                #expect(json == "\(version)")
            }
        }

        #expect(evaluations.values.count == 5)
    }

    @Test("a view of an older snapshot has the older value")
    func older() throws {
        let store = try Store(App(evaluations: Collection()))
        let snapshot = store.latest
        try store.dispatch(Plain.SetOther(other: 1))
        let now = try text(store.latest.encoded(.view("count"))?.bytes)

        let then = try text(snapshot.encoded(.view("count"))?.bytes)

        #expect(now == "1")
        #expect(then == "0")
    }

    @Test("a view of a slice reads the slice, and its name begins with the slice's name")
    func slice() throws {
        let evaluations = Collection<String>()
        let store = try Store(App(evaluations: evaluations))
        _ = store.view("items.names", as: [String].self)

        try store.dispatch(Plain.SetOther(other: 1))
        _ = store.view("items.names", as: [String].self)
        try store.dispatch(Sample.Put(id: 1, name: "a"))
        let names = store.view("items.names", as: [String].self)

        #expect(names == ["a"])
        #expect(evaluations.values == ["names", "names"])
        #expect(store.view("items.nomes", as: [String].self) == nil)
        #expect(store.view("items.names", as: Int.self) == nil)
    }

    @Test("a state that does not conform to a facet's protocol is a declaration fault")
    func fault() throws {
        struct Other: Domain {
            struct State: StateType, Codable { var value = 0 }
            var reducer: some Reducer<State> {
                View("count", of: (any KnowsTheCount).self) { $0.counter }
            }
        }

        let fault = #expect(throws: DeclarationFault.self) { try Store(Other()) }

        #expect(fault?.description.contains("which it is not") == true)
    }
}

@Suite("Derived stores", .timeLimit(.minutes(5)))
struct DerivedStoreTests {
    enum CountAction: Sendable { case set(Int) }

    @Test("a derived store has a part's state, dispatches its actions, and notifies only of its changes")
    func derived() throws {
        let store = try Store(App(evaluations: Collection()))
        let count = store.derived(deriveState: { $0.count }) { (action: CountAction) in
            switch action {
            case .set(let value): Plain.SetOther(other: value)
            }
        }
        let seen = Collection<Int>()
        let token = count.subscribe({ $0.select(\.other) }, newState: { seen.add($0) })

        try count.dispatch(.set(4))
        try store.dispatch(Sample.Put(id: 1, name: "a"))

        #expect(count.state.other == 4)
        #expect(count.version == 2)
        #expect(seen.values == [0, 4])
        withExtendedLifetime(token) {}
    }

    @Test("a derived store of a derived store embeds an action twice")
    func twice() throws {
        let store = try Store(App(evaluations: Collection()))
        let other = store.derived(deriveState: { $0.count }) { (action: CountAction) in
            switch action {
            case .set(let value): Plain.SetOther(other: value)
            }
        }
        .derived(deriveState: { $0.other }) { (value: Int) in CountAction.set(value) }
        let seen = Collection<Int>()
        let token = other.subscribe { seen.add($0) }

        try other.dispatch(3)

        #expect(seen.values == [0, 3])
        #expect(store.state.count.other == 3)
        withExtendedLifetime(token) {}
    }
}
