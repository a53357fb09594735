import Dispatch
import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Waiting for a selection")
struct SelectionWaitingTests {
    private static let count = Selection.pointer("/count")
    private static let items = Selection.pointer("/items/entities")

    @Test("waiters for one selection get one delivery with one encoding, for a change of a part or of the whole")
    func groups() throws {
        var published = try Published()
        for token in 1...3 {
            _ = try published.watches.park(
                token, client: "a", at: Self.items, until: .otherThan(published.tag(Self.items)))
        }
        _ = try published.watches.park(4, client: "a", at: .pointer(""), until: .otherThan(published.tag(.pointer(""))))
        _ = try published.watches.park(
            5, client: "a", at: .view("items.names"), until: .otherThan(published.tag(.view("items.names"))))

        let wakes = published.commit(Sample.Put(id: 1, name: "a"))

        #expect(Set(wakes.map { Set($0.numbers) }) == [[1, 2, 3], [4], [5]])
    }

    @Test("a waiter that ends is not answered later, and its delivery has the request that it registered")
    func leave() throws {
        var published = try Published()
        _ = try published.watches.park(1, client: "a", at: Self.count, until: .otherThan(.any))

        let left = published.watches.leave(1)
        let again = published.watches.leave(1)
        let wakes = published.commit(Sample.Add(amount: 1))

        #expect(left?.numbers == [1])
        #expect(left?.action == .answerTimedOut)
        #expect(again == nil)
        #expect(wakes.isEmpty)
        #expect(published.hub.watchesCount == 0)
    }

    @Test("draining ends the watches of every subject")
    func drain() throws {
        var published = try Published()
        _ = try published.watches.park(1, client: "a", at: Self.count, until: .otherThan(.any))
        _ = published.watches.park(2, client: "a", until: 7)
        _ = published.watches.follow(ChangesQuery(since: 0), as: 3, client: "b")

        published.hub.drain(published.hub.watchIDs)

        let left = published.watches.log.takeAll()
        #expect(left.flatMap(\.numbers) == [1, 2, 3])
        #expect(left.allSatisfy { $0.action == .answerTimedOut })
        #expect(published.hub.watchesCount == 0)
        #expect(published.commit(Sample.Add(amount: 1)).isEmpty)
    }

    @Test(
        "a waiter that parks during commits is answered at once or by a delivery, and misses no change",
        arguments: 0..<5)
    func race(round: Int) throws {
        let store = try Store.sample()
        let watches = HubDriver(hub: store.hub)
        let parked = Collection<(token: Int, tag: String)>()

        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for number in 0..<200 {
                guard thread > 0 else {
                    _ = store.submitNow(.of(Sample.Add(amount: 1)))
                    continue
                }
                let token = thread * 1000 + number
                guard let encoded = Self.value(of: Self.count, in: store.hub) else { continue }
                if Self.isParked(token, until: encoded.tag, watches) { parked.add((token, encoded.tag)) }
            }
        }

        let last = try #require(try store.hub.read(Self.count).encoded).tag
        // Passes run after the turns: they have caught up when no watch waits for older content.
        let known = Dictionary(uniqueKeysWithValues: parked.values)
        var woken: [Int] = []
        repeat {
            woken += watches.log.takeAll().flatMap(\.numbers)
        } while woken.count < known.count { $0.value != last }
        let sleeping = known.filter { watches.leave($0.key) != nil }
        woken += watches.log.takeAll().flatMap(\.numbers)
        #expect(sleeping.values.allSatisfy { $0 == last })
        #expect(woken.count + sleeping.count == known.count)
        #expect(Set(woken).count == woken.count)
    }

    private static func value(of selection: Selection, in hub: WatchHub) -> Encoded? {
        do { return try hub.read(selection).encoded } catch { return nil }
    }

    private static func isParked(_ token: Int, until tag: String, _ watches: HubDriver) -> Bool {
        do {
            return try watches.park(token, client: "a", at: count, until: .otherThan(.tags([tag]))).name == "parked"
        } catch {
            return false
        }
    }
}

@Suite("Caps of waiters")
struct WaiterCapsTests {
    @Test("the values that watches wait for have a budget, in all and for each client, until the watches end")
    func values() throws {
        let published = try Published(watchLimits: WatchLimits(watchesMax: 100, valuesBytesMax: 4000))
        func park(_ token: Int, _ client: String) throws -> String {
            try published.watches.park(
                token, client: client, at: .pointer("/count"),
                until: .equalTo(.string(String(repeating: "x", count: 852)))
            ).name
        }

        let names = [
            try park(1, "a"), try park(2, "a"), try park(3, "a"), try park(4, "b"), try park(5, "b"), try park(6, "c"),
        ]
        _ = published.watches.leave(1)
        let later = [try park(7, "a"), try park(8, "c")]

        let (ofAll, ofClient) = ("refused(StateStore.WatchRefusal.all)", "refused(StateStore.WatchRefusal.client)")
        #expect(names == ["parked", "parked", ofClient, "parked", "parked", ofAll])
        #expect(later == ["parked", ofAll])
    }

    @Test(
        "watches are refused above a client's limit and the common limit, until one ends",
        arguments: ["selection", "version", "changes"])
    func caps(kind: String) throws {
        var published = try Published(watchLimits: WatchLimits(watchesMax: 3, watchesPerClientMax: 2))
        func park(_ token: Int, _ client: String) throws -> String {
            switch kind {
            case "selection":
                try published.watches.park(
                    token, client: client, at: .pointer("/count"), until: .otherThan(.any)
                ).name
            case "version": published.watches.park(token, client: client, until: 9).name
            default:
                published.watches.follow(
                    ChangesQuery(since: 0, filter: ChangesFilter(types: ["x"])), as: token, client: client
                ).1.name
            }
        }

        let first = [
            try park(1, "a"), try park(2, "a"), try park(3, "a"), try park(4, "b"), try park(5, "b"), try park(6, "c"),
        ]
        let left = published.watches.leave(1)
        let second = [try park(7, "a"), try park(8, "c")]

        #expect(
            first == [
                "parked", "parked", "refused(StateStore.WatchRefusal.client)", "parked",
                "refused(StateStore.WatchRefusal.all)", "refused(StateStore.WatchRefusal.all)",
            ])
        #expect(left != nil)
        #expect(second == ["parked", "refused(StateStore.WatchRefusal.all)"])
        published.commit(Sample.Add(amount: 1))
    }

    @Test("an answered waiter makes room for exactly one other")
    func woken() throws {
        var published = try Published(watchLimits: WatchLimits(watchesMax: 9, watchesPerClientMax: 2))
        _ = published.watches.follow(ChangesQuery(since: 0), as: 1, client: "a")
        _ = published.watches.park(2, client: "a", until: 9)

        published.commit(Sample.Add(amount: 1))
        let parkings = [3, 4].map { published.watches.park($0, client: "a", until: 9).name }

        #expect(parkings == ["parked", "refused(StateStore.WatchRefusal.client)"])
        #expect(published.hub.watchesCount == 2)
    }
}
