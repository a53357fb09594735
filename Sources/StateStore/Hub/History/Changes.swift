package import StateJSON

package struct ChangesFilter: Hashable, Sendable {
    /// Passes only commits that change these parts of the state; nil for all.
    package var paths: PointerFilter?
    /// Passes only commits with an action of one of these types; empty for all.
    package var types: [String]
    package var by: ExactText?
    package var within: Within?

    /// The commits of a derived store: a commit that changes its part of the state or has one of its action types.
    package struct Within: Hashable, Sendable {
        package var pointer: JSONPointer
        package var types: Set<String>
        package var by: ExactText?

        package init(pointer: JSONPointer, types: Set<String>, by: ExactText? = nil) {
            self.pointer = pointer
            self.types = types
            self.by = by
        }

        package func holds(_ commit: Commit) -> Bool {
            (by == nil || by == ExactText(optional: commit.by)) && commit.types.contains(where: types.contains)
                || commit.changedPointers.contains { $0.overlaps(pointer) }
        }
    }

    package init(path: JSONPointer? = nil, types: [String] = []) {
        paths = path.map { PointerFilter($0) }
        self.types = types
    }

    package func passes(_ commit: Commit) -> Bool {
        if let within, !within.holds(commit) { return false }
        if !types.isEmpty, !commit.types.contains(where: types.contains) { return false }
        if let by, by != ExactText(optional: commit.by) { return false }
        guard let paths else { return true }
        return commit.changedPointers.contains(where: paths.overlaps)
    }

    var passesAll: Bool { self == ChangesFilter() }
}

package struct ChangesQuery: Hashable, Sendable {
    package var since: Version
    package var limit: Int
    /// About the most bytes of commits of a page.
    package var weightMax: Int
    package var filter: ChangesFilter

    package init(
        since: Version, limit: Int = 100, weightMax: Int = 4 << 20, filter: ChangesFilter = ChangesFilter()
    ) {
        self.since = since
        self.limit = limit
        self.weightMax = weightMax
        self.filter = filter
    }

    func after(_ version: Version) -> ChangesQuery {
        ChangesQuery(since: version, limit: limit, weightMax: weightMax, filter: filter)
    }

    private static let windowOfFilter = 500

    /// The commits before ``since`` that pass the filter, newest first.
    ///
    /// A history is read forward only, so this goes back window by window, over at most 10,000 commits; those before
    /// `next` are not examined. `read` gives nil for commits that are no longer kept.
    package func earlier(
        in bounds: HistoryBounds, _ read: (ChangesQuery) throws -> ChangesPage?
    ) rethrows -> ChangesPage {
        var page = ChangesPage(commits: [], next: since, isMore: since > bounds.oldest + 1, latest: bounds.latest)
        var (bytes, examinedCount) = (0, 0)
        while page.isMore, page.commits.count < limit, bytes < weightMax, examinedCount < ChangesPaging.examinedMax {
            let room = filter.passesAll ? limit - page.commits.count : Self.windowOfFilter
            let start = max(bounds.oldest, page.next - 1 - min(Version(room), page.next - 1))
            var (found, foundBytes, position, lowest) = ([Commit](), 0, start, start + 1)
            while position < page.next - 1 {
                let query = ChangesQuery(since: position, limit: .max, weightMax: weightMax, filter: filter)
                guard let more = try read(query), more.next > position else {
                    page.isMore = false
                    return page
                }
                for commit in more.commits where commit.version < page.next {
                    found.append(commit)
                    foundBytes += commit.weight
                }
                // The oldest ones are for a later page.
                while found.count > 1, found.count > limit - page.commits.count || foundBytes > weightMax - bytes {
                    lowest = found[1].version
                    foundBytes -= found.removeFirst().weight
                }
                position = more.next
            }
            examinedCount += Int(page.next - lowest)
            page.commits += found.reversed()
            bytes += foundBytes
            (page.next, page.isMore) = (lowest, lowest > bounds.oldest + 1)
        }
        return page
    }
}

/// The commits after a version that pass a filter, in order and without a gap.
package struct ChangesPage: Sendable {
    package var commits: [Commit]
    /// The last examined version, which the follower names in its next query.
    package var next: Version
    package var isMore: Bool
    package var latest: Cursor

    package mutating func end(at version: Version) {
        guard version < next else { return }
        commits.removeAll { $0.version > version }
        (next, isMore) = (version, true)
    }

    package var weight: Int { commits.reduce(0) { $0 + $1.weight } }
}

extension ChangesPage {
    package init(emptyAt latest: Cursor) {
        self.init(commits: [], next: latest.version, isMore: false, latest: latest)
    }

    package init(_ query: ChangesQuery, from commits: some Sequence<Commit>, latest: Cursor) {
        var paging = ChangesPaging(query, latest: latest)
        for commit in commits where !paging.take(commit) { break }
        self = paging.page
    }
}

/// A page is full at the query's limits, or when it has examined 10,000 commits.
package struct ChangesPaging {
    static let examinedMax = 10_000
    package private(set) var page: ChangesPage
    /// How many more parts of commits may be examined: their changed pointers and the types of their actions.
    private(set) var partsLeft: Int
    private let query: ChangesQuery
    private let passesAll: Bool
    private var bytes = 0
    private var examinedCount = 0

    package init(_ query: ChangesQuery, latest: Cursor, partsMax: Int = .max) {
        self.query = query
        partsLeft = partsMax
        passesAll = query.filter.passesAll
        page = ChangesPage(commits: [], next: query.since, isMore: query.since < latest.version, latest: latest)
    }

    /// Examines the next commit; false, without examining it, where the page is full.
    package mutating func take(_ commit: Commit) -> Bool {
        guard page.commits.count < query.limit, bytes < query.weightMax, examinedCount < Self.examinedMax else {
            return false
        }
        if !passesAll {
            partsLeft -= commit.partsCount
            guard partsLeft >= 0 else { return false }
        }
        examinedCount += 1
        page.next = commit.version
        page.isMore = page.next < page.latest.version
        guard passesAll || query.filter.passes(commit) else { return true }
        page.commits.append(commit)
        bytes += commit.weight
        return true
    }
}

/// The result of a query for commits in memory; an error where it says why they are not there.
package enum Following: Error, Sendable {
    case page(ChangesPage)
    case nothing(latest: Cursor)
    /// The commits are no longer in memory, but the journal has them.
    case inJournal(latest: Cursor)
    /// The commits are in memory, and a thread that serves others should not examine so many.
    case long(latest: Cursor)
    case expired(oldest: Version, latest: Cursor)
    /// The query's version is above the newest one, so it belongs to another history.
    case aboveLatest(Cursor)

    static func of(_ page: ChangesPage) -> Following {
        page.commits.isEmpty && !page.isMore ? .nothing(latest: page.latest) : .page(page)
    }
}
