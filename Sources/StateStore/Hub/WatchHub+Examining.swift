internal import Synchronization

/// Commits that are too many to be compared with a filter on a thread that serves others.
///
/// The hub copies them out of its lock some at a time, and compares them outside.
extension WatchHub {
    /// The commits after a version that pass a filter, as far as they are in memory.
    ///
    /// O(n) in the number of commits up to the end of the page.
    package func examined(_ query: ChangesQuery) -> Following {
        var paging: ChangesPaging?
        while true {
            let version = paging?.page.next ?? query.since
            switch storage.withLock({ $0.nextCommits(after: version) }) {
            case .failure(let elsewhere):
                // The rest has left memory meanwhile: the page ends before it.
                return paging.map { .page($0.page) } ?? elsewhere.following
            case .success(let (commits, latest)):
                var now = paging ?? ChangesPaging(query, latest: latest)
                // What comes meanwhile belongs to the next page.
                let last = now.page.latest.version
                let isFull = commits.contains { $0.version > last || !now.take($0) }
                if isFull || now.page.next >= last { return .of(now.page) }
                paging = now
            }
        }
    }

    /// Compares the commits behind a wait that is being prepared with its filter, and parks it if none passes.
    ///
    /// - Returns: the change that answers the wait, or nil if it is parked or has ended.
    package func examine(_ id: Watch.ID) -> Delivery.Change? {
        guard var follower = storage.withLock({ $0.watch(id)?.follower }) else { return nil }
        while true {
            let found = examined(follower.query)
            if case .nothing(let latest) = found {
                follower.examinedVersion = latest.version
                if storage.withLock({ $0.parks(id, follower) }) { return nil }
                continue
            }
            let now = now()
            let action = storage.withLock { storage in
                storage.update(id) { $0.prepared(.first, follower.examinedVersion, hasMore: false, at: now) }?.action
            }
            guard action == .answer else { return nil }
            guard case .page(let page) = found else { return .notInMemory(since: follower.examinedVersion) }
            return .changes(page, since: follower.examinedVersion)
        }
    }
}
