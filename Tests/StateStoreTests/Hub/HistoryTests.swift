import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

extension Commit {
    /// A commit without a patch.
    static func sample(
        _ version: Version, id: String? = nil, types: [String] = ["a"], changedPointers: [JSONPointer] = ["/x"],
        memberIDs: [String] = [], bytes: Int = 2
    ) -> Commit {
        Commit(
            version: version, time: Timestamp(milliseconds: 0), id: id ?? "aaaaaaaaaaaaaaaa.\(version)", types: types,
            action: Array(repeating: 0x20, count: bytes), patch: Array("[]".utf8), changedPointers: changedPointers,
            clientIDs: (id.map { [$0] } ?? []) + memberIDs)
    }
}

@Suite("History")
struct HistoryTests {
    private func history(
        from version: Version = 0, to head: Version = 0, countMax: Int = 100, weightMax: Int = 1 << 20
    ) throws -> History {
        let core = try Core.sample()
        let snapshot = Snapshot(
            core.state, core.latest.tree, of: core.domain, at: Cursor(core.epoch, version), viewVersions: [])
        var history = History(beginningWith: snapshot, countMax: countMax, weightMax: weightMax)
        for next in version..<head { history.keep(.sample(next + 1)) }
        return history
    }

    @Test(
        "the commits after a version are all that follow it, or nil where one of them is dropped",
        arguments: [(4, nil), (5, [6, 7, 8]), (6, [7, 8]), (8, []), (9, [])] as [(Version, [Version]?)])
    func after(version: Version, expected: [Version]?) throws {
        let history = try history(to: 8, countMax: 3)

        #expect(history.base == 5)
        #expect(history.commits(after: version)?.map(\.version) == expected)
    }

    @Test("a history that begins at a later version has nothing before it")
    func beginning() throws {
        let history = try history(from: 41, to: 42)

        #expect(history.commits(after: 40) == nil)
        #expect(history.commits(after: 41)?.map(\.version) == [42])
        #expect(history.commit(41) == nil)
        #expect(history.commit(42)?.version == 42)
        #expect(history.commit(43) == nil)
    }

    @Test("commits are bounded in bytes too, but the newest is always kept")
    func weight() throws {
        var history = try history(weightMax: 2000)

        for version in 1...10 { history.keep(.sample(Version(version), bytes: 500)) }
        #expect(history.commits(after: history.base)?.count == 2)

        history.keep(.sample(11, bytes: 100_000))
        #expect(history.commits(after: history.base)?.map(\.version) == [11])
    }

    @Test("a commit is found by its ID and the IDs of its actions, and a repeated ID finds the newest commit")
    func ids() throws {
        var history = try history(countMax: 3)
        history.keep(.sample(1, id: "order"))
        history.keep(.sample(2, memberIDs: ["line-1", "line-2"]))
        history.keep(.sample(3, id: "order"))

        #expect(history.commit(id: "order")?.version == 3)
        #expect(history.commit(id: "line-2")?.version == 2)
        #expect(history.commit(id: "aaaaaaaaaaaaaaaa.2") == nil)

        for version in 4...5 { history.keep(.sample(Version(version))) }
        #expect(history.commit(id: "line-2") == nil)
        #expect(history.commit(id: "order")?.version == 3)
    }

    @Test("two spellings of one accented letter are two IDs, each with its own commit")
    func canonicallyEquivalent() throws {
        let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
        var history = try history(countMax: 2)
        history.keep(.sample(1, id: composed))
        history.keep(.sample(2, id: decomposed))

        #expect(history.commit(id: composed)?.version == 1)
        #expect(history.commit(id: decomposed)?.version == 2)
        history.keep(.sample(3))
        #expect(history.commit(id: composed) == nil)
        #expect(history.commit(id: decomposed)?.version == 2)
    }

    @Test(
        "a past state can be made exactly while the commits around it are kept", arguments: [4, 16, 100, 1000], [1, 3])
    func paths(countMax: Int, turn: Int) throws {
        let core = try Core.sample()
        let snapshot = core.latest
        var history = History(beginningWith: snapshot, countMax: countMax, weightMax: 1 << 20)
        var states = [try JSONValue(parsing: snapshot.whole())]
        var generator = SplitMix(seed: UInt64(countMax))
        for _ in 0..<60 {
            let actions = (0..<turn).map { _ in Sample.anything(using: &generator) }
            for action in actions {
                let turn = core.run([.of(action)])
                for commit in turn.commits {
                    history.keep(commit)
                    states.append(try JSONValue(parsing: Array(try #require(try core.json()).utf8)))
                }
            }
            _ = history.note(core.latest)
        }

        for version in 0...core.version {
            guard let path = history.path(to: version) else {
                #expect(version < history.base + Version(max(countMax / 4, turn)), "\(version) is kept and not reached")
                continue
            }
            var value = try JSONValue(parsing: path.from.whole())
            for commit in path.commits { try value.apply(patch: JSONValue(parsing: commit.patch)) }
            #expect(value == states[Int(version)], "version \(version)")
        }
        #expect(history.path(to: core.version) != nil)
    }
}

@Suite("Pages of changes")
struct ChangesPageTests {
    private static let latest = Cursor(Core.sampleEpoch, 10)

    private func page(_ query: ChangesQuery) -> ChangesPage {
        let commits: [Commit] = (query.since + 1...10).map { version in
            let type = version.isMultiple(of: 2) ? "even" : "odd"
            let changedPointers: [JSONPointer] = version == 9 ? [] : [JSONPointer(["x", "\(version)"])]
            return Commit.sample(version, types: [type], changedPointers: changedPointers)
        }
        return ChangesPage(query, from: commits, latest: Self.latest)
    }

    @Test("a page ends at its limit, and says that there is more", arguments: [1, 9, 10, 11])
    func limit(limit: Int) {
        let page = page(ChangesQuery(since: 0, limit: limit))

        let last = Version(min(limit, 10))
        #expect(page.commits.map(\.version) == Array(1...last))
        #expect(page.next == last)
        #expect(page.isMore == (limit < 10))
    }

    @Test("the next query of a filtered follower begins at the last examined version")
    func next() {
        let page = page(ChangesQuery(since: 0, filter: ChangesFilter(path: "/x/3")))

        #expect(page.commits.map(\.version) == [3])
        #expect(page.next == 10)
        #expect(!page.isMore)
    }

    private static let filtered: [(ChangesFilter, [Version])] = [
        (ChangesFilter(path: ""), [1, 2, 3, 4, 5, 6, 7, 8, 10]),
        (ChangesFilter(path: "/x"), [1, 2, 3, 4, 5, 6, 7, 8, 10]),
        (ChangesFilter(path: "/x/2/deep"), [2]),
        (ChangesFilter(path: "/y"), []),
        (ChangesFilter(types: ["odd"]), [1, 3, 5, 7, 9]),
        (ChangesFilter(types: ["odd", "even"]), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        (ChangesFilter(path: "/x", types: ["odd"]), [1, 3, 5, 7]),
        (ChangesFilter(types: ["none"]), []),
    ]

    @Test("a filter passes commits that overlap its pointer and have one of its types", arguments: filtered)
    func filters(filter: ChangesFilter, versions: [Version]) {
        #expect(page(ChangesQuery(since: 0, filter: filter)).commits.map(\.version) == versions)
    }

    @Test("a page ends after about four megabytes, but has at least one commit")
    func bytes() {
        let commits = (1...10).map { Commit.sample(Version($0), bytes: 3 << 20) }

        let page = ChangesPage(ChangesQuery(since: 0), from: commits, latest: Self.latest)

        #expect(page.commits.map(\.version) == [1, 2])
        #expect(page.isMore)
    }

    @Test("a page ends after ten thousand examined commits, and the next query begins there")
    func examinedCount() {
        let commits = (1...10_001).map { Commit.sample(Version($0)) }
        let query = ChangesQuery(since: 0, filter: ChangesFilter(types: ["none"]))

        let page = ChangesPage(query, from: commits, latest: Cursor(Self.latest.epoch, 10_001))

        #expect(page.commits.isEmpty)
        #expect(page.next == 10_000)
        #expect(page.isMore)
    }
}

extension History {
    /// Appends a commit, and forgets what is dropped for it.
    fileprivate mutating func keep(_ commit: Commit) {
        var dropped: [Commit] = []
        append(commit, dropping: &dropped)
    }
}
