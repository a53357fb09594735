import Dispatch
import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Two stores on one journal", .timeLimit(.minutes(5)))
struct SharedJournalTests {
    private func journal() throws -> MemoryJournal {
        MemoryJournal(try CompiledDomain(Sample()).bytes(of: .of(Sample.State())))
    }

    /// Lets stores take in what has been appended.
    private func catchUp(_ stores: Store<Sample.State>...) {
        for store in stores { store.queue.sync {} }
    }

    @Test("each store takes in what the other has appended, in order, and publishes it")
    func follow() throws {
        let journal = try journal()
        let (one, two) = (try Store.sample(journal: journal), try Store.sample(journal: journal))
        let seen = Collection<Version>()
        let token = two.subscribe(changesOf: { $0 }, notify: { seen.add($0.version) })
        defer { token.cancel() }

        for amount in 1...5 { try one.dispatch(Sample.Add(amount: amount)) }
        catchUp(two)

        #expect(two.version == 5)
        #expect(two.state.count.value == 15)
        #expect(seen.values == [0, 1, 2, 3, 4, 5])
        #expect(two.hub.commit(version: 3)?.patch == one.hub.commit(version: 3)?.patch)
    }

    @Test("a store takes in what another has appended before it could be told")
    func appendedMeanwhile() throws {
        let journal = try journal()
        let one = try Store.sample(journal: journal)
        for amount in 1...2 { try one.dispatch(Sample.Add(amount: amount)) }

        let two = try Store.sample(journal: DeafJournal(journal, isShared: true))
        catchUp(two)

        #expect(two.version == 2)
        #expect(two.state.count.value == 3)
    }

    @Test("a turn whose append is refused is computed anew behind the other writer's commits")
    func refused() throws {
        let journal = try journal()
        let one = try Store.sample(journal: journal)
        // This one hears of nothing before it appends.
        let deaf = DeafJournal(journal)
        let two = try Store.sample(journal: deaf)
        try one.dispatch(Sample.Put(id: 1, name: "a"))
        try one.dispatch(Sample.Add(amount: 7))

        let outcome = two.submitNow(.of(Sample.Both(id: 4)))

        #expect(outcome.receipt?.version == 3)
        #expect(two.state.count.value == 8)
        #expect(two.state.items.marked == [4])
        #expect(two.state.items.table[1]?.name == "a")
        #expect(journal.latestVersion == 3)
        #expect(deaf.refusals == 1)
    }

    @Test("what another store appends during an append that fails is taken in behind it, without a further word")
    func appendedDuringFailure() throws {
        let journal = try journal()
        let one = try Store.sample(journal: journal)
        let storeTwo = Mutex<Store<Sample.State>?>(nil)
        let hooked = HookedJournal(
            { _ in
                try one.dispatch(Sample.Add(amount: 7))
                // The store is told while its own turn is in flight.
                storeTwo.withLock(\.self)?.queue.sync {}
                throw FailedAppend()
            }, on: journal)
        let two = try Store.sample(journal: hooked)
        storeTwo.withLock { $0 = two }

        let outcome = two.submitNow(.of(Sample.Add(amount: 1)))
        catchUp(two)

        guard case .notRecorded = outcome else { Issue.record("\(outcome)"); return }
        #expect(two.version == 1)
        #expect(two.state.count.value == 7)
        storeTwo.withLock { $0 = nil }
    }

    private struct FailedAppend: Error {}

    @Test("many threads dispatch on both: every version is made once, and both end in the same state")
    func race() throws {
        let journal = try journal()
        let (one, two) = (try Store.sample(journal: journal), try Store.sample(journal: journal))
        let versions = Collection<Version>()

        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            let store = thread.isMultiple(of: 2) ? one : two
            for _ in 0..<100 {
                if let receipt = store.submitNow(.of(Sample.Add(amount: 1))).receipt { versions.add(receipt.version) }
            }
        }
        catchUp(one, two)
        one.drain()
        two.drain()

        #expect(versions.values.sorted() == Array(1...400))
        #expect(one.state.count.value == 400)
        #expect(two.state.count.value == 400)
        #expect(one.version == 400 && two.version == 400)
    }

    @Test("an idempotency key that the other store has seen is replayed here")
    func keys() throws {
        let journal = try journal()
        let (one, two) = (try Store.sample(journal: journal), try Store.sample(journal: journal))
        let first = one.submitNow(.of(Sample.Add(amount: 1), key: "k", body: "b"))
        catchUp(two)

        let second = two.submitNow(.of(Sample.Add(amount: 1), key: "k", body: "b"))

        #expect(second.receipt?.isReplay == true)
        #expect(second.receipt?.version == first.receipt?.version)
        #expect(two.state.count.value == 1)
    }

    @Test("a journal that fails leaves no trace in the state, and works again when it can")
    func unknown() throws {
        let journal = try journal()
        let store = try Store.sample(journal: journal)
        journal.fail("the disk is full")

        let refused = store.submitNow(.of(Sample.Add(amount: 1)))
        journal.probe()
        let taken = store.submitNow(.of(Sample.Add(amount: 2)))

        guard case .notRecorded = refused else { Issue.record("\(refused)"); return }
        #expect(taken.receipt?.version == 1)
        #expect(store.state.count.value == 2)
    }
}

/// A journal that does not say when others append, and counts what it refuses.
private final class DeafJournal: Journal {
    private let journal: MemoryJournal
    private let refused = Collection<Version>()
    let isShared: Bool

    init(_ journal: MemoryJournal, isShared: Bool = false) { (self.journal, self.isShared) = (journal, isShared) }

    var refusals: Int { refused.values.count }

    func append(_ commits: [Commit], after version: Version) -> AppendResult {
        let result = journal.append(commits, after: version)
        if case .refused = result { refused.add(version) }
        return result
    }
    func note(historyTime: Timestamp) {}
    func follow(_ appended: @escaping @Sendable () -> Void) {}
    func commits(after version: Version, through last: Version, limit: Int) -> [Commit] {
        journal.commits(after: version, through: last, limit: limit)
    }
    func commit(version: Version) throws -> Commit? { try journal.commit(version: version) }
    func commit(id: String, by subject: String?) -> Commit? { journal.commit(id: id, by: subject) }
    func state(at version: Version) throws -> SavedState? { try journal.state(at: version) }
    func oldestState() -> Version { journal.oldestState() }
    func offer(_ snapshot: Snapshot, saved: @escaping @Sendable (Version) -> Void) {}
    var failure: String? { journal.failure }
    var bytesCount: Int? { nil }
    var isOutcomeOpen: Bool { false }
    func probe() {}
    func close(_ snapshot: Snapshot) {}
}
