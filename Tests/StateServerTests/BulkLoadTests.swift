import Dispatch
import MicroHTTP
import Synchronization
import Testing

@testable import StateServer
@testable import StateStore

@Suite("Bulk loads", .timeLimit(.minutes(5)))
struct BulkLoadTests {
    private let memory = MemoryBudget(bytesMax: 256 << 20)

    private func store(mailboxMax: Int = 65_536) throws -> UntypedStore {
        UntypedStore(
            domain: try CompiledDomain(Number()), limits: StoreLimits(mailboxMax: mailboxMax),
            now: { Timestamp(milliseconds: 0) })
    }

    /// The outcomes of a load of additions of 1.
    private func outcomes(
        of count: Int, in store: UntypedStore, valuesBytesMax: Int = LoadOutcomes.valuesBytesMax,
        isRepresented: Bool = false,
        standing: @escaping @Sendable () -> BulkLoad.Standing = { .wanted }
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
