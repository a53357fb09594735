extension ChangesQuery {
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
