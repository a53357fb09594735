import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

/// A state with a plain part, and a view that takes as long as a test says.
private struct Plainly: Domain {
    struct State: StateType, Codable { var texts: [String] = [] }
    struct Add: Action { static let type = "texts/add"; var text: String }

    let time: Duration

    var reducer: some Reducer<State> {
        On(Add.self) { state, action in state.texts.append(action.text) }
        View("count") { [time] state in
            let end = ContinuousClock.now + time
            while ContinuousClock.now < end {}
            return state.texts.count
        }
    }
}

@Suite("Quick reads", .timeLimit(.minutes(5)))
struct QuickReadTests {
    private func store(_ time: Duration) throws -> Store<Plainly.State> {
        UntypedStore(domain: try CompiledDomain(Plainly(time: time)), now: { Timestamp(milliseconds: 0) }).typed(
            Plainly.State.self)
    }

    @Test("a view is not computed on a loop at first, and is there for everybody once it is computed")
    func first() throws {
        let store = try store(.zero)

        #expect(try store.hub.readQuickly(.view("count")) == nil)
        #expect(text(try store.hub.read(.view("count")).encoded?.bytes) == "0")
        #expect(text(try store.hub.readQuickly(.view("count"))?.encoded?.bytes) == "0")
    }

    @Test("a view that was quick again and again is computed on a loop, a slow one never", arguments: [0, 6])
    func quick(milliseconds: Int) throws {
        let store = try store(.milliseconds(milliseconds))
        var wasQuick = false

        // A busy machine may stop an evaluation at any time, but not hundreds of them.
        for _ in 0..<(milliseconds == 0 ? 500 : 8) where !wasQuick {
            try store.dispatch(Plainly.Add(text: ""))
            wasQuick = try store.hub.readQuickly(.view("count")) != nil
            if !wasQuick { _ = try store.hub.read(.view("count")) }
        }

        #expect(wasQuick == (milliseconds == 0))
    }

    @Test("a plain part of more than 4 KiB is not encoded on a loop, for no value", arguments: [3_900, 4_200])
    func plain(bytesCount: Int) throws {
        let store = try store(.zero)
        try store.dispatch(Plainly.Add(text: String(repeating: "x", count: bytesCount)))
        try store.dispatch(Plainly.Add(text: "short"))

        let short = try store.hub.readQuickly(.pointer("/texts/1"))

        #expect((short == nil) == (bytesCount > 4_000))
        #expect(text(try store.hub.read(.pointer("/texts/1")).encoded?.bytes) == "\"short\"")
    }
}
