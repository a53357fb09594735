internal import StateJSON
internal import Synchronization

/// The fan-out: it compares the watches with the published snapshot, outside the turns.
extension WatchHub {
    /// How many watches the hub compares under one lock; a turn that publishes waits no longer than these take.
    static let batchSize = 256

    func fanOut() {
        let pass = storage.withLock { $0.beginPass() }
        var wokenCount = compareFollowers(pass)
        wokenCount += compare(pass.reached, with: .latest(pass.snapshot.cursor)) { watch, now in
            watch.published(pass.snapshot.cursor.version, at: now)
        }
        for selection in pass.selections {
            if selection.isPlaceOfQueries {
                wokenCount += compareQueries(selection, in: pass.snapshot)
                continue
            }
            wokenCount += compareWithPassed(selection, pass.passed)
            wokenCount += compare(selection, of: pass.snapshot)
        }
        storage.withLock { $0.endPass(pass.snapshot.cursor.version) }
        woken(wokenCount)
    }

    private func compareFollowers(_ pass: HubStorage.Pass) -> Int {
        guard let first = pass.commits.first?.version else { return 0 }
        var wokenCount = 0
        let version = pass.snapshot.cursor.version
        for key in pass.followerKeys where pass.commits.contains(where: key.filter.passes) {
            let ids = storage.withLock { $0.followers(key) }
            // Nearly all followers have examined the same version; a watch that came between two turns has not.
            var groups: [Version: [Watch.ID]] = [:]
            for start in stride(from: 0, to: ids.count, by: Self.batchSize) {
                let ids = ids[start..<min(start + Self.batchSize, ids.count)]
                let examined = storage.withLock { storage in ids.map { storage.examinedVersion(of: $0) } }
                for case (let id, let examined?) in zip(ids, examined) where examined < version {
                    groups[max(examined, first - 1), default: []].append(id)
                }
            }
            for (since, ids) in groups {
                var query = ChangesQuery(since: since, limit: key.limit, weightMax: key.weightMax, filter: key.filter)
                var page = ChangesPage(
                    query, from: pass.commits.drop { $0.version <= since }, latest: pass.snapshot.cursor)
                // A page examines a bounded number of commits: the first that passes may be on a later page.
                while page.commits.isEmpty, page.isMore, page.next > query.since {
                    query.since = page.next
                    page = ChangesPage(
                        query, from: pass.commits.drop { $0.version <= query.since }, latest: pass.snapshot.cursor)
                }
                guard !page.commits.isEmpty else { continue }
                wokenCount += compare(ids, with: .changes(page, since: since)) { watch, now in
                    watch.published(page.next, hasMore: page.isMore, at: now)
                }
            }
        }
        return wokenCount
    }

    /// Compares the watches that wait for one value with what stood for a turn since the last pass.
    ///
    /// A value that takes long to encode is compared as it stands only.
    private func compareWithPassed(_ selection: IndexedSelection, _ passed: [HubStorage.Passed]) -> Int {
        var wokenCount = 0
        for passed in passed where selection.isChanged(by: passed.commits) {
            let snapshot = passed.snapshot
            let wanted = storage.withLock { $0.wantedValues(at: selection) }
            // A view that cannot be encoded has no value for its watches.
            guard !wanted.isEmpty,
                let selected = try? selected(selection.selection, in: snapshot),
                let encoded = selected.bytes.map(Encoded.init)
            else { continue }
            wokenCount += compare(wanted.map(\.id), wanted, Reading(cursor: snapshot.cursor, encoded: encoded))
        }
        return wokenCount
    }

    private func compare(_ selection: IndexedSelection, of snapshot: any AnySnapshot) -> Int {
        // A stream that is sending examines the newest value when its chunk is written, so no value is encoded for it now.
        let now = now()
        guard storage.withLock({ !$0.noteBehind(selection, snapshot.cursor.version, at: now) }) else { return 0 }
        if let kept = selection.kept {
            guard kept.advance(to: snapshot, changes(at: kept.place, in: snapshot, isQuick: true)),
                let reading = kept.reading(snapshot.cursor.epoch)
            else {
                encodeLater(selection)
                return 0
            }
            return compare(selection, with: reading)
        }
        do {
            let selected = try selected(selection.selection, in: snapshot)
            if case .overBudget = selected {
                encodeLater(selection)
                return 0
            }
            return compare(selection, with: Reading(cursor: snapshot.cursor, encoded: selected.bytes.map(Encoded.init)))
        } catch {
            // A view that cannot be encoded has no value for its watches; a GET of the view answers with the error.
            return compare(selection, with: Reading(cursor: snapshot.cursor, encoded: nil))
        }
    }

    /// The value of a selection, unless it takes long; a view is computed here until it has taken long.
    private func selected(_ selection: Selection, in snapshot: any AnySnapshot) throws -> SelectedValue {
        guard case .view = selection else { return try snapshot.selected(selection, countMax: Self.quickCountMax) }
        return snapshot.isSlow(selection) ? .overBudget : try snapshot.selected(selection, countMax: .max)
    }

    /// Has a large selection encoded on the encoding queue, or a view with arguments evaluated, unless it waits there already.
    func encodeLater(_ selection: IndexedSelection) {
        let (isFirst, client) = storage.withLock { storage in
            if storage.queueEncoding(selection) { return (true, storage.client(at: selection) ?? "") }
            // The encoding that waits reads the newest snapshot when its turn comes.
            storage.endComparing(selection)
            return (false, "")
        }
        guard isFirst else { return }
        if selection.selection.isViewWithArguments {
            queues.views(client) { self.encode(selection) }
        } else {
            queues.encoding { self.encode(selection) }
        }
    }

    private func encode(_ selection: IndexedSelection) {
        guard storage.withLock({ $0.beginQueuedEncoding(selection) }) else { return }
        let snapshot = latest
        // A view that cannot be encoded has no value for its watches; a GET of the view answers with the error.
        let reading =
            selection.kept.map { try? $0.read(in: snapshot, keeps: true, changes(at: $0.place, in: snapshot)) }
            ?? Reading(cursor: snapshot.cursor, encoded: try? snapshot.encoded(selection.selection))
        woken(compare(selection, with: reading ?? Reading(cursor: snapshot.cursor, encoded: nil)))
    }

    private func compare(_ selection: IndexedSelection, with reading: Reading) -> Int {
        defer { storage.withLock { $0.endComparing(selection) } }
        return compareWatches(selection, with: reading)
    }

    func compareWatches(_ selection: IndexedSelection, with reading: Reading) -> Int {
        let (ids, wanted) = storage.withLock { storage in
            let ids = storage.endEncoding(selection, reading.encoded, at: reading.cursor.version)
            return (ids, ids.isEmpty ? [] : storage.wantedValues(at: selection))
        }
        return compare(ids, wanted, reading)
    }

    /// Compares watches with a value.
    ///
    /// - Parameter wanted: the watches that wait for one value; clients choose how long it takes to compare theirs, so
    ///   that is done outside the lock.
    private func compare(
        _ ids: [Watch.ID], _ wanted: [(id: Watch.ID, value: JSONValue)], _ reading: Reading
    ) -> Int {
        let version = reading.cursor.version
        let value = wanted.isEmpty ? nil : reading.encoded?.value
        let waiting = Set(wanted.lazy.filter { $0.value != value }.map(\.id))
        return compare(waiting.isEmpty ? ids : ids.filter { !waiting.contains($0) }, with: .value(reading)) {
            watch, now in
            guard case .value(_, let condition) = watch.subject,
                condition.wanted != nil || condition.isMet(by: reading.encoded)
            else { return .nothing }
            let action = watch.published(version, at: now)
            if case .send = action { watch.waitsForOther(than: reading.encoded) }
            return action
        }
    }

    /// Applies an event to watches, some under each hold of the lock, and delivers the resulting actions.
    private func compare(
        _ ids: [Watch.ID], with change: Delivery.Change, _ event: (inout Watch, Instant) -> Watch.Action
    ) -> Int {
        var wokenCount = 0
        // The lowest ID belongs to the oldest request, which is answered first.
        let ids = ids.sorted()
        for start in stride(from: 0, to: ids.count, by: Self.batchSize) {
            let now = now()
            var batch = DeliveryBatch(change)
            storage.withLock { storage in
                for id in ids[start..<min(start + Self.batchSize, ids.count)] {
                    batch.add(storage.update(id) { event(&$0, now) })
                }
            }
            batch.deliver()
            wokenCount += batch.count
        }
        return wokenCount
    }
}

struct DeliveryBatch {
    private struct Key: Hashable {
        let action: Watch.Action
        let receiver: ObjectIdentifier
    }

    private let change: Delivery.Change
    private var groups: [(key: Key, receiver: any WatchReceiver, requests: [any AnyObject & Sendable])] = []

    init(_ change: Delivery.Change) {
        self.change = change
    }

    var count: Int {
        groups.reduce(0) { count, group in
            if case .startTimer = group.key.action { count } else { count + group.requests.count }
        }
    }

    mutating func add(_ update: HubStorage.Update?) {
        guard let update, update.action != .nothing else { return }
        let key = Key(action: update.action, receiver: ObjectIdentifier(update.receiver))
        // There are few groups, so a linear search suffices: mostly one receiver and one action.
        if let index = groups.firstIndex(where: { $0.key == key }) {
            groups[index].requests.append(update.request)
        } else {
            groups.append((key, update.receiver, [update.request]))
        }
    }

    func deliver() {
        for group in groups {
            group.receiver.receive(Delivery(change: change, action: group.key.action, requests: group.requests))
        }
    }
}
