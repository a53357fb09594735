internal import StateJSON

extension HubStorage {
    /// The key of followers that are parked together, whatever versions they have examined.
    struct FollowerKey: Hashable {
        let filter: ChangesFilter
        let limit: Int
        let weightMax: Int
    }

    /// The key of followers that get the same commits.
    struct Follower: Hashable {
        let key: FollowerKey
        var examinedVersion: Version
        let isSlow: Bool

        var query: ChangesQuery {
            ChangesQuery(since: examinedVersion, limit: key.limit, weightMax: key.weightMax, filter: key.filter)
        }
    }

    /// Whether the wait is parked, or has ended; otherwise commits after the examined version may concern it.
    mutating func parks(_ id: Watch.ID, _ follower: Follower) -> Bool {
        guard watch(id)?.state == .preparing else { return true }
        guard case .nothing(let latest) = following(follower.query) else { return false }
        _ = park(id, examined: latest.version)
        return true
    }

    func newest(of id: Watch.ID) -> Delivery.Change {
        guard let watch = watch(id) else { return .latest(latest.cursor) }
        switch watch.subject {
        case .value, .version: return .latest(latest.cursor)
        case .cascade: return .outcome(watch.outcome)
        case .changes:
            guard !watch.isStream, let follower = watch.follower else { return .latest(latest.cursor) }
            return newest(watch.state == .parked ? examinedByPasses(follower) : follower)
        }
    }

    func newest(_ follower: Follower) -> Delivery.Change {
        switch following(follower.query) {
        case .page(let page): return .changes(page, since: follower.examinedVersion)
        case .nothing(let latest), .aboveLatest(let latest): return .latest(latest)
        // The commits have left memory while the watch was debouncing or waiting, or are too many to examine here.
        case .inJournal, .long, .expired: return .notInMemory(since: follower.examinedVersion)
        }
    }

    /// Each stream sends the commits, prepares them outside the hub, or parks; `partsMax` becomes what is left of it.
    mutating func examine(
        _ ids: [Watch.ID], _ follower: Follower, at now: Instant, _ partsMax: inout Int
    ) -> DeliveryBatch {
        let found = following(follower.query, &partsMax)
        let change: Delivery.Change =
            switch found {
            case .page(let page): .changes(page, since: follower.examinedVersion)
            case .long: .notInMemory(since: follower.examinedVersion)
            case .nothing, .inJournal, .expired, .aboveLatest: .latest(latest.cursor)
            }
        var batch = DeliveryBatch(change)
        let latest = latest.cursor.version
        for id in ids {
            batch.add(
                update(id) { watch in
                    switch found {
                    // A stream that is catching up is not slow, so it gets the next page and no reset.
                    case .page(let page) where page.isMore && follower.isSlow: return watch.prepares(.reset(.slow))
                    case .page(let page): return watch.found(page.next, hasMore: page.isMore, at: now)
                    case .nothing: return watch.foundNothing(upTo: latest, at: now)
                    case .inJournal: return watch.prepares(follower.isSlow ? .reset(.slow) : watch.chunk)
                    case .long: return watch.prepares(watch.chunk)
                    case .expired: return watch.prepares(.reset(follower.isSlow ? .slow : .expired))
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
