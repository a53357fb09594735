import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import StateStore

@Suite("The rule of the turns", .timeLimit(.minutes(5)))
struct TurnRuleTests {
    private func pending(_ count: Int, bytes: Int = 10) -> [PendingTransaction] {
        let item = Transaction.Item(Sample.Add(amount: 1), sent: Array(repeating: 0, count: bytes))
        return (0..<count).map { _ in PendingTransaction(Transaction([item])) { _ in } }
    }

    /// A rule behind turns of so much processor time.
    private func rule(after turns: [(milliseconds: Int, count: Int)]) -> TurnRule {
        var rule = TurnRule()
        for turn in turns { rule.adapt(to: .milliseconds(turn.milliseconds), of: pending(turn.count)) }
        return rule
    }

    @Test("turns of at most five milliseconds have no bound, and one of more bounds the next to what takes five")
    func long() {
        #expect(!rule(after: [(5, 100), (0, 1)]).isMeasured(pending(1)))
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

    @Test("a type is slow behind a turn of much processor time, until 100 short ones")
    func slow() {
        let add = pending(1)
        var rule = rule(after: [(200, 1)])
        for number in 0..<100 {
            #expect(rule.isSlow(add[0].transaction), "turn \(number)")
            rule.adapt(to: .milliseconds(1), of: add)
        }
        #expect(!rule.isSlow(add[0].transaction))
        #expect(!rule.isSlow(.of(Sample.Remove(id: 1))))
    }

    @Test("a type that is slow again is so for ten times as many short turns, and for no more than a million")
    func relapse() {
        let add = pending(1)
        var rule = TurnRule()
        func shortTurns() -> Int {
            rule.adapt(to: .milliseconds(200), of: add)
            // A long turn behind a long one is no relapse.
            rule.adapt(to: .milliseconds(200), of: add)
            var count = 0
            while rule.isSlow(add[0].transaction) {
                rule.adapt(to: .milliseconds(1), of: add)
                count += 1
            }
            return count
        }

        #expect((0..<4).map { _ in shortTurns() } == [100, 1000, 10_000, 100_000])
        #expect((0..<2).map { _ in shortTurns() } == [1_000_000, 1_000_000])
    }

    @Test("a turn that took long by the clock has the next ones of its types measured, and sends none to the queue")
    func suspected() {
        var rule = TurnRule()
        let add = pending(1)
        rule.suspect(add)
        for _ in 0..<100 {
            #expect(rule.isMeasured(add))
            #expect(!rule.isSlow(add[0].transaction))
            rule.adapt(to: .milliseconds(1), of: add)
        }
        #expect(!rule.isMeasured(add))
    }

    @Test("a long payload goes to the queue, and says nothing of its type")
    func payload() {
        let long = pending(1, bytes: 65_537)
        let rule = {
            var rule = TurnRule()
            rule.suspect(long)
            rule.adapt(to: .milliseconds(50), of: long)
            return rule
        }()
        #expect(rule.isSlow(long[0].transaction))
        #expect(!rule.isSlow(pending(1)[0].transaction))
    }

    @Test("a turn behind a long one has one slow transaction, and each short one that has none of its client before it")
    func shorts() {
        func named(_ names: [String]) -> [PendingTransaction] {
            names.map { name in
                let bytes = name.contains("L") ? 65_537 : 10
                let item = Transaction.Item(
                    Sample.Remove(id: 1), id: name, sent: Array(repeating: 0, count: bytes))
                return PendingTransaction(Transaction([item]), client: String(name.prefix(1))) { _ in }
            }
        }
        let waiting = named(["aL1", "aL2", "a3", "bL1", "c1", "c2", "b2", "d1"])
        var rule = TurnRule()
        rule.adapt(to: .milliseconds(25), of: named(["aL1"]))

        var taken = waiting
        let rest = rule.takeRest(from: &taken)

        #expect(rule.isMeasured(waiting))
        #expect(taken.compactMap(\.transaction.firstID) == ["aL1", "c1", "d1", "c2"])
        #expect(rest.compactMap(\.transaction.firstID) == ["bL1", "aL2", "b2", "a3"])
    }

    @Test("behind a long turn the clients of a store have their turns one after the other")
    func clients() throws {
        let time = Mutex(Int64(0))
        let clock = { @Sendable in
            time.withLock { time in
                time += 40_000_000
                return Instant(nanoseconds: time)
            }
        }
        let observer = StoreObserver(
            clock: clock, computed: { _, _ in }, decided: { _, _, _ in }, landed: { _ in }, appended: { _, _, _ in },
            woken: { _ in })
        let store = UntypedStore(
            domain: try CompiledDomain(Sample()), now: { Timestamp(milliseconds: 0) }, processorTime: clock,
            observer: observer
        ).typed(Sample.State.self)
        let (answered, isAnswered) = (Collection<String>(), DispatchSemaphore(value: 0))
        func enqueue(_ name: String) {
            store.enqueue(
                PendingTransaction(.of(Sample.Add(amount: 1)), client: String(name.prefix(1))) { _ in
                    answered.add(name)
                    isAnswered.signal()
                })
        }
        // The first one is found to be long by the clock, and the second one by its processor time.
        for _ in 0..<2 { _ = store.submitNow(.of(Sample.Add(amount: 1))) }

        let names = ["a1", "a2", "a3", "b1", "a4", "b2"]
        for name in names { enqueue(name) }
        store.flushNow()
        for _ in names { isAnswered.wait() }

        #expect(answered.values == ["a1", "b1", "a2", "b2", "a3", "a4"])
    }
}
