import Dispatch
import Glibc
import Synchronization
import Testing

@testable import StateStore

/// A loop serves many clients: what it asks the store for must not hold it.
@Suite("The loop waits for nobody", .timeLimit(.minutes(5)))
struct LoopWaitTests {
    /// Enqueues a transaction and flushes as a loop does; expects that this returns while the gate holds somebody.
    private func expectNoWait(of store: Store<Sample.State>, while gate: Gate) {
        let (returned, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        gate.waitForBegin()
        DispatchQueue(label: "loop").async {
            store.enqueue(PendingTransaction(.of(Sample.Add(amount: 1))) { _ in done.signal() })
            store.flushNow()
            returned.signal()
        }
        #expect(returned.wait(timeout: .now() + .seconds(20)) == .success, "the loop waits")
        gate.open()
        done.wait()
    }

    @Test("for a subscriber, in a turn or in a landing", arguments: [false, true])
    func subscriber(hasJournal: Bool) throws {
        let gate = Gate()
        let store = try Store.sample(journal: hasJournal ? HookedJournal { _ in } : nil)
        let token = store.subscribe(changesOf: { $0 }, notify: { if $0.version == 1 { gate.hold() } })
        defer { token.cancel() }

        store.submit(PendingTransaction(.of(Sample.Add(amount: 1))) { _ in })

        expectNoWait(of: store, while: gate)
    }

    @Test("for the answers of a landing")
    func landing() throws {
        let gate = Gate()
        let store = try Store.sample(journal: HookedJournal { _ in })

        store.submit(PendingTransaction(.of(Sample.Add(amount: 1))) { _ in gate.hold() })

        expectNoWait(of: store, while: gate)
    }

    @Test("for a journal of another machine, from which commits of others are read")
    func foreignCommits() throws {
        let gate = Gate()
        let store = try Store.sample(journal: FarJournal(gate.hold))

        expectNoWait(of: store, while: gate)
    }

    @Test("nor does it run a subscriber itself")
    func foreignCode() throws {
        let threads = Collection<pthread_t>()
        let store = try Store.sample()
        let token = store.subscribe(changesOf: { $0 }, notify: { if $0.version > 0 { threads.add(pthread_self()) } })
        defer { token.cancel() }
        let done = DispatchSemaphore(value: 0)

        store.enqueue(PendingTransaction(.of(Sample.Add(amount: 1))) { _ in done.signal() })
        store.flushNow()
        done.wait()

        #expect(threads.values.count == 1)
        #expect(threads.values.allSatisfy { pthread_equal($0, pthread_self()) == 0 })
    }
}

/// A shared journal that takes long to say what others have appended.
private final class FarJournal: Journal {
    private let memory = MemoryJournal(Array("{}".utf8))
    private let read: @Sendable () -> Void
    private let isRead = Atomic(false)

    init(_ read: @escaping @Sendable () -> Void) { self.read = read }

    func append(_ commits: [Commit], after version: Version) -> AppendResult { memory.append(commits, after: version) }
    func commits(after version: Version, through last: Version, limit: Int) -> [Commit] {
        if !isRead.exchange(true, ordering: .relaxed) { read() }
        return memory.commits(after: version, through: last, limit: limit)
    }
    func commit(version: Version) throws -> Commit? { try memory.commit(version: version) }
    func commit(id: String, by subject: String?) -> Commit? { memory.commit(id: id, by: subject) }
    func state(at version: Version) throws -> SavedState? { try memory.state(at: version) }
    func oldestState() -> Version { memory.oldestState() }
    func offer(_ snapshot: Snapshot, saved: @escaping @Sendable (Version) -> Void) {}
    func note(historyTime: Timestamp) {}
    func follow(_ appended: @escaping @Sendable () -> Void) {}
    var failure: String? { nil }
    var isShared: Bool { true }
    var bytesCount: Int? { nil }
    var isOutcomeOpen: Bool { false }
    func probe() {}
    func close(_ snapshot: Snapshot) {}
}
