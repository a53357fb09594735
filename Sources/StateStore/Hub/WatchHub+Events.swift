internal import StateJSON
internal import Synchronization

extension WatchHub {
    // MARK: Events of one watch

    package func decided(_ id: Watch.ID, _ outcome: Outcome) {
        DeliveryBatch(.outcome(outcome), storage.withLock { $0.update(id) { $0.decided(outcome) } }).deliver()
    }

    /// Ends the watch of a POST whose cascade is complete; nil if the POST no longer waits.
    package func completed(_ id: Watch.ID) -> Outcome? {
        storage.withLock { storage in
            let outcome = storage.watches[id]?.outcome
            return storage.update(id) { $0.completed() }.flatMap { _ in outcome }
        }
    }

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
        let now = now()
        var behind: [Watch.ID] = []
        // Watches with one filter and one examined version get the same answer.
        var batches: [ChangesQuery?: DeliveryBatch] = [:]
        storage.withLock { storage in
            for id in ids {
                let query = storage.watches[id]?.query
                guard let update = storage.update(id, { $0.timer(at: now) }) else { continue }
                if update.action == .examine {
                    behind.append(id)
                } else {
                    batches[
                        query,
                        default: DeliveryBatch(query.map { storage.newest($0) } ?? .latest(storage.latest.cursor))
                    ].add(update)
                }
            }
        }
        for batch in batches.values { batch.deliver() }
        for ids in behind.batches { examine(ids) }
    }

    package func writable(_ ids: [Watch.ID]) {
        var behind: [Watch.ID] = []
        apply(to: ids, .latest(latest.cursor)) { storage, id, now in
            let update = storage.update(id) { $0.writable(at: now) }
            if update?.action == .examine { behind.append(id) }
            return update
        }
        for ids in behind.batches { examine(ids) }
    }

    package func silent(_ ids: [Watch.ID]) {
        // Streams that were woken together fall silent together.
        apply(to: ids, .latest(latest.cursor)) { storage, id, now in
            storage.comparedVersion(of: id).flatMap { version in
                storage.update(id) { $0.silent(examined: version, at: now) }
            }
        }
    }

    /// Ends watches because the server stops; a stream that is sending ends behind its chunk.
    package func drain(_ ids: some Sequence<Watch.ID>) {
        for id in ids {
            let batch = storage.withLock { storage in
                let change = storage.newest(of: id)
                return DeliveryBatch(change, storage.update(id) { $0.draining() })
            }
            batch.deliver()
        }
    }

    /// The IDs in order, at a cost of O(n log n) in the number of watches.
    package var watchIDs: [Watch.ID] { storage.withLock { $0.watches.keys.sorted() } }

    package var watchedRequests: [any AnyObject & Sendable] { storage.withLock { $0.watches.values.map(\.request) } }

    /// Applies an event to watches, some under each hold of the lock; the result counts the requests that it has woken.
    @discardableResult
    func apply(
        to ids: [Watch.ID], _ change: @autoclosure () -> Delivery.Change,
        _ event: (inout HubStorage, Watch.ID, Instant) -> HubStorage.Update?
    ) -> Int {
        ids.batches.reduce(0) { wokenCount, ids in
            let now = now()
            var batch = DeliveryBatch(change())
            storage.withLock { storage in
                for id in ids { batch.add(event(&storage, id, now)) }
            }
            batch.deliver()
            return wokenCount + batch.count
        }
    }

    // MARK: Examining

    private func examine(_ ids: ArraySlice<Watch.ID>) {
        let now = now()
        var batches: [DeliveryBatch] = []
        var values: [Selection: [Watch.ID]] = [:]
        storage.withLock { storage in
            // Streams with one filter and one examined version are examined together.
            var followers: [ChangesQuery: [Watch.ID]] = [:]
            for id in ids {
                switch storage.watches[id]?.nextRead {
                case .value(let selection)?: values[selection, default: []].append(id)
                case .changes(let query)?: followers[query, default: []].append(id)
                case .prepared(let chunk)?:
                    batches.append(
                        DeliveryBatch(.latest(storage.latest.cursor), storage.update(id) { $0.prepares(chunk) }))
                case nil: break
                }
            }
            var partsMax = Self.quickCountMax
            for (query, ids) in followers { batches.append(storage.examine(ids, query, at: now, &partsMax)) }
        }
        for batch in batches { batch.deliver() }
        for (selection, ids) in values { examine(ids, selection, at: now) }
    }

    private func examine(_ ids: [Watch.ID], _ selection: Selection, at now: Instant) {
        let seen: Reading?
        do {
            seen = try readQuickly(selection)
        } catch {
            // A view that cannot be encoded has no value for its watches; a GET of the view answers with the error.
            seen = Reading(cursor: latest.cursor, encoded: nil)
        }
        var batch = DeliveryBatch(seen.map { .value($0) } ?? .latest(latest.cursor))
        var mustFanOut = false
        storage.withLock { storage in
            for id in ids {
                guard let seen, storage.watches[id]?.isMet(by: seen) == true else {
                    mustFanOut = storage.park(id, examined: seen?.cursor.version) || mustFanOut
                    continue
                }
                batch.add(
                    storage.update(id) { watch in
                        watch.waitsForOther(than: seen.encoded)
                        return watch.found(seen.cursor.version, hasMore: false, at: now)
                    })
            }
        }
        batch.deliver()
        if mustFanOut { scheduleFanOut() }
    }
}
