import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("The mark of a reduction")
struct ReductionMarkTests {
    /// Memory for a page.
    final class Memory {
        let address = UnsafeMutableRawPointer.allocate(byteCount: MarkPage.size, alignment: 8)
        var page: MarkPage { MarkPage(address) }

        init(boot: UInt64 = 1) {
            address.initializeMemory(as: UInt8.self, repeating: 7, count: MarkPage.size)
            page.prepare(boot: ContentHash(high: boot, low: 2))
        }

        deinit { address.deallocate() }
    }

    let memory = Memory()

    /// A core whose middleware notes what the page says while an action is reduced.
    func core(
        _ mark: ReductionMark? = nil, _ seen: @escaping @Sendable (MarkPage.Record?) -> Void = { _ in }
    ) throws -> Core {
        let domain = try CompiledDomain(Sample())
        // unchecked: the turn calls the middleware on this thread.
        nonisolated(unsafe) let page = memory.page
        return Core(
            domain: domain, epoch: .random(),
            middleware: [
                MiddlewareStep { action, _, next throws(Rejection) in
                    seen(page.interrupted(in: 0))
                    try next(action)
                }
            ], limits: StoreLimits(), state: domain.initial, version: 0, keys: [],
            mark: mark ?? ReductionMark(page, owner: memory))
    }

    func transaction(_ amount: Int = 1, id: String? = nil, key: String? = nil, body: String? = nil) -> Transaction {
        Transaction(
            [.init(Sample.Add(amount: amount), id: id)], idempotency: key.map { (IdempotencyKey(recorded: $0), "f") },
            contentHash: body.map { ContentHash(Array($0.utf8)) })
    }

    @Test("the page names each transaction while it is reduced, and none after the turn")
    func names() throws {
        let seen = Mutex<[MarkPage.Record?]>([])
        let core = try core { record in seen.withLock { $0.append(record) } }

        _ = core.turn(
            [transaction(id: "mine", key: "ci\0key\n3"), transaction(id: "other")], at: Timestamp(milliseconds: 0))

        let records = seen.withLock { $0 }
        #expect(records.map { $0?.name } == ["ci\0key\n3", "other"])
        #expect(records.map { $0?.type } == ["count/add", "count/add"])
        #expect(records.map { $0?.identity.kind } == [.key, .id])
        #expect(memory.page.interrupted(in: 0) == nil)
    }

    @Test("equal identities are of the same key, the same IDs and subject, or the same bytes")
    func identity() throws {
        func identity(_ transaction: Transaction) -> TransactionIdentity? { TransactionIdentity(transaction) }
        let ofAnother = Transaction([.init(Sample.Add(amount: 1), id: "a")], subject: "ci")
        let batch = Transaction([.init(Sample.Add(amount: 1), id: "a"), .init(Sample.Add(amount: 1))], form: .batch)

        let all = [
            transaction(key: "a"), transaction(id: "a"), ofAnother, batch, transaction(body: "a"), transaction(),
            transaction(2),
        ].map(identity)

        #expect(Set(all).count == all.count)
        #expect(identity(transaction(5, id: "b", key: "a")) == identity(transaction(key: "a")))
        #expect(identity(transaction(5, id: "a", body: "x")) == identity(transaction(id: "a")))
        #expect(identity(transaction(5, body: "a")) == identity(transaction(body: "a")))
        #expect(identity(transaction(2)) == identity(transaction(2)))
    }

    @Test(
        "a transaction that is set aside is refused with 422's kind and the name for the operator, and the others are not"
    )
    func refused() throws {
        var core = try core()
        let mark = ReductionMark(memory.page, owner: memory)
        let identity = try #require(TransactionIdentity(transaction(key: "bad")))
        mark.watch([identity: .init(name: "q1")])
        let domain = try CompiledDomain(Sample())
        core = Core(
            domain: domain, epoch: .random(), middleware: [], limits: StoreLimits(), state: domain.initial, version: 0,
            keys: [], mark: mark)

        let turn = core.turn([transaction(key: "bad"), transaction(key: "good")], at: Timestamp(milliseconds: 0))

        guard case .rejected(let rejection, index: 0) = turn.outcomes[0], case .committed = turn.outcomes[1] else {
            Issue.record("\(turn.outcomes)")
            return
        }
        #expect(rejection.code == "action-quarantined")
        #expect(rejection.kind == .invalid)
        #expect(rejection.detail.contains("q1"))
        #expect(turn.commits.count == 1)
    }

    @Test("a suspected action that is reduced without harm is none any more; one that a precondition refuses still is")
    func suspected() throws {
        let released = Collection<TransactionIdentity>()
        let mark = ReductionMark(memory.page, owner: memory, released: { released.add($0) })
        let (a, b) = (try record("a").identity, try record("b").identity)
        mark.watch([a: nil, b: nil])
        let core = try core(mark)
        let conditional = Transaction(
            [.init(Sample.Add(amount: 1), id: "a")], expectations: [.init("/count/value", .value(.string("never")))])

        _ = core.turn([conditional, transaction(id: "c")], at: Timestamp(milliseconds: 0))
        #expect(released.values.isEmpty)

        for _ in 0..<2 { _ = core.turn([transaction(id: "b")], at: Timestamp(milliseconds: 0)) }
        #expect(released.values == [b])
    }

    @Test("a long type or key has its beginning in the page, and a new boot of the machine empties the page")
    func boot() throws {
        let mark = ReductionMark(memory.page, owner: memory)
        var record = try record("a")
        (record.type, record.name) = (String(repeating: "t", count: 300), String(repeating: "n", count: 300))
        _ = mark.begin(record)
        memory.page.prepare(boot: ContentHash(high: 1, low: 2))
        #expect(memory.page.interrupted(in: 0)?.type == String(repeating: "t", count: 128))
        #expect(memory.page.interrupted(in: 0)?.name == String(repeating: "n", count: 224))

        memory.page.prepare(boot: ContentHash(high: 9, low: 2))
        #expect(memory.page.interrupted(in: 0) == nil)
    }

    private func record(_ id: String) throws -> MarkPage.Record { try #require(MarkPage.Record(transaction(id: id))) }

    @Test("two that compute at the same time have a record each, and a place that is free again has the next one")
    func slots() throws {
        let first = ReductionMark(memory.page, owner: memory)
        let second = first.another()
        func names() -> [String?] { (0..<3).map { memory.page.interrupted(in: $0)?.name } }

        _ = first.begin(try record("a"))
        _ = second.begin(try record("b"))
        #expect(names() == ["a", "b", nil])
        _ = first.begin(try record("c"))
        #expect(names() == ["c", "b", nil])
        first.end()
        #expect(names() == [nil, "b", nil])
        let third = second.another()
        _ = third.begin(try record("d"))
        #expect(names() == ["d", "b", nil])
    }

    @Test("where more threads compute than the page has room for, the next ones compute without a record")
    func full() throws {
        let mark = ReductionMark(memory.page, owner: memory)
        let marks = (0...MarkPage.slotsMax).map { _ in mark.another() }

        let rejections = try marks.enumerated().map { $1.begin(try record("\($0)")) }

        #expect(rejections.allSatisfy { $0 == nil })
        let names = (0..<MarkPage.slotsMax).map { memory.page.interrupted(in: $0)?.name }
        #expect(names == (0..<MarkPage.slotsMax).map(String.init))
    }
}
