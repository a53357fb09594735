import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

/// A domain with ReSwift's `doubleValueIfSmall`, also as a command for clients.
struct Doubling: Domain {
    struct State: StateType, Codable, Equatable { var value = 2 }
    struct Set: Action { static let type = "set"; var value: Int }
    struct DoubleIfSmall: Action { static let type = "double-if-small" }
    struct Forever: Action { static let type = "forever" }

    var reducer: some Reducer<State> {
        On(Set.self) { state, action throws(Rejection) in
            guard action.value != 13 else { throw Rejection("unlucky", "13 is not taken") }
            state.value = action.value
        }
        Command(DoubleIfSmall.self) { state, _ in state.value < 5 ? Set(value: state.value * 2) : nil }
        Command(Forever.self) { _, action in action }
    }
}

@Suite("Action creators", .timeLimit(.minutes(5)))
struct CreatorTests {
    @Test("a creator sees the state and makes an action of it, or none")
    func synchronous() throws {
        let store = try Store(Doubling())
        let double = Store<Doubling.State>.Actions.creator { state, _ in
            state.value < 5 ? Doubling.Set(value: state.value * 2) : nil
        }

        let results = [try store.dispatch(double), try store.dispatch(double), try store.dispatch(double)]

        #expect(results.map { $0.receipt?.version } == [1, 2, nil])
        #expect(store.state.value == 8)
        #expect(store.version == 2)
    }

    @Test("of two concurrent creators, the later one sees the change of the earlier one")
    func exact() async throws {
        let store = try Store(Doubling())

        await withTaskGroup { group in
            for _ in 0..<500 {
                group.addTask {
                    _ = try? await store.dispatch(.creator { state, _ in Doubling.Set(value: state.value + 100) })
                }
            }
        }

        #expect(store.state.value == 50_002)
    }

    @Test("an asynchronous creator dispatches after its work, and a thunk is a creator that returns nil")
    func asynchronous() async throws {
        let store = try Store(Doubling())
        let thunk: Store<Doubling.State>.ActionCreator = { state, store in
            Task {
                await Task.yield()
                try await store.dispatch(Doubling.Set(value: state.value + 40))
            }
            return nil
        }

        let dispatched = try await store.dispatch(.creator(thunk))
        guard case .nothing = dispatched.result else { Issue.record("\(dispatched)"); return }
        for await value in store.values({ $0.select(\.value) }) where value == 42 { break }

        #expect(store.version == 1)
    }

    @Test("a command and the action that it makes both pass the middleware, and the action is recorded")
    func command() throws {
        let log = Log()
        let core = Core(
            domain: try CompiledDomain(Doubling()), epoch: Core.sampleEpoch,
            middleware: [
                MiddlewareStep { action, _, next throws(Rejection) in
                    log.add(type(of: action).type)
                    try next(action)
                }
            ], limits: StoreLimits(), state: .of(Doubling.State()), version: 0, keys: [])

        let first = core.turn([.of(Doubling.DoubleIfSmall())], at: Timestamp(milliseconds: 0))
        let second = core.turn(
            [.of(Doubling.Set(value: 9)), .of(Doubling.DoubleIfSmall())], at: Timestamp(milliseconds: 0))

        #expect(text(first.commits[0].action) == #"{"type":"set","payload":{"value":4}}"#)
        #expect(log.lines == ["double-if-small", "set", "set", "double-if-small"])
        #expect(second.commits.count == 1)
        guard case .nothingCommitted = second.outcomes[1] else { Issue.record("\(second.outcomes[1])"); return }
    }

    @Test("a command that only makes itself is rejected")
    func loop() throws {
        let store = try Store(Doubling())

        let failure = #expect(throws: DispatchError.self) { try store.dispatch(Doubling.Forever()) }

        #expect(failure?.code == "command-loop")
    }

    @Test("plain data is dispatched as its typed action, and a typed action becomes plain data")
    func standardAction() throws {
        let store = try Store(Doubling())

        try store.dispatch(StandardAction(type: "set", payload: ["value": 5]))
        let recorded = try StandardAction(Doubling.Set(value: 5))
        let back = try recorded.typed(as: Doubling.Set.self)
        let bare = try StandardAction(Doubling.DoubleIfSmall())

        #expect(store.state.value == 5)
        #expect(recorded == StandardAction(type: "set", payload: ["value": 5], isTypedAction: true))
        #expect(back.value == 5)
        #expect(bare.payload == nil)
        #expect(
            text(try JSON.encode(recorded)) == #"{"type":"set","payload":{"value":5},"isTypedAction":true}"#)
        let reread: StandardAction = try JSON.decode(from: JSON.encode(recorded))
        #expect(reread == recorded)
    }

    @Test("plain data of an unknown type or with a wrong payload is rejected with the pointer of the fault")
    func unfit() throws {
        let store = try Store(Doubling())

        let unknown = #expect(throws: DispatchError.self) { try store.dispatch(StandardAction(type: "sat")) }
        let unfit = #expect(throws: DispatchError.self) {
            try store.dispatch(StandardAction(type: "set", payload: ["value": "five"]))
        }

        #expect(unknown?.code == "unknown-action")
        guard case .rejected(let rejection, _)? = unfit else { Issue.record("\(String(describing: unfit))"); return }
        #expect(rejection.pointer == "/payload/value")
        #expect(store.version == 0)
    }
}
