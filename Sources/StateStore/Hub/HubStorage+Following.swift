internal import StateJSON

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
