import Testing

@testable import StateJSON
@testable import StateStore

/// A domain whose reducers depend on how it is made, and that notes each action.
private struct Noting: Domain {
    struct State: StateType {
        var log: [String] = []
        var first = Part()
        var second = Part()
    }
    struct Part: StateType, Codable { var value = 0 }
    enum Mode { case up, down }
    struct Raise: Action { var amount: Int }
    struct Reset: Action { static let type = "reset" }
    struct Twice: Action {}

    var mode = Mode.up
    var resets = true

    var reducer: some Reducer<State> {
        Field("log", \.log)
        for (name, path) in [("first", \State.first), ("second", \State.second)]
            as [(String, any WritableKeyPath<State, Part> & Sendable)]
        {
            Slice(name, path) {
                switch mode {
                case .up: On(Raise.self) { state, action in state.value += action.amount }
                case .down: On(Raise.self) { state, action in state.value -= action.amount }
                }
            }
        }
        OnAny { state, action in state.log.append("\(type(of: action).type) \(state.first.value)") }
        if resets {
            On(Reset.self) { state, _ in (state.first, state.second) = (Part(), Part()) }
        }
        Command(Twice.self) { _, _ in Raise(amount: 2) }
    }
}

@Suite("What a domain can declare")
struct DeclaringTests {
    @Test("if, for and switch choose the reducers")
    func builders() throws {
        let (up, down) = (try Store(Noting()), try Store(Noting(mode: .down, resets: false)))

        try up.dispatch(Noting.Raise(amount: 3))
        try down.dispatch(Noting.Raise(amount: 3))

        #expect((up.state.first.value, up.state.second.value) == (3, 3))
        #expect((down.state.first.value, down.state.second.value) == (-3, -3))
        #expect(throws: DispatchError.self) { try down.dispatch(Noting.Reset()) }
        #expect(try up.dispatch(Noting.Reset()).receipt?.isChange == true)
    }

    @Test("a handler of every action runs in the order of the declaration, once for each commit")
    func any() throws {
        let store = try Store(Noting())

        try store.dispatch(Noting.Raise(amount: 3))
        // The handler stands before that of the reset.
        try store.dispatch(Noting.Reset())
        try store.dispatch(Noting.Twice())

        #expect(store.state.log == ["noting/raise 3", "reset 3", "noting/raise 2"])
        #expect(store.state.first.value == 2)
    }

    @Test("a handler of every action takes no action type out of a derived store")
    func derived() throws {
        struct Two: Domain {
            struct State: StateType { var count = 0; var part = Part() }
            struct Part: StateType, Codable { var value = 0 }
            struct Set: Action { static let type = "part/set" }
            var reducer: some Reducer<State> {
                Field("count", \.count)
                OnAny { state, _ in state.count += 1 }
                Slice("part", \.part) { On(Set.self) { state, _ in state.value = 1 } }
            }
        }
        let domain = try CompiledDomain(Two())

        #expect(domain.catalogue.stores.map(\.types) == [["part/set"]])
    }

    @Test("an action without a type of its own has the name of its Swift type")
    func defaultTypes() {
        #expect(Noting.Raise.type == "noting/raise")
        #expect(TopLevelAction.type == "topLevelAction")
        #expect(Noting.Reset.type == "reset")
    }

    @Test("a view that reads what is not declared does not let the store start")
    func views() throws {
        struct Mistyped: Domain {
            struct State: StateType { var table = EntityTable<Int, String>(); var other = 0 }
            var pointer: String
            var reducer: some Reducer<State> {
                Entities("entities", \.table)
                Field("other", \.other)
                View("size", reads: [pointer]) { $0.table.count }
            }
        }

        let fault = #expect(throws: DeclarationFault.self) { try CompiledDomain(Mistyped(pointer: "/entitys")) }

        #expect(fault?.description == #"the view "size" reads /entitys, which the domain does not declare"#)
        for pointer in ["", "/entities", "/entities/7", "/ids", "/other"] {
            #expect(throws: Never.self) { try CompiledDomain(Mistyped(pointer: pointer)) }
        }
    }

    @Test("a view names what it reads by key path, also in a slice")
    func keyPaths() throws {
        struct Paths: Domain {
            struct State: StateType { var inner = Inner(); var undeclared: Int { 1 } }
            struct Inner: StateType { var table = EntityTable<Int, String>(); var other = 0 }
            var isWrong = false
            var reducer: some Reducer<State> {
                Slice("inner", \.inner) {
                    Entities("entities", ids: "order", \.table)
                    Field("other", \.other)
                    View("size", reading: [\Inner.table]) { $0.table.count }
                }
                if isWrong { View("wrong", reading: [\State.undeclared]) { $0.undeclared } }
            }
        }

        let reads = try CompiledDomain(Paths()).catalogue.views.mapValues(\.reads)

        #expect(reads == ["inner.size": ["/inner/entities", "/inner/order"]])
        let fault = #expect(throws: DeclarationFault.self) { try CompiledDomain(Paths(isWrong: true)) }
        #expect(fault?.description.contains(#"the view "wrong" reads"#) == true)
    }
}

private struct TopLevelAction: Action {}
