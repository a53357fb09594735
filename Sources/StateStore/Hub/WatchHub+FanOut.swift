internal import StateJSON
internal import Synchronization
internal import Threads

/// The fan-out: it compares the watches with the published snapshot, outside the turns.
extension WatchHub {
    /// How many watches the hub compares under one lock; a turn that publishes waits no longer than these take.
    static let batchSize = 256

    /// How long a pass evaluates and compares selections; the threads for slow work do what is left.
    private static let passTime = Duration.milliseconds(5)
    /// In the turns of so many clients what several of them watch is waiting: the first turn does it for all.
    private static let sharersMax = 8

    private struct Comparison: Hashable {
        let selection: IndexedSelection
        /// The place of a query that a commit has changed: its watches are compared if its answer is another one.
        var place: IndexedSelection?
    }

    func fanOut() {
        let begun = processorTime()
        let pass = storage.withLock { $0.beginPass() }
        var wokenCount = compareFollowers(pass)
        wokenCount += compare(pass.reached, with: .latest(pass.snapshot.cursor)) { watch, now in
            watch.published(pass.snapshot.cursor.version, at: now)
        }
        // Queries on one place share what the commits have changed there.
        var changes: [IndexedSelection: (Version) -> [ChangedMember]?] = [:]
        var (turns, done) = (turns(of: pass), Set<Comparison>())
        while let comparison = turns.next() {
            guard done.insert(comparison).inserted else { continue }
            let selection = comparison.selection
            if let place = selection.place, changes[place] == nil {
                changes[place] = self.changes(at: place.pointers[0], in: pass.snapshot, isQuick: true)
            }
            let left = Self.passTime - (processorTime() - begun)
            wokenCount += compareWithPassed(selection, pass.passed, within: left)
            let known = selection.place.flatMap { changes[$0] }
            if let count = compare(comparison, of: pass.snapshot, within: left, known) {
                wokenCount += count
            } else {
                if comparison.place != nil { storage.withLock { $0.index.beginComparing(selection) } }
                encodeLater(selection, pass.writers)
            }
        }
        storage.withLock { storage in
            for place in pass.selections where place.isPlaceOfQueries { storage.index.endComparing(place) }
            storage.endPass(pass.snapshot.cursor.version)
        }
        woken(wokenCount)
    }

    /// The comparisons of a pass, in turn by client; every second turn is for those who have written.
    private func turns(of pass: HubStorage.Pass) -> ClientTurns<Comparison> {
        var turns = ClientTurns<Comparison>()
        let isAlone = pass.selections.count == 1 && pass.selections.first?.isPlaceOfQueries == false
        func append(_ comparison: Comparison) {
            let size = Int((comparison.selection.time ?? .zero) / .milliseconds(1))
            for client in isAlone ? [""] : clients(at: comparison.selection) {
                turns.append(comparison, of: client, size: size)
            }
        }
        for selection in pass.selections {
            if selection.isPlaceOfQueries {
                let queries = storage.withLock { $0.index.watchedQueries(at: selection) }
                for query in queries { append(Comparison(selection: query, place: selection)) }
            } else {
                append(Comparison(selection: selection))
            }
        }
        for writer in pass.writers { turns.favour(writer) }
        return turns
    }

    private func clients(at selection: IndexedSelection) -> Set<String> {
        let ids = storage.withLock { Array($0.index.watches(at: selection)) }
        var clients: Set<String> = []
        for ids in ids.batches where clients.count < Self.sharersMax {
            clients.formUnion(storage.withLock { $0.clients(of: ids) })
        }
        return clients.isEmpty ? [""] : Set(clients.prefix(Self.sharersMax))
    }

    private func compareFollowers(_ pass: HubStorage.Pass) -> Int {
        guard let first = pass.commits.first?.version else { return 0 }
        var wokenCount = 0
        let version = pass.snapshot.cursor.version
        for query in storage.withLock({ Array($0.followers.keys) })
        where pass.commits.contains(where: query.filter.passes) {
            let ids = storage.withLock { Array($0.followers[query] ?? []) }
            // Nearly all followers have examined the same version; a watch that came between two turns has not.
            var groups: [Version: [Watch.ID]] = [:]
            for ids in ids.batches {
                let examined = storage.withLock { storage in ids.map { storage.examinedVersion(of: $0) } }
                for case (let id, let examined?) in zip(ids, examined) where examined < version {
                    groups[max(examined, first - 1), default: []].append(id)
                }
            }
            for (since, ids) in groups {
                var query = query.after(since)
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

    /// A value that takes long to encode is compared as it stands only.
    private func compareWithPassed(
        _ selection: IndexedSelection, _ passed: [HubStorage.Passed], within left: Duration
    ) -> Int {
        var wokenCount = 0
        for passed in passed where selection.isChanged(by: passed.commits) {
            let snapshot = passed.snapshot
            let wanted = storage.withLock { $0.wantedValues(at: selection) }
            // A view that cannot be encoded has no value for its watches.
            guard !wanted.isEmpty,
                let selected = try? selected(selection, in: snapshot, within: left),
                let encoded = selected.bytes.map(Encoded.init)
            else { continue }
            wokenCount += compare(wanted.map(\.id), wanted, Reading(cursor: snapshot.cursor, encoded: encoded))
        }
        return wokenCount
    }

    /// The number of requests that it has woken, or nil if nothing is compared.
    private func compare(
        _ comparison: Comparison, of snapshot: Snapshot, within left: Duration,
        _ changes: ((Version) -> [ChangedMember]?)?
    ) -> Int? {
        let (selection, now) = (comparison.selection, now())
        // A stream that is sending examines the newest value when its chunk is written, so no value is encoded for it now.
        if comparison.place == nil, storage.withLock({ $0.noteBehind(selection, snapshot.cursor.version, at: now) }) {
            return 0
        }
        guard left > .zero else { return nil }
        if let kept = selection.kept, let changes {
            if !kept.advance(to: snapshot, changes) {
                guard isShort(selection, within: left) else { return nil }
                do {
                    _ = try evaluated(selection, for: nil) { try kept.read(in: snapshot, keeps: true, changes) }
                } catch let stop as QueryStop where stop.isOfThread {
                    return nil
                } catch {
                    // A query that cannot be answered has no answer for its watches; a GET of it says why.
                }
            }
            let epoch = snapshot.cursor.epoch
            guard comparison.place == nil else {
                // A large answer is made elsewhere.
                guard let news = kept.takeUncompared(epoch) else { return nil }
                return news.map { compareWatches(selection, with: $0) } ?? 0
            }
            return kept.reading(epoch).map { compare(selection, with: $0) }
        }
        // A view that cannot be encoded has no value for its watches; a GET of the view answers with the error.
        let selected = (try? selected(selection, in: snapshot, within: left)) ?? .nothing
        if case .overBudget = selected { return nil }
        return compare(selection, with: Reading(cursor: snapshot.cursor, encoded: selected.bytes.map(Encoded.init)))
    }

    private func selected(
        _ selection: IndexedSelection, in snapshot: Snapshot, within left: Duration
    ) throws -> SelectedValue {
        let isEvaluated = selection.selection.base.isView || selection.selection.isQuery
        guard isEvaluated, isShort(selection, within: left) else {
            return try snapshot.selected(selection.selection, countMax: Self.quickCountMax)
        }
        return try measured(selection) { try snapshot.selected(selection.selection, countMax: .max) }
    }

    private func isShort(_ selection: IndexedSelection, within left: Duration) -> Bool {
        selection.time.map { $0 <= left } ?? false
    }

    func measured<Value>(_ selection: IndexedSelection, _ evaluate: () throws -> Value) rethrows -> Value {
        let begun = processorTime()
        defer { selection.note(processorTime() - begun) }
        return try evaluate()
    }

    private func encodeLater(_ selection: IndexedSelection, _ writers: Set<String>) {
        let clients = clients(at: selection)
        let new = storage.withLock { $0.queueEncoding(selection, in: clients, writers, atMost: Self.sharersMax) }
        for client in clients where new.contains(client) || writers.contains(client) {
            let work: @Sendable () -> Void = { self.encode(selection, in: client) }
            queues.slow(client, selection.time, writers.contains(client), new.contains(client) ? work : nil)
        }
    }

    private func encode(_ selection: IndexedSelection, in client: String) {
        guard storage.withLock({ $0.beginQueuedEncoding(selection, in: client) }) else { return }
        let snapshot = latest
        var reading = Reading(cursor: snapshot.cursor, encoded: nil)
        do {
            reading = try evaluated(selection, for: client) {
                try selection.kept?.read(
                    in: snapshot, keeps: true, changes(at: selection.kept?.place ?? .root, in: snapshot))
                    ?? Reading(cursor: snapshot.cursor, encoded: snapshot.encoded(selection.selection))
            }
        } catch let stop as QueryStop where stop.isOfThread {
            // Nobody waits, or there is no memory: who waits nevertheless learns it when it asks again.
            storage.withLock { $0.index.endComparing(selection) }
            return drain(storage.withLock { Array($0.index.watches(at: selection)) })
        } catch {
            // A view that cannot be encoded has no value for its watches; a GET of the view answers with the error.
        }
        woken(compare(selection, with: reading))
    }

    /// A `client` of nil is one of those who wait, on the thread of the fan-out.
    private func evaluated<Value>(
        _ selection: IndexedSelection, for client: String?, _ evaluate: () throws -> Value
    ) throws -> Value {
        var work = QueryWork()
        work.servesOthers = client == nil
        (work.memory, work.client) = storage.withLock { ($0.limits.memory, client ?? $0.client(at: selection) ?? "") }
        work.isWanted = { _ in self.storage.withLock { $0.client(at: selection) != nil } }
        return try QueryWork.$current.withValue(work) { try measured(selection, evaluate) }
    }

    private func compare(_ selection: IndexedSelection, with reading: Reading) -> Int {
        defer { storage.withLock { $0.index.endComparing(selection) } }
        return compareWatches(selection, with: reading)
    }

    private func compareWatches(_ selection: IndexedSelection, with reading: Reading) -> Int {
        selection.kept?.noteCompared(reading)
        let (ids, wanted, isRefused) = storage.withLock { storage in
            let (ids, isRefused) = storage.endEncoding(selection, reading.encoded, at: reading.cursor.version)
            return (ids, ids.isEmpty ? [] : storage.wantedValues(at: selection), isRefused)
        }
        if isRefused, reading.encoded?.isLarge == true {
            // Whoever still wants the value asks again, and learns that there is no memory for it.
            drain(ids)
            return 0
        }
        return compare(ids, wanted, reading)
    }

    /// Clients choose how long it takes to compare the values of `wanted`, so that is done outside the lock.
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

    private func compare(
        _ ids: [Watch.ID], with change: Delivery.Change, _ event: (inout Watch, Instant) -> Watch.Action
    ) -> Int {
        // The lowest ID belongs to the oldest request, which is answered first.
        apply(to: ids.sorted(), { _ in change }) { storage, id, now in storage.update(id) { event(&$0, now) } }
    }
}

extension [Watch.ID] {
    var batches: [ArraySlice<Watch.ID>] {
        stride(from: 0, to: count, by: WatchHub.batchSize).map { self[$0..<Swift.min($0 + WatchHub.batchSize, count)] }
    }
}

struct DeliveryBatch {
    private let change: Delivery.Change
    private var groups: [(receiver: any WatchReceiver, action: Watch.Action, requests: [any AnyObject & Sendable])] = []

    init(_ change: Delivery.Change) { self.change = change }

    var count: Int {
        groups.reduce(0) { count, group in
            if case .startTimer = group.action { count } else { count + group.requests.count }
        }
    }

    mutating func add(_ update: HubStorage.Update?) {
        guard let update, update.action != .nothing, update.action != .examine else { return }
        // There are few groups, so a linear search suffices: mostly one receiver and one action.
        if let index = groups.firstIndex(where: { $0.receiver === update.receiver && $0.action == update.action }) {
            groups[index].requests.append(update.request)
        } else {
            groups.append((update.receiver, update.action, [update.request]))
        }
    }

    func deliver() {
        for group in groups {
            group.receiver.receive(Delivery(change: change, action: group.action, requests: group.requests))
        }
    }
}
