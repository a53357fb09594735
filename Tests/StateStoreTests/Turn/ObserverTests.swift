import Synchronization
import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("The observer of a store", .timeLimit(.minutes(5)))
struct ObserverTests {
    /// What an observer was called with, in order, as text.
    private final class Record: Sendable {
        let lines = Collection<String>()
        private let time = Mutex(Int64(0))

        var observer: StoreObserver {
            StoreObserver(
                clock: {
                    Instant(
                        nanoseconds: self.time.withLock { time in
                            time += 1000
                            return time
                        })
                }, computed: { self.lines.add("computed \($0) in \($1 / .microseconds(1)) us") },
                decided: { self.lines.add("\($2) \($0) \($1.rawValue)") },
                landed: { self.lines.add("landed \($0)") },
                appended: { self.lines.add("appended \($1) in \($2 / .microseconds(1)) us: \($0)") },
                woken: { self.lines.add("woken \($0)") })
        }
    }

    private func store(
        _ record: Record, limits: StoreLimits
    ) throws -> Store<Sample.State> {
        UntypedStore(
            domain: try CompiledDomain(Sample()), limits: limits,
            origin: .init(state: .of(Sample.State()), cursor: Cursor(Core.sampleEpoch, 0)),
            now: { Timestamp(milliseconds: 0) }, observer: record.observer
        ).typed(Sample.State.self)
    }

    @Test("a turn of more than 100 ms is reported with the type of its first action", arguments: [100, 101])
    func longTurn(milliseconds: Int64) throws {
        let events = Collection<String>()
        let time = Mutex(Int64(0))
        let observer = StoreObserver(
            clock: {
                let now = time.withLock { time in
                    time += milliseconds * 1_000_000
                    return time
                }
                return Instant(nanoseconds: now)
            }, computed: { _, _ in }, decided: { _, _, _ in }, landed: { _ in }, appended: { _, _, _ in },
            woken: { _ in })
        let store = UntypedStore(
            domain: try CompiledDomain(Sample()), now: { Timestamp(milliseconds: 0) }, observer: observer,
            report: { if case .turnTookLong(let type, 1, let time) = $0 { events.add("\(type) \(time)") } }
        ).typed(Sample.State.self)

        store.enqueue(PendingTransaction(.of(Sample.Add(amount: 1))) { _ in })
        store.flushNow()

        #expect(events.values == (milliseconds > 100 ? ["\(Sample.Add.type) \(Duration.milliseconds(101))"] : []))
    }

    @Test("a replay, a dry run and a full mailbox have outcomes of their own")
    func outcomes() throws {
        let record = Record()
        let store = try store(record, limits: StoreLimits(mailboxMax: 1))
        let add = Sample.Add.type
        let dryRun = Transaction.of(Sample.Add(amount: 1), purpose: .dryRun)

        _ = store.submitNow(.of(Sample.Add(amount: 1), key: "k", body: "b"))
        _ = store.submitNow(.of(Sample.Add(amount: 1), key: "k", body: "b"))
        _ = store.submitNow(.of(Sample.Add(amount: 1), key: "k", body: "c"))
        _ = store.submitNow(dryRun)
        store.enqueue(PendingTransaction(.of(Sample.Add(amount: 1))) { _ in })
        store.enqueue(PendingTransaction(.of(Sample.Add(amount: 1))) { _ in })
        store.drain()
        _ = store.submitNow(.of(Sample.Add(amount: 1)))

        #expect(
            record.lines.values.filter { $0.contains(add) }.map { $0.split(separator: " ")[2] } == [
                "committed", "replayed", "key_reused", "dry_run", "full", "committed", "draining",
            ])
        #expect(store.untyped.idempotencyKeysCount == 1)
    }
}
