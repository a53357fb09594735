import Dispatch
import Synchronization
import Testing

@testable import StateServer
@testable import StateStore

@Suite("Portions of a bulk load")
struct PortionSizeTests {
    /// The sizes of twelve portions where a turn costs some microseconds, and each transaction some more.
    private func sizes(turn: Int, transaction: Int, loads: Int = 1) -> [Int] {
        var size = PortionSize()
        return (0..<12).map { _ in
            let count = size.count
            size.adapt(to: .microseconds(turn + transaction * count), of: count, among: loads)
            return count
        }
    }

    @Test(
        "a portion becomes as large as costs two milliseconds, down to a single transaction",
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

    @Test("a portion grows fourfold at most, and dear transactions behind cheap ones make it small at once")
    func changes() {
        #expect(sizes(turn: 0, transaction: 0).prefix(4) == [8, 32, 128, 512])
        var size = PortionSize()
        size.adapt(to: .microseconds(8), of: 8, among: 1)
        size.adapt(to: .microseconds(32), of: 32, among: 1)
        size.adapt(to: .milliseconds(128), of: 128, among: 1)
        #expect(size.count == 2)
    }
}

@Suite("Bulk loads", .timeLimit(.minutes(1)))
struct BulkLoadTests {
    private func store(mailboxMax: Int = 65_536) throws -> Store<Number.State> {
        Store(
            domain: try CompiledDomain(Number()), limits: StoreLimits(mailboxMax: mailboxMax),
            now: { Timestamp(milliseconds: 0) })
    }

    /// The outcomes of a load of additions of 1.
    private func outcomes(of count: Int, in store: Store<Number.State>) -> [Outcome] {
        let transactions = Array(repeating: Transaction([.init(Number.Add(amount: 1))]), count: count)
        let load = BulkLoad(transactions, store: store, among: BulkLoads())
        let outcomes = Mutex<[Outcome]>([])
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
        return outcomes.withLock { $0 }
    }

    @Test("a load of a store that stops ends, however long it is")
    func stopping() throws {
        let store = try store()
        store.drain()

        let outcomes = outcomes(of: 200_000, in: store)

        #expect(outcomes.count == 200_000)
        #expect(outcomes.allSatisfy { if case .draining = $0 { true } else { false } })
    }

    @Test("a load is committed whole by a mailbox that is much smaller", arguments: [1, 2, 10, 32])
    func smallMailbox(actionsMax: Int) throws {
        let store = try store(mailboxMax: actionsMax)

        let outcomes = outcomes(of: 500, in: store)

        #expect(outcomes.count { if case .committed = $0 { true } else { false } } == 500)
        #expect(store.version == 500)
    }
}
