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
            commit.types.contains(where: types.contains) || commit.changedPointers.contains { $0.overlaps(place) }
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
        return commit.changedPointers.contains { $0.overlaps(path) }
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
    /// The newest instant of the history.
    package var latest: Cursor

    /// Makes a page.
    package init(commits: [Commit], next: Version, isMore: Bool, latest: Cursor) {
        self.commits = commits
        self.next = next
        self.isMore = isMore
        self.latest = latest
    }

    /// A page that says that there is nothing after the newest instant.
    package init(emptyAt latest: Cursor) {
        self.init(commits: [], next: latest.version, isMore: false, latest: latest)
    }

    /// Looks through commits that follow `query.since` without a gap.
    package init(_ query: ChangesQuery, from commits: some Sequence<Commit>, latest: Cursor) {
        var paging = ChangesPaging(query, latest: latest)
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
    package init(_ query: ChangesQuery, latest: Cursor) {
        self.query = query
        page = ChangesPage(commits: [], next: query.since, isMore: query.since < latest.version, latest: latest)
    }

    /// Looks at the next commit; false, and it is not looked at, when the page is full.
    package mutating func take(_ commit: Commit) -> Bool {
        guard page.commits.count < query.limit, bytes < query.weightMax, lookedAt < 10_000 else { return false }
        lookedAt += 1
        page.next = commit.version
        page.isMore = page.next < page.latest.version
        guard query.filter.passes(commit) else { return true }
        page.commits.append(commit)
        bytes += commit.weight
        return true
    }
}

/// What there is after a follower's position.
package enum Following: Sendable {
    case page(ChangesPage)
    /// Nothing yet.
    case nothing(latest: Cursor)
    /// The commits are no longer in memory, but the journal has them.
    case inJournal(latest: Cursor)
    /// The commits are gone.
    case expired(oldest: Version, latest: Cursor)
    /// The position is above the newest version: it belongs to another history.
    case aboveLatest(Cursor)
}
