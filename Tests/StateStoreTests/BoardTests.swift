import Dispatch
import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

/// A core whose turns are published on a board, one by one, on the thread of the test.
struct Published {
    private(set) var core: Core<Sample.State>
    let board: Board

    init(
        limits: StoreLimits = StoreLimits(), caps: WaiterCaps = WaiterCaps(waitersMax: 100, waitersPerClientMax: 100),
        journalOldest: Version? = nil
    ) throws {
        core = try Core.sample(limits: limits)
        board = Board(
            Snapshot(core.state, of: core.model, at: Cursor(core.epoch, 0)), catalogue: core.model.catalogue,
            limits: limits, caps: caps, journalOldest: journalOldest)
    }

    /// Commits actions in one turn.
    @discardableResult
    mutating func commit(_ actions: any Action...) -> [Wake] {
        let turn = core.run(actions.map { .of($0) })
        return board.publish(Snapshot(turn.state, of: core.model, at: Cursor(core.epoch, turn.version)), turn.commits)
    }

    func tag(_ selection: Selection) throws -> TagSet { .tags([try #require(try board.read(selection).encoded).tag]) }
}

extension Wake {
    var numbers: [Int] { tokens.map { Int($0.number) } }
    var reading: Reading? { if case .selection(let reading) = news { reading } else { nil } }
    var page: ChangesPage? { if case .changes(_, let page) = news { page } else { nil } }
}

extension Parking {
    var name: String { "\(self)" }
}

@Suite("Waiting for a selection")
struct SelectionWaitingTests {
    private static let count = Selection.pointer("/count")
    private static let items = Selection.pointer("/items/entities")

    @Test("a waiter is woken by other content, with the value and the cursor of one instant")
    func woken() throws {
        var published = try Published()
        let parking = try published.board.park(
            1, client: "a", at: Self.count, until: .otherThan(published.tag(Self.count)))

        let wakes = published.commit(Sample.Add(amount: 2))

        #expect(parking.name == "parked")
        #expect(wakes.map(\.numbers) == [[1]])
        #expect(text(wakes.first?.reading?.encoded?.bytes) == #"{"value":2}"#)
        #expect(wakes.first?.reading?.cursor.version == 1)
        #expect(published.board.waitersCount == 0)
    }

    @Test("a waiter on another selection stays parked")
    func elsewhere() throws {
        var published = try Published()
        _ = try published.board.park(1, client: "a", at: Self.count, until: .otherThan(published.tag(Self.count)))

        let wakes = published.commit(Sample.Put(id: 1, name: "a"))

        #expect(wakes.isEmpty)
        #expect(published.board.waitersCount == 1)
    }

    @Test("a commit that leaves the bytes as they are does not wake, though it touches the place")
    func unchanged() throws {
        var published = try Published()
        published.commit(Sample.Put(id: 1, name: "a"))
        _ = try published.board.park(1, client: "a", at: Self.count, until: .otherThan(published.tag(Self.count)))
        _ = try published.board.park(
            2, client: "a", at: .view("items.names"), until: .otherThan(published.tag(.view("items.names"))))

        let wakes = [published.commit(Sample.Add(amount: 0)), published.commit(Sample.Put(id: 1, name: "a"))]

        #expect(wakes.map(\.count) == [0, 0])
    }

    @Test("A that became B wakes, and so does B that became A again")
    func backAndForth() throws {
        var published = try Published()
        let tagOfA = try published.tag(Self.count)
        _ = try published.board.park(1, client: "a", at: Self.count, until: .otherThan(tagOfA))

        let toB = published.commit(Sample.Add(amount: 5))
        let parkedAtB = try published.board.park(
            1, client: "a", at: Self.count, until: .otherThan(published.tag(Self.count)))
        let parkedAtA = try published.board.park(2, client: "a", at: Self.count, until: .otherThan(tagOfA))
        let toA = published.commit(Sample.Add(amount: -5))

        #expect(toB.map(\.numbers) == [[1]])
        #expect(parkedAtB.name == "parked")
        #expect(parkedAtA.name == "ready")
        #expect(toA.map(\.numbers) == [[1]])
    }

    @Test("A, B, A within one turn is invisible")
    func coalesced() throws {
        var published = try Published()
        _ = try published.board.park(1, client: "a", at: Self.count, until: .otherThan(published.tag(Self.count)))

        let wakes = published.commit(Sample.Add(amount: 5), Sample.Add(amount: -5))

        #expect(wakes.isEmpty)
        #expect(published.board.head.cursor.version == 2)
    }

    @Test("a value that is gone wakes with nothing")
    func vanished() throws {
        var published = try Published()
        let item = Selection.pointer("/items/entities/1")
        published.commit(Sample.Put(id: 1, name: "a"))
        _ = try published.board.park(1, client: "a", at: item, until: .otherThan(published.tag(item)))
        _ = try published.board.park(2, client: "a", at: item, until: .otherThan(.any))

        let wakes = published.commit(Sample.Remove(id: 1))

        #expect(Set(wakes.flatMap(\.numbers)) == [1, 2])
        #expect(wakes.allSatisfy { $0.reading != nil && $0.reading?.encoded == nil })
    }

    @Test("where there is nothing, nobody waits", arguments: [TagSet.any, .tags(["x"])])
    func absent(tags: TagSet) throws {
        let published = try Published()

        let parking = try published.board.park(
            1, client: "a", at: .pointer("/items/entities/9"), until: .otherThan(tags))

        #expect(parking.name == "ready")
        #expect(published.board.waitersCount == 0)
    }

    @Test("those who wait for the same get one group with one encoding, in a change of a part or of the whole")
    func groups() throws {
        var published = try Published()
        for token in 1...3 {
            _ = try published.board.park(
                WaiterToken(token), client: "a", at: Self.items, until: .otherThan(published.tag(Self.items)))
        }
        _ = try published.board.park(4, client: "a", at: .pointer(""), until: .otherThan(published.tag(.pointer(""))))
        _ = try published.board.park(
            5, client: "a", at: .view("items.names"), until: .otherThan(published.tag(.view("items.names"))))

        let wakes = published.commit(Sample.Put(id: 1, name: "a"))

        #expect(Set(wakes.map { Set($0.numbers) }) == [[1, 2, 3], [4], [5]])
    }

    @Test("a waiter that leaves is not woken, and is given back as it was parked")
    func leave() throws {
        final class Named: Sendable {}
        let core = try Core.sample()
        let board = Board(
            Snapshot(core.state, of: core.model, at: Cursor(core.epoch, 0)), catalogue: core.model.catalogue)
        let waiter = Named()
        _ = try board.park(WaiterToken(1, waiter), client: "a", at: Self.count, until: .otherThan(.any))

        let left = board.leave(1)
        let again = board.leave(1)

        #expect(left?.token.waiter === waiter)
        #expect(left?.head.version == 0)
        #expect(again == nil)
        #expect(board.waitersCount == 0)
    }

    @Test("everybody leaves together, whatever they wait for")
    func leaveAll() throws {
        var published = try Published()
        _ = try published.board.park(1, client: "a", at: Self.count, until: .otherThan(.any))
        _ = published.board.park(2, client: "a", until: 7)
        _ = published.board.follow(ChangesQuery(since: 0), as: 3, client: "b")

        let left = published.board.leaveAll()

        #expect(Set(left.tokens) == [1, 2, 3])
        #expect(published.board.waitersCount == 0)
        let wakes = published.commit(Sample.Add(amount: 1))
        #expect(wakes.isEmpty)
    }

    @Test(
        "those who park while commits come are woken or told at once: nobody sleeps through a change", arguments: 0..<5)
    func race(round: Int) throws {
        let core = try Core.sample()
        let board = Board(
            Snapshot(core.state, of: core.model, at: Cursor(core.epoch, 0)), catalogue: core.model.catalogue)
        let woken = Collection<Int>()
        let store = try Store.sample(
            publish: {
                for wake in board.publish($0.snapshot, $0.commits) { for token in wake.numbers { woken.add(token) } }
            })
        let parked = Collection<(token: Int, tag: String)>()

        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for number in 0..<200 {
                guard thread > 0 else {
                    _ = store.submitNow(.of(Sample.Add(amount: 1)))
                    continue
                }
                let token = thread * 1000 + number
                guard let encoded = Self.value(of: Self.count, on: board) else { continue }
                if Self.isParked(token, until: encoded.tag, on: board) { parked.add((token, encoded.tag)) }
            }
        }

        let last = try #require(try board.read(Self.count).encoded).tag
        let sleeping = parked.values.filter { board.leave(WaiterToken($0.token)) != nil }
        #expect(sleeping.allSatisfy { $0.tag == last })
        #expect(woken.values.count + sleeping.count == parked.values.count)
        #expect(Set(woken.values).count == woken.values.count)
    }

    private static func value(of selection: Selection, on board: Board) -> Encoded? {
        do { return try board.read(selection).encoded } catch { return nil }
    }

    private static func isParked(_ token: Int, until tag: String, on board: Board) -> Bool {
        do {
            return try board.park(WaiterToken(token), client: "a", at: count, until: .otherThan(.tags([tag]))).name
                == "parked"
        } catch {
            return false
        }
    }
}

@Suite("Waiting for a version")
struct VersionWaitingTests {
    @Test(
        "a version that is there is ready, one that is not is waited for, and a later one will do", arguments: [1, 2])
    func version(commits: Int) throws {
        var published = try Published()
        published.commit(Sample.Add(amount: 1))

        let (ready, parked) = (
            published.board.park(1, client: "a", until: 1), published.board.park(2, client: "a", until: 2)
        )
        let wakes =
            commits == 1
            ? published.commit(Sample.Add(amount: 1)) : published.commit(Sample.Add(amount: 1), Sample.Add(amount: 1))

        #expect(ready.name == "ready")
        #expect(parked.name == "parked")
        #expect(wakes.map(\.numbers) == [[2]])
    }

    @Test("a version further on is still waited for")
    func further() throws {
        var published = try Published()
        _ = published.board.park(1, client: "a", until: 3)

        let wakes = [
            published.commit(Sample.Add(amount: 1)), published.commit(Sample.Add(amount: 1)),
            published.commit(Sample.Add(amount: 1)),
        ]

        #expect(wakes.map { $0.flatMap(\.numbers) } == [[], [], [1]])
    }
}

@Suite("Caps of waiters")
struct WaiterCapsTests {
    @Test(
        "the share of a client, the share of all, and a place that becomes free",
        arguments: ["selection", "version", "changes"])
    func caps(kind: String) throws {
        var published = try Published(caps: WaiterCaps(waitersMax: 3, waitersPerClientMax: 2))
        func park(_ token: Int, _ client: String) throws -> String {
            switch kind {
            case "selection":
                try published.board.park(
                    WaiterToken(token), client: client, at: .pointer("/count"), until: .otherThan(.any)
                ).name
            case "version": published.board.park(WaiterToken(token), client: client, until: 9).name
            default:
                switch published.board.follow(
                    ChangesQuery(since: 0, filter: ChangesFilter(types: ["x"])), as: WaiterToken(token), client: client)
                {
                case .nothing(_, let parking): parking.name
                case let other: "\(other)"
                }
            }
        }

        let first = [
            try park(1, "a"), try park(2, "a"), try park(3, "a"), try park(4, "b"), try park(5, "b"), try park(6, "c"),
        ]
        let left = published.board.leave(1)
        let second = [try park(7, "a"), try park(8, "c")]

        #expect(
            first == [
                "parked", "parked", "refused(StateStore.Parking.Share.client)", "parked",
                "refused(StateStore.Parking.Share.all)", "refused(StateStore.Parking.Share.all)",
            ])
        #expect(left != nil)
        #expect(second == ["parked", "refused(StateStore.Parking.Share.all)"])
        published.commit(Sample.Add(amount: 1))
    }

    @Test("who is woken leaves a place, and one place only")
    func woken() throws {
        var published = try Published(caps: WaiterCaps(waitersMax: 9, waitersPerClientMax: 2))
        _ = published.board.follow(ChangesQuery(since: 0), as: 1, client: "a")
        _ = published.board.park(2, client: "a", until: 9)

        published.commit(Sample.Add(amount: 1))
        let parkings = [3, 4].map { published.board.park(WaiterToken($0), client: "a", until: 9).name }

        #expect(parkings == ["parked", "refused(StateStore.Parking.Share.client)"])
        #expect(published.board.waitersCount == 2)
    }
}
