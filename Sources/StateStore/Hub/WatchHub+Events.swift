internal import StateJSON
internal import Synchronization

extension WatchHub {
    // MARK: Events of one watch

    package func decided(_ id: Watch.ID, _ outcome: Outcome) {
        apply(to: [id], { _ in .outcome(outcome) }) { storage, id, _ in storage.update(id) { $0.decided(outcome) } }
    }

    /// Ends the watch of a POST whose cascade is complete; false if the POST no longer waits.
    package func completed(_ id: Watch.ID) -> Bool { storage.withLock { $0.update(id) { $0.completed() } != nil } }

    package func outcome(of id: Watch.ID) -> Outcome? { storage.withLock { $0.watches[id]?.outcome } }

    package func examinedVersion(of id: Watch.ID) -> Version? { storage.withLock { $0.examinedVersion(of: id) } }

    package func isSlow(_ id: Watch.ID) -> Bool { storage.withLock { $0.watches[id]?.isSlow ?? false } }

    /// The delivery that the caller has to carry out; nil if another event has already ended the watch.
    package func end(_ id: Watch.ID) -> Delivery? {
        storage.withLock { storage in
            let change = storage.newest(of: id)
            guard let update = storage.update(id, { $0.ends() }), update.action != .nothing else { return nil }
            return Delivery(change: change, action: update.action, requests: [update.request])
        }
    }

    /// Continues a stream whose next chunk was prepared outside the hub and holds everything up to the version; false
    /// where the stream has ended meanwhile.
    package func prepared(_ id: Watch.ID, _ chunk: Watch.Chunk, _ version: Version, hasMore: Bool) -> Bool {
        let now = now()
        let update = storage.withLock { storage in
            storage.update(id) { $0.prepared(chunk, version, hasMore: hasMore, at: now) }
        }
        if case .send? = update?.action { return true }
        return false
    }

    /// Notes that the chunk that is being sent to streams ends before what the hub has given for it.
    package func returns(_ ids: [Watch.ID], to version: Version) {
        storage.withLock { storage in
            for id in ids { _ = storage.update(id) { $0.returns(to: version) } }
        }
    }

    // MARK: Events of many

    package func timers(_ ids: [Watch.ID]) {
        // Waits with one filter and one examined version get the same answer.
        var groups: [ChangesQuery?: [Watch.ID]] = [:]
        storage.withLock { storage in
            for id in ids {
                groups[storage.watches[id].flatMap { $0.isStream ? nil : $0.query }, default: []].append(id)
            }
        }
        for (query, ids) in groups {
            apply(to: ids, { storage in query.map { storage.newest($0) } ?? .latest(storage.latest.cursor) }) {
                storage, id, now in storage.update(id) { $0.timer(at: now) }
            }
        }
    }

    package func writable(_ ids: [Watch.ID]) {
        apply(to: ids) { storage, id, now in storage.update(id) { $0.writable(at: now) } }
    }

    package func silent(_ ids: [Watch.ID]) {
        // Streams that were woken together fall silent together.
        apply(to: ids) { storage, id, now in
            storage.comparedVersion(of: id).flatMap { version in
                storage.update(id) { $0.silent(examined: version, at: now) }
            }
        }
    }

    /// Ends watches because the server stops; a stream that is sending ends behind its chunk.
    package func drain(_ ids: some Sequence<Watch.ID>) {
        for id in ids {
            apply(to: [id], { $0.newest(of: id) }) { storage, id, _ in storage.update(id) { $0.draining() } }
        }
    }

    /// The IDs in order, at a cost of O(n log n) in the number of watches.
    package var watchIDs: [Watch.ID] { storage.withLock { $0.watches.keys.sorted() } }

    package var watchedRequests: [any AnyObject & Sendable] { storage.withLock { $0.watches.values.map(\.request) } }

    /// Applies an event to watches, some under each hold of the lock, and examines those that are behind; the result
    /// counts the requests that it has woken.
    @discardableResult
    func apply(
        to ids: [Watch.ID], _ change: (HubStorage) -> Delivery.Change = { .latest($0.latest.cursor) },
        _ event: (inout HubStorage, Watch.ID, Instant) -> HubStorage.Update?
    ) -> Int {
        ids.batches.reduce(0) { wokenCount, ids in
            let now = now()
            var behind: [Watch.ID] = []
            let batch = storage.withLock { storage in
                var batch = DeliveryBatch(change(storage))
                for id in ids {
                    let update = event(&storage, id, now)
                    if update?.action == .examine { behind.append(id) }
                    batch.add(update)
                }
                return batch
            }
            batch.deliver()
            if !behind.isEmpty { examine(behind) }
            return wokenCount + batch.count
        }
    }

    // MARK: Examining

    private func examine(_ ids: [Watch.ID]) {
        let now = now()
        var values: [Selection: [Watch.ID]] = [:]
        let batches = storage.withLock { storage in
            var prepared = DeliveryBatch(.latest(storage.latest.cursor))
            // Streams with one filter and one examined version are examined together.
            var followers: [ChangesQuery: [Watch.ID]] = [:]
            for id in ids {
                guard let watch = storage.watches[id], watch.isStream, watch.state == .sending else { continue }
                switch (watch.subject, watch.chunk) {
                case (.value(let selection, _), _): values[selection, default: []].append(id)
                case (.changes, .reset(_)), (.changes, .snapshot(_)):
                    prepared.add(storage.update(id) { $0.prepares(watch.chunk) })
                case (.changes, _): if let query = watch.query { followers[query, default: []].append(id) }
                case (.version, _), (.cascade, _): break
                }
            }
            var partsMax = Self.quickCountMax
            return [prepared] + followers.map { storage.examine($1, $0, at: now, &partsMax) }
        }
        for batch in batches { batch.deliver() }
        for (selection, ids) in values { examine(ids, selection) }
    }

    private func examine(_ ids: [Watch.ID], _ selection: Selection) {
        let seen: Reading?
        do {
            seen = try readQuickly(selection)
        } catch {
            // A view that cannot be encoded has no value for its watches; a GET of the view answers with the error.
            seen = Reading(cursor: latest.cursor, encoded: nil)
        }
        var mustFanOut = false
        apply(to: ids, { storage in seen.map { .value($0) } ?? .latest(storage.latest.cursor) }) { storage, id, now in
            guard let seen, case .value(_, let condition)? = storage.watches[id]?.subject,
                condition.isMet(by: seen.encoded)
            else {
                mustFanOut = storage.park(id, examined: seen?.cursor.version) || mustFanOut
                return nil
            }
            return storage.update(id) { watch in
                watch.waitsForOther(than: seen.encoded)
                return watch.found(seen.cursor.version, hasMore: false, at: now)
            }
        }
        if mustFanOut { scheduleFanOut() }
    }
}
