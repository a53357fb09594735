import Synchronization
import Testing

@testable import StateStore

@Suite("The end of a state", .serialized, .timeLimit(.minutes(5)))
struct EndOfStateTests {
    /// Calls a function when it ends.
    final class Farewell: Codable, Sendable {
        let number: Int
        static let hook = Mutex<(@Sendable () -> Void)?>(nil)
        init(_ number: Int) { self.number = number }
        deinit { Self.hook.withLock { $0 }?() }
    }

    struct Farewells: Domain {
        struct State: StateType, Codable { var farewell = Farewell(0) }
        struct Set: Action {
            static let type = "set"
            var number: Int
        }
        var reducer: some Reducer<State> {
            On(Set.self) { state, action in state.farewell = Farewell(action.number) }
        }
    }

    @Test("an object of an old state may read the store when it ends")
    func reads() throws {
        let store = UntypedStore(
            domain: try CompiledDomain(Farewells()), limits: StoreLimits(mailboxMax: 100, historyCommitsMax: 4),
            now: { Timestamp.now() }
        ).typed(Farewells.State.self)
        let versions = Mutex<[Version]>([])
        Farewell.hook.withLock { hook in
            hook = { [weak store] in if let store { versions.withLock { $0.append(store.version) } } }
        }
        defer { Farewell.hook.withLock { $0 = nil } }
        for number in 1...50 { try store.dispatch(Farewells.Set(number: number)) }
        #expect(store.state.farewell.number == 50)
        #expect(versions.withLock { $0.count } >= 40)
    }
}
