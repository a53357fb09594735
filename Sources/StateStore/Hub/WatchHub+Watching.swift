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

extension HubStorage {
    /// Whether the wait is parked, or has ended; otherwise commits after the examined version may concern it.
    mutating func parks(_ id: Watch.ID, _ query: ChangesQuery) -> Bool {
        guard watches[id]?.state == .preparing else { return true }
        guard case .nothing(let latest) = following(query) else { return false }
        _ = park(id, examined: latest.version)
        return true
    }

    func newest(of id: Watch.ID) -> Delivery.Change {
        let watch = watches[id]
        if case .cascade? = watch?.subject { return .outcome(watch?.outcome) }
        guard let watch, !watch.isStream, let query = watch.query else { return .latest(latest.cursor) }
        // The passes have compared a parked wait with all commits up to theirs.
        return newest(watch.state == .parked ? query.after(max(query.since, comparedVersion)) : query)
    }

    func newest(_ query: ChangesQuery) -> Delivery.Change {
        switch following(query) {
        case .page(let page): .changes(page, since: query.since)
        case .nothing(let latest), .aboveLatest(let latest): .latest(latest)
        // The commits have left memory while the watch was debouncing or waiting, or are too many to examine here.
        case .inJournal, .long, .expired: .notInMemory(since: query.since)
        }
    }

    /// Each stream sends the commits, prepares them outside the hub, or parks; `partsMax` becomes what is left of it.
    mutating func examine(
        _ ids: [Watch.ID], _ query: ChangesQuery, at now: Instant, _ partsMax: inout Int
    ) -> DeliveryBatch {
        let found = following(query, &partsMax)
        let change: Delivery.Change =
            switch found {
            case .page(let page): .changes(page, since: query.since)
            case .long: .notInMemory(since: query.since)
            case .nothing, .inJournal, .expired, .aboveLatest: .latest(latest.cursor)
            }
        var batch = DeliveryBatch(change)
        let latest = latest.cursor.version
        for id in ids {
            batch.add(
                update(id) { watch in
                    switch found {
                    // A stream that is catching up is not slow, so it gets the next page and no reset.
                    case .page(let page) where page.isMore && watch.isSlow: return watch.prepares(.reset(.slow))
                    case .page(let page): return watch.found(page.next, hasMore: page.isMore, at: now)
                    case .nothing: return watch.foundNothing(upTo: latest, at: now)
                    case .inJournal: return watch.prepares(watch.isSlow ? .reset(.slow) : watch.chunk)
                    case .long: return watch.prepares(watch.chunk)
                    case .expired: return watch.prepares(.reset(watch.isSlow ? .slow : .expired))
                    case .aboveLatest:
                        // The cursor is of another history: what comes next is compared with this one.
                        watch.examinedVersion = latest
                        return watch.prepares(.reset(.lost))
                    }
                })
        }
        return batch
    }
}
