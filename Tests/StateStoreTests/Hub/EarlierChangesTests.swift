import Testing

@testable import StateStore

@Suite("Commits before a version")
struct EarlierChangesTests {
    /// Pages back to the oldest commit, and what was read for it.
    private func all(
        _ commits: [Commit], before end: Version, oldest: Version, _ query: ChangesQuery
    ) throws -> (found: [Version], pages: Int) {
        let latest = Cursor(.random(), commits.last?.version ?? 0)
        var (found, pages, next, isMore) = ([Version](), 0, end, true)
        while isMore {
            let page = query.after(next).earlier(in: HistoryBounds(latest: latest, oldest: oldest)) { query in
                ChangesPage(query, from: commits.filter { $0.version > query.since }, latest: latest)
            }
            #expect(page.commits.count <= query.limit)
            #expect(page.next < next || page.commits.isEmpty)
            found += page.commits.map(\.version)
            (next, isMore, pages) = (page.next, page.isMore, pages + 1)
            try #require(pages < 10_000)
        }
        return (found, pages)
    }

    /// Commits of which each seventh puts an item.
    private func history(_ count: Int) throws -> [Commit] {
        let core = try Core.sample()
        return (1...count).flatMap { number in
            let action: any Action =
                number.isMultiple(of: 7) ? Sample.Put(id: number, name: "a") : Sample.Add(amount: 1)
            return core.run([.of(action)]).commits
        }
    }

    @Test("come newest first, each once, whatever the page holds", arguments: [1, 2, 7, 100, 1000])
    func pages(limit: Int) throws {
        let commits = try history(60)

        let all = try all(commits, before: 61, oldest: 0, ChangesQuery(since: 0, limit: limit))
        let some = try self.all(commits, before: 41, oldest: 10, ChangesQuery(since: 0, limit: limit))

        #expect(all.found == (1...60).reversed())
        #expect(all.pages == (60 + limit - 1) / limit)
        #expect(some.found == (11...40).reversed())
    }

    @Test("pass a filter, also where most do not", arguments: [1, 3, 100])
    func filter(limit: Int) throws {
        let filter = ChangesFilter(types: ["items/put"])

        let found = try all(
            try history(1200), before: 1201, oldest: 0, ChangesQuery(since: 0, limit: limit, filter: filter))

        #expect(found.found == (1...1200).filter { $0.isMultiple(of: 7) }.reversed())
    }

    @Test("are as many as their weight allows, and at least one")
    func weight() throws {
        let found = try all(try history(30), before: 31, oldest: 0, ChangesQuery(since: 0, limit: 100, weightMax: 1))

        #expect(found.found == (1...30).reversed())
        #expect(found.pages == 30)
    }

    @Test("end where the history is no longer kept")
    func gone() throws {
        let bounds = HistoryBounds(latest: Cursor(.random(), 60), oldest: 10)

        let page = ChangesQuery(since: 50).earlier(in: bounds) { _ in nil }

        #expect(page.commits.isEmpty && !page.isMore)
    }
}
