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

    @Test("a follower gets the commits after its version, at once or when they are published")
    func follow() throws {
        var published = try Published()
        published.commit(Sample.Add(amount: 1))
        published.commit(Sample.Add(amount: 2))

        let page = try page(published.watches.follow(ChangesQuery(since: 1), as: 1).0)
        let (nothing, waiting) = published.watches.follow(ChangesQuery(since: 2), as: 1)
        let wakes = published.commit(Sample.Add(amount: 1), Sample.Add(amount: 1))

        #expect(page.commits.map(\.version) == [2])
        guard case .nothing = nothing, case .parked = waiting else { Issue.record("\(nothing) \(waiting)"); return }
        #expect(wakes.map { $0.page?.commits.map(\.version) } == [[3, 4]])
        #expect(wakes.first?.page?.next == 4)
    }

    @Test("only commits that pass its filter answer a follower, and its next query begins at the examined version")
    func filters() throws {
        var published = try Published()
        _ = published.watches.follow(ChangesQuery(since: 0, filter: ChangesFilter(path: "/items")), as: 1)
        _ = published.watches.follow(ChangesQuery(since: 0, filter: ChangesFilter(types: ["items/remove"])), as: 2)

        let first = published.commit(Sample.Add(amount: 1))
        let second = published.commit(Sample.Put(id: 1, name: "a"), Sample.Add(amount: 1))

        #expect(first.isEmpty)
        #expect(second.map(\.numbers) == [[1]])
        #expect(second.first?.page?.commits.map(\.version) == [2])
        #expect(second.first?.page?.next == 3)
        guard case .latest(let latest)? = published.watches.leave(2)?.change else { Issue.record("2 has left"); return }
        #expect(latest.version == 3)
    }

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

    @Test("a turn with more commits than the limit gives the first page, and says that there is more")
    func limit() throws {
        var published = try Published()
        _ = published.watches.follow(ChangesQuery(since: 0, limit: 2), as: 1)

        let wakes = published.commit(Sample.Add(amount: 1), Sample.Add(amount: 1), Sample.Add(amount: 1))

        #expect(wakes.first?.page?.commits.map(\.version) == [1, 2])
        #expect(wakes.first?.page?.next == 2)
        #expect(wakes.first?.page?.isMore == true)
    }

    @Test("a query above the newest version is not parked, because it belongs to another history")
    func above() throws {
        let published = try Published()

        let (following, _) = published.watches.follow(ChangesQuery(since: 1), as: 1)

        guard case .aboveLatest(let head) = following else { Issue.record("\(following)"); return }
        #expect(head.version == 0)
        #expect(published.hub.watchesCount == 0)
    }

    @Test(
        "without a journal, commits that are not in memory are expired",
        arguments: [(2, false), (3, true), (4, true), (5, true)] as [(Version, Bool)])
    func expired(since: Version, isKept: Bool) throws {
        var published = try Published(limits: StoreLimits(mailboxMax: 100, historyCommitsMax: 2))
        for _ in 0..<5 { published.commit(Sample.Add(amount: 1)) }

        let following = published.hub.following(ChangesQuery(since: since))

        #expect(published.hub.bounds.oldest == 3)
        guard !isKept else {
            if case .expired = following { Issue.record("\(since) is kept") }
            return
        }
        guard case .expired(oldest: 3, let head) = following else { Issue.record("\(following)"); return }
        #expect(head.version == 5)
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
