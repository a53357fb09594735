/// Finds the commits before a version that pass a filter, newest first.
///
/// A history is read forward only, so it goes back window by window. What it holds is bounded by the query's weight, and what
/// it examines by 10,000 commits, as for the commits after a version.
package struct EarlierChanges {
    private let query: ChangesQuery
    private var next: Version
    private var commits: [Commit] = []
    private var bytes = 0
    private var examinedCount = 0

    private static let examinedMax = 10_000
    private static let windowOfFilter = 500

    /// - Parameters:
    ///   - end: the version of the first commit that is not asked for.
    ///   - query: how many commits there may be, of what weight, and which; its version counts for nothing.
    package init(before end: Version, _ query: ChangesQuery) {
        next = end
        self.query = query
    }

    /// Finds the page.
    ///
    /// - Parameters:
    ///   - bounds: the bounds of the history.
    ///   - read: reads the commits after a version, oldest first, or nil if they are no longer kept.
    /// - Returns: the commits, newest first; `next` is the version whose older commits are not examined, and `isMore`
    ///   says whether there are any.
    package mutating func page(
        in bounds: HistoryBounds, _ read: (ChangesQuery) throws -> ChangesPage?
    ) rethrows -> ChangesPage {
        var isKept = true
        while isKept, next > bounds.oldest + 1, commits.count < query.limit, bytes < query.weightMax,
            examinedCount < Self.examinedMax
        {
            let room = query.filter.passesAll ? query.limit - commits.count : Self.windowOfFilter
            let start = max(bounds.oldest, next - 1 - min(Version(room), next - 1))
            isKept = try examine(after: start, read)
        }
        return ChangesPage(
            commits: commits, next: next, isMore: isKept && next > bounds.oldest + 1, latest: bounds.latest)
    }

    private mutating func examine(
        after start: Version, _ read: (ChangesQuery) throws -> ChangesPage?
    ) rethrows -> Bool {
        var (found, foundBytes, position, lowest) = ([Commit](), 0, start, start + 1)
        while position < next - 1 {
            guard
                let page = try read(
                    ChangesQuery(since: position, limit: .max, weightMax: query.weightMax, filter: query.filter))
            else { return false }
            for commit in page.commits where commit.version < next {
                found.append(commit)
                foundBytes += commit.weight
            }
            // The oldest ones are for a later page.
            while found.count > 1, found.count > query.limit - commits.count || foundBytes > query.weightMax - bytes {
                lowest = found[1].version
                foundBytes -= found.removeFirst().weight
            }
            guard page.next > position else { return false }
            position = page.next
        }
        examinedCount += Int(next - lowest)
        commits += found.reversed()
        bytes += foundBytes
        next = lowest
        return true
    }
}
