import Synchronization
import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("The observer of a store", .timeLimit(.minutes(5)))
struct ObserverTests {
    private struct DiskFull: Error {}

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
        _ record: Record, _ journal: (any Journal)? = nil, limits: StoreLimits = StoreLimits()
    ) throws -> Store<Sample.State> {
        UntypedStore(
            domain: try CompiledDomain(Sample()), limits: limits,
            origin: .init(state: .of(Sample.State()), cursor: Cursor(Core.sampleEpoch, 0)),
            now: { Timestamp(milliseconds: 0) }, journal: journal, observer: record.observer
        ).typed(Sample.State.self)
    }

    @Test("a turn reports runs of equal actions, before their clients get the outcomes")
    func runs() throws {
        let record = Record()
        let store = try store(record)
        let add = Sample.Add.type

        for amount in [1, 2, 3, -99, -99, 1] {
            store.enqueue(
                PendingTransaction(.of(Sample.Add(amount: amount))) { _ in record.lines.add("answered") })
        }
        store.flushNow()

        #expect(
            record.lines.values == [
                "computed 6 in 1.0 us", "landed 4", "3 \(add) committed", "2 \(add) rejected", "1 \(add) committed",
            ] + Array(repeating: "answered", count: 6))
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

    @Test("a batch counts each of its actions, with the outcome of all")
    func batch() throws {
        let record = Record()
        let store = try store(record)

        try store.dispatch(.batch([Sample.Add(amount: 1), Sample.Add(amount: 1)]))
        #expect(throws: DispatchError.self) {
            try store.dispatch(.batch([Sample.Add(amount: 1), Sample.Add(amount: -99)]))
        }

        let add = Sample.Add.type
        #expect(record.lines.values.filter { $0.contains(add) } == ["2 \(add) committed", "2 \(add) rejected"])
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

    @Test("an append reports its commits, its time and its result; what it refuses is counted once")
    func appends() throws {
        let record = Record()
        let isFull = Mutex(false)
        let store = try store(
            record, HookedJournal { _ in if isFull.withLock({ $0 }) { throw DiskFull() } })
        let add = Sample.Add.type

        _ = store.submitNow(.of(Sample.Add(amount: 1)))
        isFull.withLock { $0 = true }
        _ = store.submitNow(.of(Sample.Add(amount: 1)))

        #expect(
            record.lines.values == [
                "computed 1 in 1.0 us", "appended 1 in 1.0 us: landed", "landed 1", "1 \(add) committed",
                "computed 1 in 1.0 us", "appended 1 in 1.0 us: failed", "1 \(add) not_recorded",
            ])
        #expect(store.untyped.turnsInFlightCount == 0)
    }
}

@Suite("The figures of a hub")
struct HubFiguresTests {
    @Test("a pass reports how many watches it woke, and the hub counts those that wait")
    func woken() throws {
        let counts = Collection<Int>()
        var published = try Published(woken: { counts.add($0) })
        let (count, items) = (Selection.pointer(JSONPointer(["count"])), Selection.pointer(JSONPointer(["items"])))
        let tags = [count: try published.tag(count), items: try published.tag(items)]
        for (number, selection) in [(1, count), (2, count), (3, count), (4, items)] {
            _ = try published.watches.park(
                number, client: "", at: selection, until: .otherThan(try #require(tags[selection])))
        }
        published.queue.runAll()
        #expect(published.hub.figures.waits[.state] == 4)
        _ = counts.takeAll()

        published.commit(Sample.Add(amount: 1))
        published.commit(Sample.Add(amount: 1))

        #expect(counts.values == [3])
        #expect(published.hub.figures.waits[.state] == 1)
        #expect(published.hub.figures.waits[.changes] == nil && published.hub.figures.streams.isEmpty)
        #expect(published.hub.figures.latest == 2 && published.hub.figures.historyCommitsCount == 2)
        #expect(published.hub.figures.historyBytes > 0)
    }
}
