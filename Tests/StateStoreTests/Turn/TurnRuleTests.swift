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
