internal import StateJSON
internal import Synchronization

/// What became of the wish to watch.
package enum Watching: Sendable {
    /// The watch waits; its receiver hears of it.
    case parked
    /// What it would wait for is so already.
    case ready
    /// There is no room for it.
    case refused(WatchRefusal)
}

/// Watches come, and things happen to them.
extension WatchHub {
    // MARK: Coming

    /// Waits until a selection meets a condition, unless the value that was seen meets it.
    ///
    /// - Parameter seen: what ``readQuickly(_:)`` has found; nil where the value takes long to encode, and is then encoded
    ///   beside other work.
    package func watch(_ watch: Watch, seen: Reading?) -> Watching {
        if let seen, case .value(_, let condition) = watch.subject, condition.isMet(by: seen.encoded) { return .ready }
        let (watching, mustFanOut) = storage.withLock { storage in
            if let refusal = storage.register(watch) { return (Watching.refused(refusal), false) }
            storage.file(watch.id)
            return (.parked, storage.park(watch.id, lookedAt: seen?.cursor.version))
        }
        if mustFanOut { scheduleFanOut() }
        return watching
    }

    /// Waits until the store has reached a version, unless it has.
    package func watch(_ watch: Watch, until version: Version) -> Watching {
        storage.withLock { storage in
            guard storage.latest.cursor.version < version else { return .ready }
            return storage.admit(watch)
        }
    }

    /// The commits after a position; where there are none, the watch waits for the first.
    package func watch(_ watch: Watch, _ query: ChangesQuery) -> (Following, Watching) {
        storage.withLock { storage in
            let found = storage.following(query)
            guard case .nothing(let latest) = found else { return (found, .ready) }
            var watch = watch
            // Everything up to the present has been looked at.
            watch.position = latest.version
            return (found, storage.admit(watch))
        }
    }

    /// Counts a stream in, whose head is on its way to the client, or a POST that waits for its cascade.
    package func register(_ watch: Watch) -> WatchRefusal? {
        storage.withLock { storage in
            if let refusal = storage.register(watch) { return refusal }
            storage.file(watch.id)
            if !watch.isStream { _ = storage.park(watch.id, lookedAt: nil) }
            return nil
        }
    }

    // MARK: Events of one watch

    /// The action of a POST that waits has been decided.
    package func decided(_ id: Watch.ID, _ outcome: Outcome) {
        deliver(.outcome(outcome), to: id) { $0.decided(outcome) }
    }

    /// The cascade of a POST that waits is complete.
    ///
    /// - Returns: what became of its action, where the POST still waits.
    package func completed(_ id: Watch.ID) -> Outcome? {
        storage.withLock { storage in
            let outcome = storage.watch(id)?.outcome
            return storage.change(id) { $0.completed() }.flatMap { _ in outcome }
        }
    }

    /// What became of the action of a POST that waits; nil before its turn, or where there is no such watch.
    package func outcome(of id: Watch.ID) -> Outcome? { storage.withLock { $0.watch(id)?.outcome } }

    /// The newest version that a watch has looked at.
    package func position(of id: Watch.ID) -> Version? { storage.withLock { $0.position(of: id) } }

    /// The time of a watch is up, its client has closed its side, or the server ends it.
    ///
    /// - Returns: what to answer, or nil where the watch is being answered at this moment or is not here.
    package func end(_ id: Watch.ID) -> Delivery? {
        storage.withLock { storage in
            let news = storage.newest(of: id)
            guard let change = storage.change(id, { $0.ends() }), change.action != .nothing else { return nil }
            return Delivery(news: news, action: change.action, requests: [change.request])
        }
    }

    /// What a stream needs has been read elsewhere.
    ///
    /// - Parameters:
    ///   - version: up to which it tells everything.
    ///   - hasMore: whether there is more to be had at once.
    /// - Returns: whether it is to be sent; false where the stream has ended meanwhile.
    package func prepared(_ id: Watch.ID, _ chunk: Watch.Chunk, _ version: Version, hasMore: Bool) -> Bool {
        let now = now()
        let change = storage.withLock { storage in
            storage.change(id) { $0.prepared(chunk, version, hasMore: hasMore, at: now) }
        }
        if case .send? = change?.action { return true }
        return false
    }

    // MARK: Events of many

    /// The debounce time of these watches is over.
    package func timers(_ ids: [Watch.ID]) {
        let now = now()
        var behind: [Watch.ID] = []
        var latest = DeliveryBatch(.latest(latest.cursor))
        // Watches that stand at one position and follow the same are answered the same.
        var changes: [HubStorage.Follower: DeliveryBatch] = [:]
        storage.withLock { storage in
            for id in ids {
                let follower = storage.watch(id)?.follower
                guard let change = storage.change(id, { $0.timer(at: now) }) else { continue }
                if change.action == .look {
                    behind.append(id)
                } else if let follower {
                    changes[follower, default: DeliveryBatch(storage.newest(follower))].add(change)
                } else {
                    latest.add(change)
                }
            }
        }
        latest.deliver()
        for batch in changes.values { batch.deliver() }
        look(behind)
    }

    /// Everything that these streams were given has been written.
    package func writable(_ ids: [Watch.ID]) {
        let now = now()
        var behind: [Watch.ID] = []
        var batch = DeliveryBatch(.latest(latest.cursor))
        storage.withLock { storage in
            for id in ids {
                let change = storage.change(id) { $0.writable(at: now) }
                if change?.action == .look { behind.append(id) } else { batch.add(change) }
            }
        }
        batch.deliver()
        look(behind)
    }

    /// These streams have been silent for their heartbeat.
    package func silent(_ ids: [Watch.ID]) {
        let now = now()
        var batch = DeliveryBatch(.latest(latest.cursor))
        storage.withLock { storage in
            for id in ids {
                guard let version = storage.comparedVersion(of: id) else { continue }
                batch.add(storage.change(id) { $0.silent(lookedAt: version, at: now) })
            }
        }
        batch.deliver()
    }

    /// The server is stopping: these watches end.
    package func drain(_ ids: some Sequence<Watch.ID>) {
        for id in ids {
            let (change, news) = storage.withLock { storage -> (HubStorage.Change?, Delivery.News) in
                let news = storage.newest(of: id)
                return (storage.change(id) { $0.draining() }, news)
            }
            deliver(news, [change])
        }
    }

    /// The IDs of all watches, in their order.
    package var watchIDs: [Watch.ID] { storage.withLock { $0.watchIDs } }

    private func deliver(_ news: Delivery.News, to id: Watch.ID, _ event: (inout Watch) -> Watch.Action) {
        deliver(news, [storage.withLock { $0.change(id, event) }])
    }

    private func deliver(_ news: Delivery.News, _ changes: [HubStorage.Change?]) {
        var batch = DeliveryBatch(news)
        for change in changes { batch.add(change) }
        batch.deliver()
    }

    // MARK: Looking

    /// Streams look at what is newer than their position: it is sent, or they wait.
    private func look(_ ids: [Watch.ID]) {
        guard !ids.isEmpty else { return }
        let now = now()
        var batches: [DeliveryBatch] = []
        var values: [Selection: [Watch.ID]] = [:]
        storage.withLock { storage in
            // Streams that stand at one position and follow the same look once.
            var followers: [HubStorage.Follower: [Watch.ID]] = [:]
            for id in ids {
                switch storage.watch(id)?.look {
                case .value(let selection)?: values[selection, default: []].append(id)
                case .changes(let follower)?: followers[follower, default: []].append(id)
                case .reset(let reason)?:
                    var batch = DeliveryBatch(.latest(storage.latest.cursor))
                    batch.add(storage.change(id) { $0.prepares(.reset(reason)) })
                    batches.append(batch)
                case nil: break
                }
            }
            for (follower, ids) in followers { batches.append(storage.look(ids, follower, at: now)) }
        }
        for batch in batches { batch.deliver() }
        for (selection, ids) in values { look(ids, selection, at: now) }
    }

    private func look(_ ids: [Watch.ID], _ selection: Selection, at now: Instant) {
        let seen: Reading?
        do {
            seen = try readQuickly(selection)
        } catch {
            // A view that cannot be encoded has no value for its watches; a GET is told why.
            seen = Reading(cursor: latest.cursor, encoded: nil)
        }
        var batch = DeliveryBatch(seen.map { .value($0) } ?? .latest(latest.cursor))
        var mustFanOut = false
        storage.withLock { storage in
            for id in ids {
                guard let seen, storage.watch(id)?.isMet(by: seen) == true else {
                    mustFanOut = storage.park(id, lookedAt: seen?.cursor.version) || mustFanOut
                    continue
                }
                batch.add(
                    storage.change(id) { watch in
                        watch.waitsForOther(than: seen.encoded)
                        return watch.found(seen.cursor.version, hasMore: false, at: now)
                    })
            }
        }
        batch.deliver()
        if mustFanOut { scheduleFanOut() }
    }
}
