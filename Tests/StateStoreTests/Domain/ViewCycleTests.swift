import Dispatch
import Synchronization
import Testing

@testable import StateStore

@Suite("Views that read views", .timeLimit(.minutes(5)))
struct ViewCycleTests {
    /// Views that read others, or themselves, by way of the store.
    private struct Cycles: Domain {
        struct State: StateType, Codable { var value = 1 }
        let holder = Holder()

        var reducer: some Reducer<State> {
            View("plain") { $0.value }
            View("reader") { [holder] state in state.value + (holder.read("plain") ?? -100) }
            View("self") { [holder] _ in holder.read("self") ?? -1 }
            View("one") { [holder] _ in holder.read("other") ?? -1 }
            View("other") { [holder] _ in holder.read("one") ?? -1 }
            View("outside") { [holder] _ in holder.read("self") ?? -1 }
        }
    }

    /// The store that the views read.
    private final class Holder: Sendable {
        let store = Mutex<Store<Cycles.State>?>(nil)
        func read(_ name: String) -> Int? { store.withLock { $0 }?.view(name) }
    }

    private let events = Collection<String>()
    private let store: Store<Cycles.State>

    init() throws {
        let cycles = Cycles()
        let domain = try CompiledDomain(cycles)
        store = UntypedStore(
            domain: domain, now: { Timestamp(milliseconds: 0) },
            report: { [events] in if case .viewFailed(let reason) = $0 { events.add(reason) } }
        ).typed(Cycles.State.self)
        cycles.holder.store.withLock { $0 = store }
    }

    @Test("a view that reads itself has no value, and the store names it", arguments: ["self", "one", "other"])
    func cycle(name: String) {
        #expect(store.view(name, as: Int.self) == nil)
        let error = #expect(throws: ViewReadsItself.self) { try store.hub.read(.view(name)) }

        #expect(error?.description == "the view \"\(name)\" reads itself, so it has no value")
        #expect(events.values.contains("the view \"\(name)\" reads itself, so it has no value"))
    }

    @Test("a view that reads one that reads itself has a value, and so has one that reads another")
    func others() {
        #expect(store.view("outside", as: Int.self) == -1)
        #expect(store.view("reader", as: Int.self) == 2)
        #expect(store.view("plain", as: Int.self) == 1)
    }

    @Test("views that read each other do not make threads wait for each other")
    func threads() {
        for _ in 0..<20 {
            DispatchQueue.concurrentPerform(iterations: 8) { index in
                #expect(store.view(index.isMultiple(of: 2) ? "one" : "other", as: Int.self) == nil)
            }
        }
    }

    @Test("a value can be asked for its forms while one of them is made")
    func forms() {
        let encoded = Encoded(Array("[1]".utf8))

        let made = encoded.form("outer") { bytes in
            encoded.has("inner") ? [] : encoded.form("inner") { $0 + $0 } + bytes
        }

        #expect(String(decoding: made, as: UTF8.self) == "[1]\n[1]\n[1]\n")
        #expect(encoded.has("inner") && encoded.bytesCount == 4 + 8 + 12)
    }
}
