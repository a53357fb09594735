internal import StateJSON
internal import Synchronization

/// The fan-out: watches are compared with what turns have published, beside the turns.
extension WatchHub {
    /// How many watches are compared under one lock: a turn that publishes waits no longer than these take.
    private static let portion = 256

    func fanOut() {
        let pass = storage.withLock { $0.beginPass() }
        compareFollowers(pass)
        compare(pass.reached, with: .latest(pass.snapshot.cursor)) { watch, now in
            watch.published(pass.snapshot.cursor.version, at: now)
        }
        for selection in pass.selections {
            compareWithPassed(selection, pass.passed)
            compare(selection, of: pass.snapshot)
        }
        storage.withLock { $0.endPass(pass.snapshot.cursor.version) }
    }

    private func compareFollowers(_ pass: HubStorage.Pass) {
        guard let first = pass.commits.first?.version else { return }
        let version = pass.snapshot.cursor.version
        for key in pass.followerKeys where pass.commits.contains(where: key.filter.passes) {
            let ids = storage.withLock { $0.followers(key) }
            // Nearly all stand at one position; those who came between two turns do not.
            var groups: [Version: [Watch.ID]] = [:]
            storage.withLock { storage in
                for id in ids {
                    guard let position = storage.position(of: id), position < version else { continue }
                    groups[max(position, first - 1), default: []].append(id)
                }
            }
            for (since, ids) in groups {
                let query = ChangesQuery(since: since, limit: key.limit, weightMax: key.weightMax, filter: key.filter)
                let rest = pass.commits.drop { $0.version <= since }
                let page = ChangesPage(query, from: rest, latest: pass.snapshot.cursor)
                guard !page.commits.isEmpty else { continue }
                compare(ids, with: .changes(page, since: since)) { watch, now in
                    watch.published(page.next, hasMore: page.isMore, at: now)
                }
            }
        }
    }

    /// Compares the watches that wait for one value with what stood for a turn since the last pass.
    ///
    /// A value that takes long to encode is compared as it stands only.
    private func compareWithPassed(_ selection: Selection, _ passed: [any AnySnapshot]) {
        guard !passed.isEmpty else { return }
        for snapshot in passed {
            let ids = storage.withLock { $0.watchesForOneValue(at: selection) }
            // A view that cannot be encoded has no value for its watches.
            guard !ids.isEmpty, let selected = try? snapshot.selected(selection, countMax: Self.quickCountMax),
                let encoded = selected.text.map(Encoded.init)
            else { continue }
            compare(ids, Reading(cursor: snapshot.cursor, encoded: encoded))
        }
    }

    private func compare(_ selection: Selection, of snapshot: any AnySnapshot) {
        // Streams whose last chunk is still on its way look for themselves when it is written: nothing is encoded for them.
        guard storage.withLock({ !$0.noteBehind(selection, snapshot.cursor.version, at: now()) }) else { return }
        do {
            let selected = try snapshot.selected(selection, countMax: Self.quickCountMax)
            if case .overBudget = selected { return queues.encoding { self.encode(selection) } }
            compare(selection, with: Reading(cursor: snapshot.cursor, encoded: selected.text.map(Encoded.init)))
        } catch {
            // A view that cannot be encoded has no value for its watches; a later GET is told why.
            compare(selection, with: Reading(cursor: snapshot.cursor, encoded: nil))
        }
    }

    /// Encodes the newest value of a selection that takes long.
    private func encode(_ selection: Selection) {
        let snapshot = latest
        // As above: a later GET is told why.
        let encoded = try? snapshot.encoded(selection)
        compare(selection, with: Reading(cursor: snapshot.cursor, encoded: encoded))
    }

    private func compare(_ selection: Selection, with reading: Reading) {
        compare(storage.withLock { $0.endEncoding(selection, reading.encoded, at: reading.cursor.version) }, reading)
        storage.withLock { $0.endComparing(selection) }
    }

    private func compare(_ ids: [Watch.ID], _ reading: Reading) {
        let version = reading.cursor.version
        lazy var tree = reading.encoded?.value
        compare(ids, with: .value(reading)) { watch, now in
            guard case .value(_, let condition) = watch.subject,
                condition.isMet(by: reading.encoded, tree: { tree })
            else { return .nothing }
            let action = watch.published(version, at: now)
            if case .send = action { watch.waitsForOther(than: reading.encoded) }
            return action
        }
    }

    /// Lets an event happen to watches, portion by portion, and delivers what has to be done.
    private func compare(
        _ ids: [Watch.ID], with news: Delivery.News, _ event: (inout Watch, Instant) -> Watch.Action
    ) {
        // The client that came first is answered first.
        let ids = ids.sorted()
        for start in stride(from: 0, to: ids.count, by: Self.portion) {
            let now = now()
            var batch = DeliveryBatch(news)
            storage.withLock { storage in
                for id in ids[start..<min(start + Self.portion, ids.count)] {
                    batch.add(storage.change(id) { event(&$0, now) })
                }
            }
            batch.deliver()
        }
    }
}

/// What has to be done for watches to which the same news has come, put together where it is the same.
struct DeliveryBatch {
    private struct Key: Hashable {
        let action: Watch.Action
        let receiver: ObjectIdentifier
    }

    private let news: Delivery.News
    private var groups: [(key: Key, receiver: any WatchReceiver, requests: [any AnyObject & Sendable])] = []

    init(_ news: Delivery.News) {
        self.news = news
    }

    mutating func add(_ change: HubStorage.Change?) {
        guard let change, change.action != .nothing else { return }
        let key = Key(action: change.action, receiver: ObjectIdentifier(change.receiver))
        // There are few: mostly one server, and one action for all.
        if let index = groups.firstIndex(where: { $0.key == key }) {
            groups[index].requests.append(change.request)
        } else {
            groups.append((key, change.receiver, [change.request]))
        }
    }

    func deliver() {
        for group in groups {
            group.receiver.receive(Delivery(news: news, action: group.key.action, requests: group.requests))
        }
    }
}
