import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import StateStore

@Suite("The bound of a turn", .timeLimit(.minutes(1)))
struct TurnBoundTests {
    private func bound(after turns: [(milliseconds: Int, count: Int)]) -> TurnBound {
        var bound = TurnBound()
        for turn in turns { bound.adapt(to: .milliseconds(turn.milliseconds), of: turn.count) }
        return bound
    }

    @Test("turns of at most five milliseconds have no bound, and one of more bounds the next to what takes five")
    func long() {
        #expect(!bound(after: [(5, 100), (0, 1)]).isBounded)
        #expect(bound(after: [(10, 100)]).count == 50)
        #expect(bound(after: [(6, 1)]).count == 1)
        #expect(bound(after: [(1000, 64)]).count == 1)
    }

    @Test("a short turn doubles the bound only where it had as many transactions as it might")
    func doubling() {
        #expect(bound(after: [(50, 10), (0, 1)]).count == 2)
        #expect(bound(after: [(50, 10), (0, 1), (0, 1)]).count == 2)
        #expect(bound(after: [(50, 10), (0, 1), (0, 2)]).count == 4)
    }

    @Test("the bound ends above 1,024 transactions, and behind 1,000 short turns in a row")
    func end() {
        let growing = [(50, 10)] + (0..<10).map { (0, 1 << $0) }
        let alone = [(50, 10)] + Array(repeating: (0, 1), count: 999)

        #expect(bound(after: growing).count == 1024)
        #expect(!bound(after: growing + [(0, 1024)]).isBounded)
        #expect(bound(after: alone).isBounded)
        #expect(bound(after: alone + [(6, 1)] + alone.dropFirst()).isBounded)
        #expect(!bound(after: alone + [(0, 1)]).isBounded)
    }

    @Test("a long turn is expected for sixteen short turns")
    func expectation() {
        let turns = [(50, 10)] + Array(repeating: (0, 1), count: 15)

        #expect(!TurnBound().expectsLongTurn)
        #expect(bound(after: turns).expectsLongTurn)
        #expect(!bound(after: turns + [(0, 1)]).expectsLongTurn)
    }

    @Test("behind a long turn the clients of a store have their turns one after the other")
    func clients() throws {
        let time = Mutex(Int64(0))
        let observer = StoreObserver(
            clock: {
                time.withLock { time in
                    time += 40_000_000
                    return Instant(nanoseconds: time)
                }
            }, computed: { _, _ in }, decided: { _, _, _ in }, landed: { _ in }, appended: { _, _, _ in },
            woken: { _ in })
        let store = Store(
            domain: try CompiledDomain(Sample()), now: { Timestamp(milliseconds: 0) }, observer: observer)
        let (answered, isAnswered) = (Collection<String>(), DispatchSemaphore(value: 0))
        func enqueue(_ name: String) {
            store.enqueue(
                PendingTransaction(.of(Sample.Add(amount: 1)), client: String(name.prefix(1))) { _ in
                    answered.add(name)
                    isAnswered.signal()
                })
        }
        _ = store.submitNow(.of(Sample.Add(amount: 1)))

        let names = ["a1", "a2", "a3", "b1", "a4", "b2"]
        for name in names { enqueue(name) }
        store.flushNow()
        for _ in names { isAnswered.wait() }

        #expect(answered.values == ["a1", "b1", "a2", "b2", "a3", "a4"])
    }
}
