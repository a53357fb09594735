import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import StateStore

@Suite("The rule of the turns", .timeLimit(.minutes(5)))
struct TurnRuleTests {
    /// A rule behind turns that begin one millisecond after the other has ended.
    private func rule(after turns: [(milliseconds: Int, count: Int)]) -> TurnRule {
        var (rule, now) = (TurnRule(), Instant(nanoseconds: 0))
        for turn in turns {
            now = now + .milliseconds(turn.milliseconds + 1)
            rule.adapt(to: .milliseconds(turn.milliseconds), of: turn.count, endedAt: now)
        }
        return rule
    }

    @Test("turns of at most five milliseconds have no bound, and one of more bounds the next to what takes five")
    func long() {
        #expect(!rule(after: [(5, 100), (0, 1)]).isMeasured)
        #expect(rule(after: [(10, 100)]).countMax == 50)
        #expect(rule(after: [(6, 1)]).countMax == 1)
        #expect(rule(after: [(1000, 64)]).countMax == 1)
    }

    @Test("a short turn doubles the bound only where it had as many transactions as it might")
    func doubling() {
        #expect(rule(after: [(50, 10), (0, 1)]).countMax == 2)
        #expect(rule(after: [(50, 10), (0, 1), (0, 1)]).countMax == 2)
        #expect(rule(after: [(50, 10), (0, 1), (0, 2)]).countMax == 4)
    }

    @Test("the bound ends above 1,024 transactions, and behind 1,000 short turns in a row")
    func end() {
        let growing = [(50, 10)] + (0..<10).map { (0, 1 << $0) }
        let alone = [(50, 10)] + Array(repeating: (0, 1), count: 999)

        #expect(rule(after: growing).countMax == 1024)
        #expect(rule(after: growing + [(0, 1024)]).countMax == .max)
        #expect(rule(after: alone).countMax < .max)
        #expect(rule(after: alone + [(6, 1)] + alone.dropFirst()).countMax < .max)
        #expect(rule(after: alone + [(0, 1)]).countMax == .max)
    }

    @Test("a loop runs a turn of at most 1,024 actions, while none is scheduled on the queue")
    func place() {
        var rule = TurnRule()

        #expect(rule.place(ofTurnOf: 1024, onLoop: true) == .here)
        #expect(rule.place(ofTurnOf: 1, onLoop: false) == .queue)
        #expect(rule.place(ofTurnOf: 1, onLoop: true) == .queue)
        rule.endScheduledTurn()
        #expect(rule.place(ofTurnOf: 1, onLoop: true) == .queue)
        rule.endScheduledTurn()
        rule.endScheduledTurn()
        #expect(rule.place(ofTurnOf: 1, onLoop: true) == .here)
        #expect(rule.place(ofTurnOf: 1025, onLoop: true) == .queue)
    }

    @Test("no loop runs a turn for a minute behind a long one, however many short ones there are")
    func memory() {
        func places(after seconds: Int) -> TurnRule.Place {
            var rule = rule(after: [(50, 10)] + Array(repeating: (0, 1), count: 2000))
            rule.adapt(to: .zero, of: 1, endedAt: Instant(nanoseconds: 51_000_000) + .seconds(seconds))
            return rule.place(ofTurnOf: 1, onLoop: true)
        }

        #expect(places(after: 59) == .queue)
        #expect(places(after: 60) == .here)
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
