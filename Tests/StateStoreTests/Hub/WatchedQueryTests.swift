import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

/// The members with names that are at least a number, as a query that counts what is asked of it.
private final class Least: MembersQuery, Sendable {
    /// unchecked: a test has one thread.
    final class Kept: KeptMembers, @unchecked Sendable {
        let query: Least
        var names: Set<Int>
        var bytesCount: Int { names.count * query.memberBytes }
        let answerCountMax = 100

        init(query: Least, names: Set<Int>) { (self.query, self.names) = (query, names) }

        func update(_ members: [ChangedMember], stepsMax: Int?) throws -> Bool {
            query.updates.add(members.count, ordering: .relaxed)
            let before = names
            for member in members {
                guard case .number(let number) = member.order, number >= query.least else { continue }
                if member.value == nil { names.remove(number) } else { names.insert(number) }
            }
            return names != before
        }

        func answer(from before: [UInt8], _ value: (String) throws -> [UInt8]?) throws -> [UInt8] {
            for name in names where try value("\(name)") == nil { throw MemberIsGone() }
            return query.text(names)
        }
    }

    let least: Int
    let memberBytes: Int
    let evaluations = Atomic(0)
    let updates = Atomic(0)

    let padding: Int

    init(_ least: Int, memberBytes: Int = 1, padding: Int = 0) {
        (self.least, self.memberBytes, self.padding) = (least, memberBytes, padding)
    }

    func text(_ names: Set<Int>) -> [UInt8] {
        Array("\(names.sorted())".utf8) + [UInt8](repeating: 0x20, count: padding)
    }

    var identity: String { "\(least)" }
    var bytesCount: Int { 100 }

    private func names(_ texts: MemberTexts) throws -> Set<Int>? {
        evaluations.add(1, ordering: .relaxed)
        var names: Set<Int>?
        try texts { json throws in
            guard case .object(let object) = try JSONValue(parsing: json) else { throw MemberIsGone() }
            names = (names ?? []).union(object.members.compactMap { Int($0.key) }.filter { $0 >= least })
        }
        return names
    }

    func answered(to texts: MemberTexts, _ order: MemberOrder?) throws -> [UInt8]? {
        try names(texts).map(text)
    }

    func kept(of texts: MemberTexts, _ order: @escaping MemberOrder) throws -> (any KeptMembers)? {
        try names(texts).map { Kept(query: self, names: $0) }
    }

    func selection(at place: JSONPointer = "/items/entities") -> Selection {
        .query(SelectionQuery(self), of: .pointer(place))
    }
}

@Suite("Watched queries")
struct WatchedQueryTests {
    private func watch(
        _ published: Published, _ number: Int, _ query: Least, client: String = "a"
    ) throws -> String {
        let reading = try published.hub.read(query.selection(), keeps: true)
        return try published.watches.park(
            number, client: client, at: query.selection(),
            until: .otherThan(.tags([try #require(reading.encoded).tag]))
        ).name
    }

    @Test("an answer that a reader has found first still wakes the watches")
    func readFirst() throws {
        let core = try Core.sample()
        let queue = ManualQueue()
        let watches = HubDriver(
            hub: WatchHub(
                core.latest, catalogue: core.domain.catalogue, limits: StoreLimits(), watchLimits: WatchLimits(),
                journalOldest: nil, queues: queue.queues, now: { Instant(nanoseconds: 0) }))
        func publish(_ action: any Action) {
            let turn = core.run([.of(action)])
            watches.hub.publish(turn.latest, turn.commits)
        }
        let query = Least(3)
        let tag = try #require(try watches.hub.read(query.selection(), keeps: true).encoded?.tag)
        #expect(
            try watches.park(1, client: "a", at: query.selection(), until: .otherThan(.tags([tag]))).name == "parked")
        queue.runAll()

        publish(Sample.Put(id: 4, name: "a"))
        #expect(text(try watches.hub.read(query.selection()).encoded?.bytes) == "[4]")
        publish(Sample.Put(id: 1, name: "a"))
        queue.runAll()

        #expect(watches.log.takeAll().map { text($0.reading?.encoded?.bytes) } == ["[4]"])
    }

    @Test("a place that is replaced is looked at anew, and its end ends the wait", arguments: [true, false])
    func places(isThere: Bool) throws {
        var published = try Published()
        published.commit(Sample.Put(id: 5, name: "a"))
        let query = Least(0)
        let selection = query.selection(at: isThere ? "/items" : "/items/entities/5")
        let reading = try published.hub.read(selection, keeps: true)
        _ = try published.watches.park(
            1, client: "a", at: selection, until: .otherThan(.tags([try #require(reading.encoded).tag])))

        let deliveries = published.commit(Sample.Remove(id: 5))

        #expect(deliveries.map { $0.reading?.encoded == nil } == (isThere ? [] : [true]))
    }

    @Test("there is a limit for different queries, and equal ones count once")
    func limit() throws {
        let published = try Published(
            watchLimits: WatchLimits(watchesMax: 100, watchesPerClientMax: 100, queriesMax: 2))

        let names = try [(1, 1), (2, 2), (3, 3), (4, 2)].map { try watch(published, $0, Least($1)) }
        _ = published.watches.leave(1)

        #expect(names == ["parked", "parked", "refused(StateStore.WatchRefusal.queries)", "parked"])
        #expect(try watch(published, 5, Least(3)) == "parked")
    }

    @Test("one client has one more than half of the different queries, and another one the rest")
    func share() throws {
        let published = try Published(
            watchLimits: WatchLimits(watchesMax: 100, watchesPerClientMax: 100, queriesMax: 4))

        #expect(try (1...3).map { try watch(published, $0, Least($0)) } == ["parked", "parked", "parked"])
        #expect(try watch(published, 4, Least(4)) == "refused(StateStore.WatchRefusal.client)")
        #expect(try watch(published, 5, Least(3)) == "parked")
        #expect(try watch(published, 6, Least(4), client: "b") == "parked")
        _ = published.watches.leave(6)
        _ = published.watches.leave(1)
        #expect(try watch(published, 7, Least(5)) == "parked")
    }

    @Test("large answers share one room, and those who watch wake all the same")
    func large() throws {
        var published = try Published(
            watchLimits: WatchLimits(watchesMax: 100, watchesPerClientMax: 100, queriesBytesMax: 800_000))
        published.commit(Sample.Put(id: 100, name: "a"))
        let queries = (0..<8).map { Least($0, padding: 100_000) }
        for (number, query) in queries.enumerated() { #expect(try watch(published, number, query) == "parked") }

        for id in 101...103 {
            let woken = published.commit(Sample.Put(id: id, name: "a"))
            #expect(woken.flatMap(\.numbers).sorted() == Array(0..<8))
            for delivery in woken { #expect(delivery.reading?.encoded?.bytes.count ?? 0 > 100_000) }
            let keptCount = try queries.count { try published.hub.readQuickly($0.selection()) != nil }
            #expect((1...4).contains(keptCount))
            for (number, query) in queries.enumerated() { #expect(try watch(published, number, query) == "parked") }
        }
        // One that is the same for its watches wakes nobody, although its bytes are not there.
        #expect(published.commit(Sample.Add(amount: 1)).isEmpty)
    }

    @Test("what is kept for a client counts in its share, until nothing is kept; without room a watch is refused")
    func memoryShare() throws {
        let counts = Mutex<[String: Int]>([:])
        var limits = WatchLimits(watchesMax: 100, watchesPerClientMax: 100)
        limits.memory.count = { more, client in
            counts.withLock { counts in
                guard counts[client, default: 0] + more <= 400_000 else { return .client }
                counts[client, default: 0] += more
                return nil
            }
        }
        var published = try Published(watchLimits: limits)
        published.commit(Sample.Put(id: 1, name: "a"))
        func held() -> Int { counts.withLock { $0["a", default: 0] } }
        for number in 0..<4 {
            #expect(try watch(published, number, Least(number - 9, padding: 50_000)) == "parked")
        }
        #expect(held() > 200_000)
        published.commit(Sample.Put(id: 2, name: "a"))
        #expect(held() == 0)
        for number in 0..<2 {
            #expect(try watch(published, number, Least(number - 9, padding: 50_000)) == "parked")
        }
        #expect((100_001..<110_000).contains(held()))

        counts.withLock { $0["a"] = 380_000 }
        #expect(
            try watch(published, 7, Least(7))
                == "refused(StateStore.WatchRefusal.memory(StateStore.ClientMemory.Refusal.client))")
        #expect(try watch(published, 7, Least(7), client: "b") == "parked")
    }

    @Test("a query that would keep more than there is memory for is evaluated anew")
    func budget() throws {
        var published = try Published(
            watchLimits: WatchLimits(watchesMax: 100, watchesPerClientMax: 100, queriesBytesMax: 100))
        published.commit(Sample.Put(id: 1, name: "a"))
        let (small, large) = (Least(0, memberBytes: 40), Least(1, memberBytes: 70))
        #expect(try watch(published, 1, small) == "parked")
        #expect(try watch(published, 2, large) == "parked")

        let woken = published.commit(Sample.Put(id: 2, name: "a"))

        #expect(woken.map(\.numbers).sorted { $0[0] < $1[0] } == [[1], [2]])
        #expect(small.evaluations.load(ordering: .relaxed) == 1)
        #expect(large.evaluations.load(ordering: .relaxed) == 2)
    }
}
