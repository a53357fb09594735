internal import StateJSON
internal import Synchronization

extension WatchHub {
    // MARK: Events of one watch

    /// Applies the outcome of the transaction that a waiting POST has dispatched.
    package func decided(_ id: Watch.ID, _ outcome: Outcome) {
        deliver(.outcome(outcome), to: id) { $0.decided(outcome) }
    }

    /// Ends the watch of a POST whose cascade is complete.
    ///
    /// - Returns: the outcome of its transaction, or nil if the POST no longer waits.
    package func completed(_ id: Watch.ID) -> Outcome? {
        storage.withLock { storage in
            let outcome = storage.watch(id)?.outcome
            return storage.update(id) { $0.completed() }.flatMap { _ in outcome }
        }
    }

    /// The outcome of a waiting POST's transaction; nil before its turn, or where there is no such watch.
    package func outcome(of id: Watch.ID) -> Outcome? { storage.withLock { $0.watch(id)?.outcome } }

    /// The newest version that a watch has examined, if there is a watch and it has examined one.
    package func examinedVersion(of id: Watch.ID) -> Version? { storage.withLock { $0.examinedVersion(of: id) } }

    /// Whether the client of a stream has taken long for a chunk; false where there is no such watch.
    package func isSlow(_ id: Watch.ID) -> Bool { storage.withLock { $0.watch(id)?.isSlow ?? false } }

    /// Ends a watch whose deadline has passed, whose client has closed its side, or that the server ends.
    ///
    /// - Returns: the delivery that the caller has to carry out, or nil if another event has already ended the watch.
    package func end(_ id: Watch.ID) -> Delivery? {
        storage.withLock { storage in
            let change = storage.newest(of: id)
            guard let update = storage.update(id, { $0.ends() }), update.action != .nothing else { return nil }
            return Delivery(change: change, action: update.action, requests: [update.request])
        }
    }

    /// Continues a stream whose next chunk was prepared outside the hub.
    ///
    /// - Parameters:
    ///   - version: the version up to which the chunk holds everything.
    ///   - hasMore: whether more is available at once.
    /// - Returns: whether the caller has to send the chunk; false where the stream has ended meanwhile.
    package func prepared(_ id: Watch.ID, _ chunk: Watch.Chunk, _ version: Version, hasMore: Bool) -> Bool {
        let now = now()
        let update = storage.withLock { storage in
            storage.update(id) { $0.prepared(chunk, version, hasMore: hasMore, at: now) }
        }
        if case .send? = update?.action { return true }
        return false
    }

    /// Notes that the chunk that is being sent to streams ends before what the hub has given for it.
    ///
    /// - Parameter version: the version up to which the chunk holds everything.
    package func returns(_ ids: [Watch.ID], to version: Version) {
        storage.withLock { storage in
            for id in ids {
                _ = storage.update(id) { watch in
                    watch.returns(to: version)
                    return .nothing
                }
            }
        }
    }

    // MARK: Events of many

    /// Applies the end of the debounce time to watches.
    package func timers(_ ids: [Watch.ID]) {
        let now = now()
        var behind: [Watch.ID] = []
        var latest = DeliveryBatch(.latest(latest.cursor))
        // Watches with one filter and one examined version get the same answer.
        var changes: [HubStorage.Follower: DeliveryBatch] = [:]
        storage.withLock { storage in
            for id in ids {
                let follower = storage.watch(id)?.follower
                guard let update = storage.update(id, { $0.timer(at: now) }) else { continue }
                if update.action == .examine {
                    behind.append(id)
                } else if let follower {
                    changes[follower, default: DeliveryBatch(storage.newest(follower))].add(update)
                } else {
                    latest.add(update)
                }
            }
        }
        latest.deliver()
        for batch in changes.values { batch.deliver() }
        examine(behind)
    }

    /// Continues streams whose last chunk the client has taken.
    package func writable(_ ids: [Watch.ID]) {
        for start in stride(from: 0, to: ids.count, by: Self.batchSize) {
            let now = now()
            var behind: [Watch.ID] = []
            var batch = DeliveryBatch(.latest(latest.cursor))
            storage.withLock { storage in
                for id in ids[start..<min(start + Self.batchSize, ids.count)] {
                    let update = storage.update(id) { $0.writable(at: now) }
                    if update?.action == .examine { behind.append(id) } else { batch.add(update) }
                }
            }
            batch.deliver()
            examine(behind)
        }
    }

    /// Sends heartbeats to streams that have sent nothing for their heartbeat interval.
    package func silent(_ ids: [Watch.ID]) {
        // Streams that were woken together fall silent together.
        for start in stride(from: 0, to: ids.count, by: Self.batchSize) {
            let now = now()
            var batch = DeliveryBatch(.latest(latest.cursor))
            storage.withLock { storage in
                for id in ids[start..<min(start + Self.batchSize, ids.count)] {
                    guard let version = storage.comparedVersion(of: id) else { continue }
                    batch.add(storage.update(id) { $0.silent(examined: version, at: now) })
                }
            }
            batch.deliver()
        }
    }

    /// Ends watches because the server stops; a stream that is sending ends behind its chunk.
    package func drain(_ ids: some Sequence<Watch.ID>) {
        for id in ids {
            let (update, change) = storage.withLock { storage -> (HubStorage.Update?, Delivery.Change) in
                let change = storage.newest(of: id)
                return (storage.update(id) { $0.draining() }, change)
            }
            deliver(change, [update])
        }
    }

    /// The IDs of all watches, sorted.
    ///
    /// The cost is O(n log n) in the number of watches.
    package var watchIDs: [Watch.ID] { storage.withLock { $0.watchIDs } }

    /// The requests of all watches, in no order.
    package var watchedRequests: [any AnyObject & Sendable] { storage.withLock { $0.watchedRequests } }

    private func deliver(_ change: Delivery.Change, to id: Watch.ID, _ event: (inout Watch) -> Watch.Action) {
        deliver(change, [storage.withLock { $0.update(id, event) }])
    }

    private func deliver(_ change: Delivery.Change, _ updates: [HubStorage.Update?]) {
        var batch = DeliveryBatch(change)
        for update in updates { batch.add(update) }
        batch.deliver()
    }

    // MARK: Examining

    private func examine(_ ids: [Watch.ID]) {
        guard !ids.isEmpty else { return }
        let now = now()
        var batches: [DeliveryBatch] = []
        var values: [Selection: [Watch.ID]] = [:]
        storage.withLock { storage in
            // Streams with one filter and one examined version are examined together.
            var followers: [HubStorage.Follower: [Watch.ID]] = [:]
            for id in ids {
                switch storage.watch(id)?.nextRead {
                case .value(let selection)?: values[selection, default: []].append(id)
                case .changes(let follower)?: followers[follower, default: []].append(id)
                case .prepared(let chunk)?:
                    var batch = DeliveryBatch(.latest(storage.latest.cursor))
                    batch.add(storage.update(id) { $0.prepares(chunk) })
                    batches.append(batch)
                case nil: break
                }
            }
            var partsMax = Self.quickCountMax
            for (follower, ids) in followers {
                batches.append(storage.examine(ids, follower, at: now, &partsMax))
            }
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
                guard let seen, storage.watch(id)?.isMet(by: seen) == true else {
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
