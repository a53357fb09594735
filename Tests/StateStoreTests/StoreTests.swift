import Dispatch
import Glibc
import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

extension Store where State == Sample.State {
    static func sample(
        limits: StoreLimits = StoreLimits(), journal: (any Journal)? = nil, queues: WatchHub.Queues = .dispatch(),
        processorTime: @escaping @Sendable () -> Instant = { Instant(nanoseconds: 0) }
    ) throws -> Store {
        UntypedStore(
            domain: try CompiledDomain(Sample()), limits: limits,
            origin: .init(state: .of(State()), cursor: Cursor(Core.sampleEpoch, 0)),
            now: { Timestamp(milliseconds: 0) }, journal: journal, processorTime: processorTime, queues: queues
        ).typed(Sample.State.self)
    }
}

@Suite("The state that a store begins with")
struct InitialStateTests {
    @Test("a state that JSON does not have is refused")
    func unencodable() {
        var state = Sample.State()
        state.items.table[1] = .init(name: "broken", size: .nan)

        #expect(throws: DeclarationFault.self) { try Store(Sample(), state: state) }
    }
}

/// Collects values that any thread adds.
final class Collection<Value: Sendable>: Sendable {
    private let stored = Mutex<[Value]>([])
    var values: [Value] { stored.withLock { $0 } }
    /// How many there have ever been.
    var count: Int { added.load(ordering: .relaxed) }
    private let added = Atomic(0)
    func add(_ value: Value) {
        added.add(1, ordering: .relaxed)
        stored.withLock { $0.append(value) }
    }
    func takeAll() -> [Value] {
        stored.withLock { values in
            defer { values = [] }; return values
        }
    }
}

@Suite("The store", .timeLimit(.minutes(5)))
struct StoreTests {
    private struct DiskFull: Error {}

    @Test("enqueued transactions wait for a flush, and it runs them as one turn")
    func flush() throws {
        let turns = Collection<Int>()
        let store = try Store.sample(journal: HookedJournal { turns.add($0.count) })
        let done = DispatchSemaphore(value: 0)
        for _ in 0..<5 { store.enqueue(PendingTransaction(.of(Sample.Add(amount: 1))) { _ in done.signal() }) }
        #expect(store.untyped.waitingCount == 5)

        store.flush()
        for _ in 0..<5 { done.wait() }

        #expect(turns.values == [5])
    }

    @Test("many threads get the versions from 1 to N, each once, and the published versions have no gap")
    func threads() throws {
        let versions = Collection<Version>()
        let published = Collection<Version>()
        let store = try Store.sample()
        let token = store.subscribe(changesOf: { $0 }, notify: { if $0.old != nil { published.add($0.version) } })
        defer { token.cancel() }
        let group = DispatchGroup()

        DispatchQueue.concurrentPerform(iterations: 8) { thread in
            for number in 0..<250 {
                if (number + thread).isMultiple(of: 2) {
                    if let receipt = store.submitNow(.of(Sample.Add(amount: 1))).receipt {
                        versions.add(receipt.version)
                    }
                } else {
                    group.enter()
                    store.submit(
                        PendingTransaction(.of(Sample.Add(amount: 1))) { outcome in
                            if let receipt = outcome.receipt { versions.add(receipt.version) }
                            group.leave()
                        })
                }
            }
        }
        group.wait()

        #expect(versions.values.sorted() == Array(1...2000))
        #expect(published.values == Array(1...2000))
        #expect(store.state.count.value == 2000)
    }

    @Test("a commit that the journal refuses leaves the state unchanged, and the next commit takes its version")
    func notRecorded() throws {
        let isFull = Mutex(true)
        let published = Collection<Version>()
        let store = try Store.sample(
            journal: HookedJournal { _ in if isFull.withLock({ $0 }) { throw DiskFull() } })
        let token = store.subscribe(changesOf: { $0 }, notify: { if $0.old != nil { published.add($0.version) } })
        defer { token.cancel() }

        let refused = store.submitNow(.of(Sample.Add(amount: 2), key: "k"))
        let versionAfterRefusal = store.version
        isFull.withLock { $0 = false }
        let taken = store.submitNow(.of(Sample.Add(amount: 3), key: "k"))

        guard case .notRecorded = refused else { Issue.record("\(refused)"); return }
        #expect(versionAfterRefusal == 0)
        #expect(taken.receipt?.version == 1)
        #expect(taken.receipt?.isReplay == false)
        #expect(store.state.count.value == 3)
        #expect(published.values == [1])
    }

    @Test("an append of unknown outcome leaves the state unchanged, names the ID, and a retry commits once")
    func unknownOutcome() throws {
        let isFailing = Mutex(true)
        let published = Collection<Version>()
        let store = try Store.sample(
            journal: HookedJournal { _ in if isFailing.withLock({ $0 }) { throw UnknownOutcome() } })
        let token = store.subscribe(changesOf: { $0 }, notify: { if $0.old != nil { published.add($0.version) } })
        defer { token.cancel() }
        let transaction = Transaction([.init(Sample.Add(amount: 2), id: "mine")], idempotency: ("k", ""))

        let first = store.submitNow(transaction)
        let versionAfter = store.version
        let error = #expect(throws: DispatchError.self) { try store.dispatch(Sample.Add(amount: 5)) }
        isFailing.withLock { $0 = false }
        let second = store.submitNow(transaction)

        guard case .unknown(id: "mine") = first else { Issue.record("\(first)"); return }
        #expect(error?.code == "outcome-unknown")
        #expect(versionAfter == 0)
        #expect(second.receipt?.version == 1)
        #expect(second.receipt?.isReplay == false)
        #expect(published.values == [1])
    }

    @Test("in a turn that is not recorded, an outcome computed on an unrecorded state is not answered")
    func mixedTurn() throws {
        let isFull = Mutex(false)
        let store = try Store.sample(journal: HookedJournal { _ in if isFull.withLock({ $0 }) { throw DiskFull() } })
        _ = store.submitNow(.of(Sample.Add(amount: 1), key: "known"))
        isFull.withLock { $0 = true }
        let outcomes = Collection<Outcome>()
        for transaction in [
            Transaction.of(Sample.Add(amount: -9)), .of(Sample.Add(amount: 1)), .of(Sample.Add(amount: -9)),
            .of(Sample.Add(amount: 1), key: "known"),
        ] {
            store.enqueue(PendingTransaction(transaction) { outcomes.add($0) })
        }

        store.drain()

        let values = outcomes.values
        #expect(values.count == 4)
        #expect(values[0].rejection?.code == "negative")
        guard case .notRecorded = values[1], case .notRecorded = values[2] else { Issue.record("\(values)"); return }
        #expect(values[3].receipt?.isReplay == true)
        #expect(store.version == 1)
    }

    @Test("a turn is recorded before it is published, and published before it is answered")
    func order() throws {
        let events = Collection<String>()
        let store = try Store.sample(
            journal: HookedJournal { events.add("recorded \($0.map(\.version))") })
        let token = store.subscribe(
            changesOf: { $0 },
            notify: { [hub = store.hub] in if $0.old != nil { events.add("published \(hub.latest.cursor.version)") } })
        defer { token.cancel() }
        store.enqueue(PendingTransaction(.of(Sample.Add(amount: 1))) { _ in events.add("answered") })

        store.drain()

        #expect(events.values == ["recorded [1]", "published 1", "answered"])
    }

    @Test("a turn without a commit is neither recorded nor published")
    func nothing() throws {
        let events = Collection<String>()
        let store = try Store.sample(journal: HookedJournal { _ in events.add("recorded") })
        let generation = store.hub.generation

        _ = store.submitNow(.of(Sample.Add(amount: -1)))

        #expect(events.values.isEmpty)
        #expect(store.hub.generation == generation)
    }

    @Test("what waits for its landing fills the mailbox, and the next transaction is refused at once")
    func full() throws {
        let (entered, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let store = try Store.sample(
            limits: StoreLimits(mailboxMax: 2),
            journal: HookedJournal { _ in
                entered.signal()
                leave.wait()
            })
        let outcomes = Collection<Outcome>()
        store.submit(PendingTransaction(.of(Sample.Add(amount: 1))) { outcomes.add($0) })
        entered.wait()

        store.submit(PendingTransaction(.of(Sample.Add(amount: 1))) { outcomes.add($0) })
        let waiting = store.untyped.waitingCount
        let refused = store.submitNow(.of(Sample.Add(amount: 1)))
        leave.signal()
        leave.signal()
        store.drain()

        guard case .full(.mailbox) = refused else { Issue.record("\(refused)"); return }
        #expect(waiting == 2)
        #expect(outcomes.values.compactMap { $0.receipt?.version } == [1, 2])
        #expect(store.untyped.waitingCount == 0)
    }

    @Test("a flush by a thread that serves clients runs no long turn, and waits for none")
    func flushes() throws {
        let store = try Store.sample()
        let (entered, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let threads = Collection<Bool>()
        let loop = pthread_self()
        let note: @Sendable (Outcome) -> Void = { _ in threads.add(pthread_equal(loop, pthread_self()) != 0) }

        store.enqueue(PendingTransaction(.of(Sample.Add(amount: 1)), complete: note))
        store.flushNow()
        #expect(threads.values == [true])

        let long = Transaction((0..<1025).map { _ in .init(Sample.Add(amount: 1)) }, form: .batch)
        store.enqueue(
            PendingTransaction(long) {
                note($0)
                entered.signal()
                leave.wait()
            })
        store.flushNow()
        entered.wait()
        #expect(threads.values == [true, false])

        store.enqueue(PendingTransaction(.of(Sample.Add(amount: 1)), complete: note))
        store.flushNow()
        #expect(threads.values == [true, false])
        leave.signal()
        store.onQueue {}
        #expect(threads.values == [true, false, false])

        store.enqueue(PendingTransaction(.of(Sample.Add(amount: 1)), complete: note))
        store.flushNow()
        #expect(threads.values == [true, false, false, true])
    }

    @Test("a transaction whose actions take too long is rejected, and nothing of it is committed")
    func tooLong() throws {
        var limits = StoreLimits()
        limits.transactionTime = .milliseconds(10)
        let core = try Core.sample(limits: limits)
        let ticks = Mutex(Int64(0))
        let clock: () -> Instant = {
            Instant(
                nanoseconds: ticks.withLock {
                    $0 += 1_000_000; return $0
                })
        }
        let actions = (0..<1000).map { _ in Transaction.Item(Sample.Add(amount: 1)) }

        // The clock advances by a millisecond at each look, and the store looks behind each 16 actions.
        let turn = core.turn(
            [
                .init(Transaction(Array(actions.prefix(144)), form: .batch), complete: { _ in }),
                .init(Transaction(actions, form: .batch), complete: { _ in }),
                .init(Transaction(Array(actions.prefix(16)), form: .batch), complete: { _ in }),
            ], at: Timestamp(milliseconds: 0), monotonic: { Instant(nanoseconds: 0) }, clock: clock)

        #expect(turn.commits.count == 2)
        guard case .rejected(let rejection, let index) = turn.outcomes[1] else { Issue.record("\(turn)"); return }
        #expect(rejection.code == "transaction-too-long" && rejection.kind == .invalid)
        #expect(index == 160)
        #expect(turn.version == 2)
    }

    @Test("draining runs the waiting transactions and refuses every later one")
    func drain() throws {
        let store = try Store.sample()
        let outcomes = Collection<Outcome>()
        for _ in 0..<3 { store.enqueue(PendingTransaction(.of(Sample.Add(amount: 1))) { outcomes.add($0) }) }

        store.drain()
        let later = store.submitNow(.of(Sample.Add(amount: 1)))
        store.submit(PendingTransaction(.of(Sample.Add(amount: 1))) { outcomes.add($0) })

        #expect(outcomes.values.compactMap { $0.receipt?.version } == [1, 2, 3])
        guard case .draining = later, case .draining? = outcomes.values.last else { Issue.record("\(later)"); return }
        #expect(store.version == 3)
    }

    @Test("later commits do not change a snapshot")
    func snapshot() throws {
        let store = try Store.sample()
        _ = store.submitNow(.of(Sample.Put(id: 1, name: "a")))
        let snapshot = store.latest

        _ = store.submitNow(.of(Sample.Put(id: 1, name: "b")))

        let name = try snapshot.encoded(.pointer("/items/entities/1/name"))
        #expect(text(name?.bytes) == #""a""#)
    }
}
