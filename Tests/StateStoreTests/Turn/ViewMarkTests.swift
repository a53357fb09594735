import Testing

@testable import StateJSON
@testable import StateStore

@Suite("The mark of a view")
struct ViewMarkTests {
    let memory = ReductionMarkTests.Memory()

    /// A domain whose view says what the page has while it is computed.
    struct Looking: Domain {
        struct State: StateType {
            var count = Plain.State()
            var items = Sample.Items()
        }

        let seen: @Sendable () -> Int

        var reducer: some Reducer<State> {
            Slice("count", \.count) { Plain() }
            Slice("items", \.items) {
                Entities("entities", \.table)
                Field("marked", \.marked)
                On(Sample.Put.self) { state, action in state.table[action.id] = Sample.Item(name: action.name) }
            }
            View("looking", reads: ["/count"]) { [seen] state in state.count.other * 10 + seen() }
        }
    }

    /// A store with a mark; its view's last digit says whether the page names it.
    func store(_ mark: ReductionMark, at version: Version = 0) throws -> Store<Looking.State> {
        // unchecked: the tests use the page on one thread.
        nonisolated(unsafe) let page = memory.page
        let domain = try CompiledDomain(
            Looking {
                let record = page.interrupted(in: 0)
                return record?.type == "view" && record?.name == "looking" ? 1 : 0
            })
        return UntypedStore(
            domain: domain, origin: .init(state: domain.initial, cursor: Cursor(.random(), version)),
            now: { Timestamp(milliseconds: 0) }, mark: mark
        ).typed(Looking.State.self)
    }

    func read(_ store: Store<Looking.State>) throws -> String? {
        text(try store.latest.encoded(.view("looking"))?.bytes)
    }

    let refused: [TransactionIdentity: ReductionMark.Refused] = [
        TransactionIdentity(view: "looking"): .init(name: "q4", version: 7)
    ]

    @Test("the page names a view while it is computed, and nothing behind it; a cached value needs no record")
    func named() throws {
        let store = try store(ReductionMark(memory.page, owner: memory))

        #expect(try read(store) == "1")
        #expect(memory.page.interrupted(in: 0) == nil)
        #expect(store.view("looking", as: Int.self) == 1)
    }

    @Test("a view that is set aside has a fault until what it reads changes")
    func setAside() throws {
        let released = Collection<TransactionIdentity>()
        let mark = ReductionMark(memory.page, owner: memory, released: { released.add($0) })
        mark.watch(refused)
        let store = try store(mark, at: 7)

        #expect(throws: ViewFault.self) { try read(store) }
        try store.dispatch(Sample.Put(id: 1, name: "n"))
        #expect(throws: ViewFault.self) { try read(store) }
        #expect(store.view("looking", as: Int.self) == nil)
        try store.dispatch(Plain.SetOther(other: 2))

        #expect(try read(store) == "21")
        #expect(released.values == [TransactionIdentity(view: "looking")])
    }

    @Test("a view that the operator lets pass has its value at once: the fault is not cached")
    func letPass() throws {
        let mark = ReductionMark(memory.page, owner: memory)
        mark.watch(refused)
        let store = try store(mark)
        #expect(throws: ViewFault.self) { try read(store) }

        mark.watch([:])

        #expect(try read(store) == "1")
    }

    @Test("a suspected view that is computed without harm is suspected no longer")
    func suspected() throws {
        let released = Collection<TransactionIdentity>()
        let mark = ReductionMark(memory.page, owner: memory, released: { released.add($0) })
        mark.watch([TransactionIdentity(view: "looking"): nil])
        let store = try store(mark)

        #expect(try read(store) == "1")

        #expect(released.values == [TransactionIdentity(view: "looking")])
    }

    @Test("a fork refuses what is set aside, names what it reduces, and its view is not the present's")
    func forks() throws {
        let mark = ReductionMark(memory.page, owner: memory)
        let action = Array(#"{"type":"other/set","payload":{"other":5}}"#.utf8)
        let bad = Array(#"{"type":"other/set","payload":{"other":6}}"#.utf8)
        mark.watch([TransactionIdentity(.content, ContentHash(bad)): .init(name: "q3")])
        let store = try store(mark)
        try store.dispatch(Plain.SetOther(other: 1))
        #expect(try read(store) == "11")

        let advance = try store.untyped.fork(
            store.latest.whole(), at: store.latest.cursor, through: 1,
            inserting: [action, bad].map {
                .init(after: store.latest.cursor, type: "other/set", id: nil, action: $0)
            },
            time: Timestamp(milliseconds: 0), hasRoom: { _ in true }
        ) { _ in [] }
        let fork = try #require(try advance { true })

        #expect(fork.refusals.map(\.code) == ["action-quarantined"])
        #expect(fork.appliedCount == 1)
        #expect(text(try fork.store.hub.latest.encoded(.view("looking"))?.bytes) == "51")
        // The version of the fork's newest state.
        try store.dispatch(Plain.SetOther(other: 3))
        #expect(try read(store) == "31")
        #expect(memory.page.interrupted(in: 0) == nil)
    }
}
