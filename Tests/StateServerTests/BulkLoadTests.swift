import Dispatch
import MicroHTTP
import Synchronization
import Testing

@testable import StateServer
@testable import StateStore

@Suite("Batches of a bulk load")
struct BatchSizeTests {
    /// The sizes of twelve batchs where a turn costs some microseconds, and each transaction some more.
    private func sizes(turn: Int, transaction: Int, loads: Int = 1) -> [Int] {
        var size = BatchSize()
        return (0..<12).map { _ in
            let count = size.count
            size.adapt(to: .microseconds(turn + transaction * count), of: count, among: loads)
            return count
        }
    }

    @Test(
        "a batch becomes as large as costs two milliseconds, down to a single transaction",
        arguments: [(0, 1024), (1, 1024), (10, 200), (90, 22), (1000, 2), (3000, 1), (100_000, 1)])
    func fitting(cost: Int, count: Int) {
        let sizes = sizes(turn: 0, transaction: cost)
        #expect(sizes.first == 8)
        #expect(sizes.last == count, "\(sizes)")
    }

    @Test("several loads share the time")
    func shared() { #expect(sizes(turn: 0, transaction: 10, loads: 4).last == 50) }

    @Test("a turn that is dear by itself takes as many transactions as cost as much again")
    func fixed() {
        #expect(sizes(turn: 13_000, transaction: 0).suffix(3).allSatisfy { $0 >= 512 })
        #expect(sizes(turn: 13_000, transaction: 100).contains(130))
        #expect(sizes(turn: 500, transaction: 100).last == 15)
    }

    @Test("a batch grows fourfold at most, and dear transactions behind cheap ones make it small at once")
    func changes() {
        #expect(sizes(turn: 0, transaction: 0).prefix(4) == [8, 32, 128, 512])
        var size = BatchSize()
        size.adapt(to: .microseconds(8), of: 8, among: 1)
        size.adapt(to: .microseconds(32), of: 32, among: 1)
        size.adapt(to: .milliseconds(128), of: 128, among: 1)
        #expect(size.count == 2)
    }
}

@Suite("Bulk loads", .timeLimit(.minutes(5)))
struct BulkLoadTests {
    private let memory = MemoryBudget(bytesMax: 256 << 20)

    private func store(mailboxMax: Int = 65_536) throws -> Store<Number.State> {
        Store(
            domain: try CompiledDomain(Number()), limits: StoreLimits(mailboxMax: mailboxMax),
            now: { Timestamp(milliseconds: 0) })
    }

    /// The outcomes of a load of additions of 1.
    private func outcomes(
        of count: Int, in store: Store<Number.State>, valuesBytesMax: Int = LoadOutcomes.valuesBytesMax,
        isRepresented: Bool = false, standing: @escaping @Sendable () -> DryRuns.Standing = { .wanted }
    ) throws -> LoadOutcomes {
        let transaction = Transaction([.init(Number.Add(amount: 1))], wantsRepresentation: isRepresented)
        let load = BulkLoad(
            Array(repeating: transaction, count: count), of: "a",
            into: try #require(LoadOutcomes(of: count, valuesBytesMax: valuesBytesMax, in: memory)), store: store,
            among: BulkLoads(), standing: standing)
        let outcomes = Mutex<LoadOutcomes?>(nil)
        let done = DispatchSemaphore(value: 0)
        // The thread of a queue has a stack of half a megabyte.
        DispatchQueue(label: "test").async {
            load.run { all in
                outcomes.withLock { $0 = all }
                done.signal()
            }
            store.flush()
        }
        done.wait()
        return try #require(outcomes.withLock { $0 })
    }

    @Test("a load of a store that stops ends, however long it is")
    func stopping() throws {
        let store = try store()
        store.drain()

        let outcomes = try outcomes(of: 200_000, in: store).all

        #expect(outcomes.count == 200_000)
        #expect(outcomes.allSatisfy { if case .draining = $0 { true } else { false } })
    }

    @Test("a load is committed whole by a mailbox that is much smaller", arguments: [1, 2, 10, 32])
    func smallMailbox(actionsMax: Int) throws {
        let store = try store(mailboxMax: actionsMax)

        let outcomes = try outcomes(of: 500, in: store).all

        #expect(outcomes.count(where: \.isCommitted) == 500)
        #expect(store.version == 500)
    }

    @Test("a load whose client has gone ends behind a batch, and the other lines have no outcome")
    func abandoned() throws {
        let store = try store()

        let outcomes = try outcomes(of: 5000, in: store) { store.version >= 100 ? .abandoned : .wanted }.all

        #expect((100..<5000).contains(outcomes.count))
        #expect(outcomes.count(where: \.isCommitted) == outcomes.count)
        #expect(store.version == Version(outcomes.count))
    }

    @Test("a load whose token ends goes no further than its batch, and the other lines are refused")
    func ended() throws {
        let store = try store()

        let outcomes = try outcomes(of: 5000, in: store) {
            store.version >= 100 ? .refused(.rejected(Rejection("token-revoked", "it has ended"), index: 0)) : .wanted
        }.all

        let committedCount = outcomes.count(where: \.isCommitted)
        #expect(outcomes.count == 5000 && (100..<5000).contains(committedCount))
        #expect(store.version == Version(committedCount))
        #expect(
            outcomes[committedCount...].allSatisfy {
                if case .rejected(let rejection, _) = $0 { rejection.code == "token-revoked" } else { false }
            })
    }

    @Test("behind the bound of an answer the lines are committed without their values")
    func values() throws {
        let store = try store()

        let outcomes = try outcomes(of: 400, in: store, valuesBytesMax: 5000, isRepresented: true)

        let bytes = outcomes.all.map(\.valuesBytesCount)
        #expect(store.version == 400)
        #expect(outcomes.isFull)
        #expect((4900...5000).contains(bytes.reduce(0, +)))
        #expect(bytes.drop { $0 > 0 }.allSatisfy { $0 == 0 })
    }

    @Test("the outcomes of a load count in the memory budget, and a load without room does not begin")
    func budget() throws {
        let memory = MemoryBudget(bytesMax: 100_000)
        var outcomes = try #require(LoadOutcomes(of: 100, in: memory))
        #expect(LoadOutcomes(of: 200, in: memory) == nil)
        let before = memory.bytes

        outcomes.append(.wouldCommit(isChange: true, patch: Array(repeating: 32, count: 20_000)))
        let during = memory.bytes
        outcomes.append(.wouldCommit(isChange: true, patch: Array(repeating: 32, count: 20_000)))
        outcomes.append(.wouldCommit(isChange: true, patch: Array(repeating: 32, count: 20)))

        #expect(during == before + 40_000)
        #expect(outcomes.all.map(\.valuesBytesCount) == [20_000, 0, 0])
        outcomes.release()
        #expect(memory.bytes == 0)
    }
}

extension Outcome {
    fileprivate var isCommitted: Bool { if case .committed = self { true } else { false } }
}
