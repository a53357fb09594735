import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Following changes")
struct FollowingTests {
    private func page(_ following: Following) throws -> ChangesPage {
        guard case .page(let page) = following else { throw Unexpected(following: "\(following)") }
        return page
    }

    private struct Unexpected: Error { let following: String }

    @Test("a follower that is far behind parks at the newest version, with the followers of that version")
    func behind() throws {
        var published = try Published()
        published.commit(Sample.Add(amount: 1))
        let filter = ChangesFilter(path: "/items")
        _ = published.watches.follow(ChangesQuery(since: 0, filter: filter), as: 1)
        _ = published.watches.follow(ChangesQuery(since: 1, filter: filter), as: 2)

        let wakes = published.commit(Sample.Put(id: 1, name: "a"))

        #expect(wakes.map { Set($0.numbers) } == [[1, 2]])
    }

    @Test("commits that are not in memory are in the journal, until the journal drops them")
    func journal() throws {
        var published = try Published(limits: StoreLimits(mailboxMax: 100, historyCommitsMax: 2), journalOldest: 0)
        for _ in 0..<5 { published.commit(Sample.Add(amount: 1)) }

        let (before, _) = published.watches.follow(ChangesQuery(since: 2), as: 1)
        published.hub.journalBegins(at: 3)
        let (after, _) = published.watches.follow(ChangesQuery(since: 2), as: 1)
        let kept = try page(published.watches.follow(ChangesQuery(since: 3), as: 1).0)

        guard case .inJournal(let head) = before else { Issue.record("\(before)"); return }
        #expect(head.version == 5)
        guard case .expired(oldest: 3, _) = after else { Issue.record("\(after)"); return }
        #expect(kept.commits.map(\.version) == [4, 5])
        #expect(published.hub.watchesCount == 0)
    }

    @Test("a follower gets a commit that comes behind ten thousand others of the same turn")
    func farBehind() throws {
        var published = try Published()
        let filter = ChangesFilter(types: ["items/put"])
        _ = published.watches.follow(ChangesQuery(since: 0, filter: filter), as: 1)
        let others = (0..<10_005).map { _ in Sample.Add(amount: 1) as any Action }

        let deliveries = published.commit(turn: others + [Sample.Put(id: 1, name: "a")])

        #expect(deliveries.first?.page?.commits.map(\.version) == [10_006])
    }

    @Test("a follower whose commits have left memory goes on from what the hub has compared it with")
    func compared() throws {
        var published = try Published(limits: StoreLimits(mailboxMax: 100, historyCommitsMax: 2))
        let filter = ChangesFilter(types: ["items/put"])
        _ = published.watches.follow(ChangesQuery(since: 0, filter: filter), as: 1)
        for _ in 0..<5 { published.commit(Sample.Add(amount: 1)) }

        guard case .latest(let latest)? = published.watches.leave(1)?.change else {
            Issue.record("the follower has to be sent elsewhere")
            return
        }

        #expect(latest.version == 5)
    }
}
