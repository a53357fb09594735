import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Idempotency keys")
struct IdempotencyTests {
    @Test("the same key in one turn and in later ones is one commit")
    func once() throws {
        let core = try Core.sample()

        let first = core.run(Array(repeating: .of(Sample.Add(amount: 1), key: "k"), count: 20))
        let later = core.run([.of(Sample.Add(amount: 1), key: "k")])

        #expect(first.commits.count == 1)
        #expect(first.outcomes.map { $0.receipt?.isReplay } == [false] + Array(repeating: true, count: 19))
        #expect(later.outcomes[0].receipt?.version == 1)
        #expect(try core.json("/count/value") == "1")
    }

    @Test("the same key with another body is an error")
    func reused() throws {
        let core = try Core.sample()

        let turn = core.run([
            .of(Sample.Add(amount: 1), key: "k", body: "1"), .of(Sample.Add(amount: 2), key: "k", body: "2"),
        ])

        guard case .keyReused(key: "k") = turn.outcomes[1] else { Issue.record("no"); return }
    }

    @Test("a rejected action does not use its key")
    func rejected() throws {
        let core = try Core.sample()

        core.run([.of(Sample.Add(amount: -1), key: "k")])
        let turn = core.run([.of(Sample.Add(amount: 1), key: "k")])

        #expect(turn.outcomes[0].receipt?.isReplay == false)
    }

    @Test("a key is kept until it expires and not longer", arguments: [(999, true), (1000, false)])
    func expiry(later: Int64, isReplay: Bool) throws {
        let core = try Core.sample(limits: StoreLimits(mailboxMax: 100, idempotencyLifetime: .seconds(1)))

        core.run([.of(Sample.Add(amount: 1), key: "k")], at: 0)
        let turn = core.run([.of(Sample.Add(amount: 1), key: "k")], at: later)

        #expect(turn.outcomes[0].receipt?.isReplay == isReplay)
    }

    @Test("at the limit of keys a new key is refused, and a known one is answered")
    func full() throws {
        let core = try Core.sample(limits: StoreLimits(mailboxMax: 100, idempotencyKeysMax: 1))
        core.run([.of(Sample.Add(amount: 1), key: "a")])

        let turn = core.run([.of(Sample.Add(amount: 1), key: "b"), .of(Sample.Add(amount: 1), key: "a")])

        guard case .full(.idempotencyKeys) = turn.outcomes[0] else { Issue.record("no"); return }
        #expect(turn.outcomes[1].receipt?.isReplay == true)
    }

    @Test("expired keys make room also where no commit comes in between")
    func expiredKeysLeaveRoom() throws {
        let core = try Core.sample(
            limits: StoreLimits(mailboxMax: 100, idempotencyKeysMax: 1, idempotencyLifetime: .seconds(1)))
        core.run([.of(Sample.Add(amount: 1), key: "a")], at: 0)

        let early = core.run([.of(Sample.Add(amount: 1), key: "b")], at: 999)
        let late = core.run([.of(Sample.Add(amount: 1), key: "b")], at: 1000)

        guard case .full(.idempotencyKeys) = early.outcomes[0] else { Issue.record("no"); return }
        #expect(late.outcomes[0].receipt?.version == 2)
    }

    @Test("a client has half of the keys, and leaves room for another; keys that expire or do not land make room")
    func shares() throws {
        let core = try Core.sample(
            limits: StoreLimits(mailboxMax: 100, idempotencyKeysMax: 6, idempotencyLifetime: .seconds(1)))
        func transaction(_ key: String, _ client: String?) -> PendingTransaction {
            PendingTransaction(.of(Sample.Add(amount: 1), key: key), client: client) { _ in }
        }

        let first = core.run(["a", "b", "c", "d"].map { transaction($0, "one") } + [transaction("e", "two")], at: 0)
        let landed = core.latest
        let second = core.run([transaction("d", "one"), transaction("f", "two"), transaction("a", "one")], at: 500)
        guard case .full(.idempotencyKeysOfClient) = first.outcomes[3] else { Issue.record("\(first)"); return }
        guard case .full(.idempotencyKeysOfClient) = second.outcomes[0] else { Issue.record("\(second)"); return }
        #expect(first.outcomes[4].receipt?.version == 4)
        #expect(second.outcomes[2].receipt?.isReplay == true)

        core.goBack(to: landed, without: second.commits)
        #expect(core.ledger.count == 4)
        let third = core.run([transaction("d", "one"), transaction("g", "one")], at: 1000)
        #expect(third.outcomes.allSatisfy { $0.receipt != nil })
        #expect(core.ledger.count(of: "one") == 2 && core.ledger.count(of: "two") == 0)

        // A start gives the shares back.
        let restarted = IdempotencyLedger(third.commits.compactMap(\.idempotency))
        #expect(restarted.count(of: "one") == 2)
    }

    @Test("a wall clock that jumps forward and back makes no key expire early")
    func jumpingClock() throws {
        let core = try Core.sample(limits: StoreLimits(mailboxMax: 100, idempotencyLifetime: .seconds(60)))
        func isReplay(_ key: String, wall: Int64, seconds: Int64) -> Bool? {
            core.turn(
                [.of(Sample.Add(amount: 1), key: key)], at: Timestamp(milliseconds: wall * 1000),
                monotonic: Instant(nanoseconds: seconds * 1_000_000_000)
            ).outcomes[0].receipt?.isReplay
        }

        #expect(isReplay("a", wall: 0, seconds: 0) == false)
        #expect(isReplay("b", wall: 1_000_000, seconds: 10) == false)
        #expect(isReplay("a", wall: -1_000_000, seconds: 20) == true)
        // From here on both clocks agree; the time at which the wall clock went back did not count.
        #expect(isReplay("a", wall: -999_951, seconds: 69) == true)
        #expect(isReplay("a", wall: -999_949, seconds: 71) == false)
        #expect(isReplay("b", wall: -999_941, seconds: 79) == true)
    }

    @Test("a monotonic clock that jumps makes no key expire early")
    func jumpingMonotonicClock() throws {
        let core = try Core.sample(limits: StoreLimits(mailboxMax: 100, idempotencyLifetime: .seconds(60)))
        for (wall, seconds) in [(0, 0), (10, 1_000_000), (59, 2_000_000)] as [(Int64, Int64)] {
            let turn = core.turn(
                [.of(Sample.Add(amount: 1), key: "a")], at: Timestamp(milliseconds: wall * 1000),
                monotonic: Instant(nanoseconds: seconds * 1_000_000_000))
            #expect(turn.outcomes[0].receipt?.version == 1)
        }
    }

    @Test("a key that was made while the clock was ahead expires like the others, and is not in their way")
    func clockAhead() throws {
        let limits = StoreLimits(mailboxMax: 100, idempotencyKeysMax: 2, idempotencyLifetime: .seconds(60))
        let ahead = KeyRecord(
            key: "ahead", fingerprint: "", version: 1, id: "1", isChange: true,
            expiry: Timestamp(milliseconds: 31_536_000_000))
        let core = try Core.sample(limits: limits, keys: [ahead], historyTime: Timestamp(milliseconds: 0))

        let first = core.run([.of(Sample.Add(amount: 1), key: "a"), .of(Sample.Add(amount: 1), key: "b")], at: 0)
        let second = core.run(
            [.of(Sample.Add(amount: 1), key: "b"), .of(Sample.Add(amount: 1), key: "c")], at: 60_000)

        #expect(first.outcomes[0].receipt?.isReplay == false)
        guard case .full(.idempotencyKeys) = first.outcomes[1] else { Issue.record("\(first)"); return }
        #expect(second.outcomes.map { $0.receipt?.isReplay } == [false, false])
    }

    @Test("keys expire in the order of their expiry, not in that of their insertion")
    func order() {
        func record(_ key: String, _ expiry: Int64) -> KeyRecord {
            KeyRecord(
                key: IdempotencyKey(recorded: key), fingerprint: "", version: 1, id: "1", isChange: true,
                expiry: Timestamp(milliseconds: expiry))
        }
        var ledger = IdempotencyLedger([])
        for (key, expiry) in [("late", 30), ("early", 10), ("middle", 20)] as [(String, Int64)] {
            ledger.insert(record(key, expiry))
        }

        ledger.forget(before: Timestamp(milliseconds: 20))

        #expect(ledger.count == 1)
        #expect(ledger.record("late", at: Timestamp(milliseconds: 20)) != nil)
    }

    @Test("a key costs the same whether its clock is ahead of that of the kept ones or behind, as after a fail-over")
    func slowerClock() {
        func record(_ number: Int, _ expiry: Int) -> KeyRecord {
            KeyRecord(
                key: IdempotencyKey("\(number)"), fingerprint: "", version: 1, id: "1", isChange: true,
                expiry: Timestamp(milliseconds: Int64(expiry)))
        }
        var ledger = IdempotencyLedger((0..<50_000).map { record($0, 1_000_000 + $0) })
        let (ahead, behind) = (
            (0..<2000).map { record(60_000 + $0, 2_000_000) }, (0..<2000).map { record(70_000 + $0, $0) }
        )

        let quick = processorTime { for record in ahead { ledger.insert(record) } }
        let slow = processorTime { for record in behind { ledger.insert(record) } }

        #expect(slow < quick * 20 + .milliseconds(50), "\(slow), and \(quick) ahead")
        ledger.forget(before: Timestamp(milliseconds: 999_999))
        #expect(ledger.count == 52_000)
    }

    @Test("keys that are taken back and used again leave nothing behind")
    func takenBack() {
        let records = (0..<10).map { number in
            KeyRecord(
                key: IdempotencyKey("\(number)"), fingerprint: "", version: 1, id: "1", isChange: true,
                expiry: Timestamp(milliseconds: 10))
        }
        var ledger = IdempotencyLedger(records)
        for _ in 0..<1000 {
            for record in records { ledger.drop(record.key) }
            for record in records { ledger.insert(record) }
        }

        #expect(ledger.orderCount < 200)
        ledger.forget(before: Timestamp(milliseconds: 10))
        #expect(ledger.count == 0)
        #expect(ledger.orderCount == 0)
    }
}
