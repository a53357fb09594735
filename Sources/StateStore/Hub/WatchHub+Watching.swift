internal import StateJSON
internal import Synchronization

package enum Watching: Sendable {
    case parked
    /// The watch is not registered: what it would wait for is there already.
    case ready
    case refused(WatchRefusal)
}

extension WatchHub {
    /// The hub encodes a value that was not read, on its encoding queue, and then compares it with the watch.
    package func watch(_ watch: Watch, seen: Reading?) -> Watching {
        if let seen, case .value(_, let condition) = watch.subject, condition.isMet(by: seen.encoded) { return .ready }
        let (watching, mustFanOut) = storage.withLock { $0.registerAndPark(watch, examined: seen?.cursor.version) }
        if mustFanOut { scheduleFanOut() }
        return watching
    }

    package func watch(_ watch: Watch, until version: Version) -> Watching {
        storage.withLock { storage in
            guard storage.latest.cursor.version < version else { return .ready }
            return storage.registerAndPark(watch, examined: watch.examinedVersion).0
        }
    }

    package func watch(_ watch: Watch, _ query: ChangesQuery) -> (Following, Watching) {
        storage.withLock { storage in
            let found = storage.following(query)
            guard case .nothing(let latest) = found else { return (found, .ready) }
            // The query has examined everything up to the newest version.
            return (found, storage.registerAndPark(watch, examined: latest.version).0)
        }
    }

    /// Registers a stream, a POST that waits for its cascade, or a wait for commits that ``examine(_:)`` then parks.
    package func register(_ watch: Watch) -> WatchRefusal? {
        storage.withLock { storage in
            if let refusal = storage.register(watch) { return refusal }
            if case .cascade = watch.subject { _ = storage.park(watch.id, examined: nil) }
            return nil
        }
    }
}

/// Commits that are too many for a thread that serves others: the hub copies some at a time out of its lock.
extension WatchHub {
    /// O(n) in the number of commits up to the end of the page.
    package func examined(_ query: ChangesQuery) -> Following {
        let latest = latest.cursor
        var paging = ChangesPaging(query, latest: latest)
        while true {
            let next = storage.withLock { storage in
                storage.commits(after: paging.page.next, storage.latest.cursor).map { Array($0.prefix(Self.batchSize)) }
            }
            switch next {
            // The rest has left memory meanwhile: the page ends before it.
            case .failure(let elsewhere): return paging.page.next > query.since ? .page(paging.page) : elsewhere
            case .success(let commits):
                // Commits that come meanwhile belong to the next page.
                let isFull = commits.contains { $0.version > latest.version || !paging.take($0) }
                if isFull || paging.page.next >= latest.version { return .of(paging.page) }
            }
        }
    }

    /// The change that answers a wait that is being prepared, or nil if the wait is parked or has ended.
    package func examine(_ id: Watch.ID) -> Delivery.Change? {
        guard var query = storage.withLock({ $0.watches[id]?.query }) else { return nil }
        while true {
            let found = examined(query)
            if case .nothing(let latest) = found {
                query.since = latest.version
                if storage.withLock({ $0.parks(id, query) }) { return nil }
                continue
            }
            let now = now()
            let action = storage.withLock { storage in
                storage.update(id) { $0.prepared(.first, query.since, hasMore: false, at: now) }?.action
            }
            guard action == .answer else { return nil }
            guard case .page(let page) = found else { return .notInMemory(since: query.since) }
            return .changes(page, since: query.since)
        }
    }
}
