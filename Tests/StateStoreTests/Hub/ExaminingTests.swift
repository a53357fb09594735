import Dispatch
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Commits far behind", .timeLimit(.minutes(5)))
struct ExaminingTests {
    private static let items = ChangesFilter(path: "/items")

    /// A hub with so many commits of one pointer and one action each.
    private func published(_ count: Int) throws -> Published {
        var published = try Published()
        _ = published.commit(turn: (0..<count).map { _ in Sample.Add(amount: 1) })
        return published
    }

    private func prepare(_ number: Int, _ filter: ChangesFilter, in hub: WatchHub, _ log: DeliveryLog) -> WatchRefusal?
    {
        hub.register(
            Watch(
                Watch.ID(number), client: "", receiver: log, request: DeliveryLog.Request(number),
                subject: .changes(ChangesQuery(since: 0, filter: filter)), examinedVersion: 0))
    }

    @Test("the hub compares a thousand parts of commits under its lock, and leaves what has more to its caller")
    func bound() throws {
        // A commit, its changed pointer and its type: three parts.
        let (few, many) = (try published(333), try published(334))
        let query = ChangesQuery(since: 0, filter: Self.items)

        guard case .nothing = few.hub.following(query) else { Issue.record("\(few.hub.following(query))"); return }
        guard case .long = many.hub.following(query) else { Issue.record("\(many.hub.following(query))"); return }
        guard case .nothing(let latest) = many.hub.examined(query) else { Issue.record("found"); return }
        #expect(latest.version == 334)
    }

    @Test("a query that every commit passes is answered under the lock, whatever its page ends with")
    func all() throws {
        let published = try published(2000)

        guard case .page(let page) = published.hub.following(ChangesQuery(since: 0, limit: 900)) else {
            Issue.record("no page")
            return
        }
        #expect(page.commits.count == 900 && page.isMore)
    }

    @Test("what is examined outside the lock is what one look at all commits finds", arguments: [1, 7, 100, 5000])
    func pages(limit: Int) throws {
        var published = try Published()
        _ = published.commit(
            turn: (0..<3000).map { number -> any Action in
                number.isMultiple(of: 10) ? Sample.Put(id: number, name: "a") : Sample.Add(amount: 1)
            })
        let query = ChangesQuery(since: 0, limit: limit, filter: Self.items)
        let commits = (1...3000).compactMap { published.hub.commit(version: $0) }

        guard case .page(let found) = published.hub.examined(query) else { Issue.record("no page"); return }
        let expected = ChangesPage(query, from: commits, latest: published.hub.latest.cursor)
        #expect(found.commits.map(\.version) == expected.commits.map(\.version))
        #expect(found.next == expected.next && found.isMore == expected.isMore)
    }

    @Test("a wait far behind is parked where nothing concerns it, and answered by the first commit that does")
    func parks() throws {
        var published = try published(1000)
        let log = published.watches.log
        #expect(prepare(1, Self.items, in: published.hub, log) == nil)

        let unexamined = published.commit(Sample.Put(id: 1, name: "a"))
        let found = published.hub.examine(1)
        #expect(prepare(2, Self.items, in: published.hub, log) == nil)
        published.commit(Sample.Add(amount: 1))
        let none = published.hub.examine(2)

        // The commit came before the wait was examined, so that its examination finds it.
        #expect(unexamined.isEmpty)
        guard case .changes(let page, since: 0)? = found else { Issue.record("\(String(describing: found))"); return }
        #expect(page.commits.map(\.version) == [1001])
        guard case .changes(let second, _)? = none else { Issue.record("\(String(describing: none))"); return }
        #expect(second.commits.map(\.version) == [1001])
        #expect(prepare(3, ChangesFilter(types: ["items/remove"]), in: published.hub, log) == nil)
        #expect(published.hub.examine(3) == nil)
        #expect(published.commit(Sample.Add(amount: 1)).isEmpty)
        let wakes = published.commit(Sample.Remove(id: 1))
        #expect(wakes.map(\.numbers) == [[3]])
        #expect(wakes.first?.page?.commits.map(\.version) == [1004])
    }

    @Test("a wait that ends while it is examined is neither parked nor answered twice")
    func ends() throws {
        let published = try published(1000)
        #expect(prepare(1, Self.items, in: published.hub, published.watches.log) == nil)

        let end = published.watches.leave(1)

        // Nothing has examined the commits: whoever answers has to.
        guard case .notInMemory(since: 0)? = end?.change else { Issue.record("\(String(describing: end))"); return }
        #expect(published.hub.examine(1) == nil)
        #expect(published.hub.watchesCount == 0)
    }

    @Test("commits between an examination and the parking of its wait are not missed")
    func races() throws {
        for _ in 0..<50 {
            var published = try published(400)
            #expect(prepare(1, Self.items, in: published.hub, published.watches.log) == nil)
            let (hub, ended) = (published.hub, DispatchSemaphore(value: 0))
            let found = Collection<Bool>()
            DispatchQueue.global().async {
                found.add(hub.examine(1) != nil)
                ended.signal()
            }

            for _ in 0..<5 { published.commit(Sample.Add(amount: 1)) }
            let wakes = published.commit(Sample.Put(id: 1, name: "a"))
            ended.wait()
            published.queue.runAll()
            let later = published.watches.log.takeAll()

            #expect((found.values == [true]) != ((wakes + later).map(\.numbers) == [[1]]))
        }
    }
}
