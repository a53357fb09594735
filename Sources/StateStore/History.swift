internal import DequeModule
package import StateJSON

/// Which changes a follower asks for.
package struct ChangesFilter: Hashable, Sendable {
    /// Only commits that touch this place.
    package var path: JSONPointer?
    /// Only commits with an action of one of these types; empty for all.
    package var types: [String]
    /// Only commits that belong to a derived store.
    package var within: Within?

    /// What belongs to a derived store: commits that touch its place or have an action of its own.
    package struct Within: Hashable, Sendable {
        package var place: JSONPointer
        package var types: Set<String>

        /// Whether a commit belongs to it.
        package func holds(_ commit: Commit) -> Bool {
            commit.types.contains(where: types.contains) || commit.touched.contains { $0.overlaps(place) }
        }
    }

    /// Makes a filter; by default it passes everything.
    package init(path: JSONPointer? = nil, types: [String] = []) {
        self.path = path
        self.types = types
    }

    /// Whether a commit passes.
    package func passes(_ commit: Commit) -> Bool {
        if let within, !within.holds(commit) { return false }
        if !types.isEmpty, !commit.types.contains(where: types.contains) { return false }
        guard let path else { return true }
        return commit.touched.contains { $0.overlaps(path) }
    }
}

/// Where a follower stands and what it asks for.
package struct ChangesQuery: Hashable, Sendable {
    /// The last version that the follower has.
    package var since: Version
    /// How many commits an answer has at most.
    package var limit: Int
    /// About how many bytes of commits it has at most.
    package var weightMax: Int
    package var filter: ChangesFilter

    /// Makes a query.
    package init(
        since: Version, limit: Int = 100, weightMax: Int = 4 << 20, filter: ChangesFilter = ChangesFilter()
    ) {
        self.since = since
        self.limit = limit
        self.weightMax = weightMax
        self.filter = filter
    }
}

/// Commits after a position, in order and without a gap, filtered.
package struct ChangesPage: Sendable {
    package var commits: [Commit]
    /// The last version that was looked at: where the follower goes on.
    package var next: Version
    /// Whether there is more to be had at once.
    package var isMore: Bool
    package var head: Cursor

    /// Makes a page.
    package init(commits: [Commit], next: Version, isMore: Bool, head: Cursor) {
        self.commits = commits
        self.next = next
        self.isMore = isMore
        self.head = head
    }

    /// Looks through commits that follow `query.since` without a gap.
    package init(_ query: ChangesQuery, from commits: some Sequence<Commit>, head: Cursor) {
        var paging = ChangesPaging(query, head: head)
        for commit in commits where !paging.take(commit) { break }
        self = paging.page
    }
}

/// A page in the making.
///
/// It is full at the query's limits, or after 10,000 commits looked at.
package struct ChangesPaging {
    package private(set) var page: ChangesPage
    private let query: ChangesQuery
    private var bytes = 0
    private var lookedAt = 0

    /// Begins behind the query's position.
    package init(_ query: ChangesQuery, head: Cursor) {
        self.query = query
        page = ChangesPage(commits: [], next: query.since, isMore: query.since < head.version, head: head)
    }

    /// Looks at the next commit; false, and it is not looked at, when the page is full.
    package mutating func take(_ commit: Commit) -> Bool {
        guard page.commits.count < query.limit, bytes < query.weightMax, lookedAt < 10_000 else { return false }
        lookedAt += 1
        page.next = commit.version
        page.isMore = page.next < page.head.version
        guard query.filter.passes(commit) else { return true }
        page.commits.append(commit)
        bytes += commit.weight
        return true
    }
}

/// The newest commits, bounded in number and in bytes.
struct History: Sendable {
    private var commits: Deque<Commit> = []
    private var versions: [String: Version] = [:]
    private var weight = 0
    /// Snapshots on the way, oldest first: a past state is the nearest one before it and the patches since.
    private var checkpoints: Deque<Snapshot> = []
    /// So close that some are always within the commits that are kept.
    private let checkpointInterval: Version
    private var weightSinceCheckpoint = 0
    private let countMax: Int
    private let weightMax: Int
    /// The version after which the first kept commit comes.
    private(set) var base: Version

    init(beginningWith snapshot: Snapshot, countMax: Int, weightMax: Int) {
        base = snapshot.cursor.version
        checkpoints = [snapshot]
        checkpointInterval = Version(min(1024, max(1, countMax / 4)))
        self.countMax = countMax
        self.weightMax = weightMax
    }

    mutating func append(_ commit: Commit) {
        commits.append(commit)
        weight += commit.weight
        weightSinceCheckpoint += commit.weight
        for id in commit.clientIDs { versions[id] = commit.version }
        while commits.count > countMax || (weight > weightMax && commits.count > 1) {
            let oldest = commits.removeFirst()
            weight -= oldest.weight
            base = oldest.version
            for id in oldest.clientIDs where versions[id] == oldest.version { versions[id] = nil }
        }
    }

    /// Notes a state on the way.
    mutating func note(_ snapshot: Snapshot) {
        guard let last = checkpoints.last,
            snapshot.cursor.version >= last.cursor.version + checkpointInterval || weightSinceCheckpoint > weightMax / 4
        else { return }
        weightSinceCheckpoint = 0
        checkpoints.append(snapshot)
        // The commits between a checkpoint and the next one that can be reached are needed too.
        while checkpoints.count > 1, checkpoints[0].cursor.version < base { checkpoints.removeFirst() }
    }

    /// The oldest version that ``path(to:)`` reaches.
    var oldestState: Version {
        checkpoints.first { $0.cursor.version >= base }?.cursor.version ?? base + Version(commits.count)
    }

    /// The nearest state at or before a version and the commits from there to it, or nil where they are gone.
    func path(to version: Version) -> (from: Snapshot, commits: [Commit])? {
        guard let start = checkpoints.last(where: { $0.cursor.version <= version }),
            let commits = commits(after: start.cursor.version)
        else { return nil }
        return (start, Array(commits.prefix(Int(version - start.cursor.version))))
    }

    /// The commits after a version, or nil when some of them are no longer here.
    func commits(after version: Version) -> Deque<Commit>.SubSequence? {
        guard version >= base else { return nil }
        return commits.dropFirst(Int(min(version - base, Version(commits.count))))
    }

    /// The commit that made a version.
    func commit(_ version: Version) -> Commit? {
        version > base ? commits(after: version - 1)?.first : nil
    }

    /// The commit of a client's own ID; the newest where the ID was used again.
    func commit(id: String) -> Commit? { versions[id].flatMap { commit($0) } }
}
