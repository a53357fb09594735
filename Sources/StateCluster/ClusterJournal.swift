internal import Dispatch
internal import FoundationEssentials
internal import StateJSON
package import StateJournal
package import StateStore
internal import Synchronization

/// Each turn is put by a transaction that demands that its keys are not there and that the turn before is: of two
/// writers behind one version, one is refused.
///
/// etcd has synced what it acknowledges on a majority of its machines. Any thread may call any method.
package final class ClusterJournal: Journal {
    let stored: StoredHistory
    /// No append waits for its large answers or for an etcd that hangs.
    let reading: StoredHistory
    let documentClient: EtcdClient
    private let retention: JournalRetention
    let report: @Sendable (ClusterEvent) -> Void
    let found: ClusterMeta.Found
    let known: Mutex<KnownTurns>
    private let encoder: Mutex<SegmentEncoder>
    let condition = Mutex(Condition())
    let follower: TurnFollower
    let lease: WriterLease
    private let quota: QuotaWatch
    let background = DispatchQueue(label: "storekeeper.cluster.snapshots", qos: .utility)
    /// Lets one thread at a time read the past for the IDs in it.
    let indexing = DispatchQueue(label: "storekeeper.cluster.ids", qos: .utility)

    var client: EtcdClient { stored.client }
    var keys: ClusterKeys { stored.keys }
    package var epoch: Epoch { found.epoch }
    /// The servers of the history know each other by it; nil in one that an older program has begun.
    package var secret: String? { found.meta.secret }

    struct Condition: Sendable {
        var failure: String?
        var isOpen = false
        var broken: String?
        var hasRenewedEpoch = false
        var follower: (@Sendable () -> Void)?
        var isSaving = false
        var writer = ClusterWriter.nobody
        var newest: Version = 0
        var isStale = false
        var staleWatcher: (@Sendable () -> Void)?
        var isFit: @Sendable () -> Bool = { true }
        var documents: [ClusterDocument] = []
        var documentsWatcher: (@Sendable () -> Void)?
        var seen: (turn: SeenTurn, time: ContinuousClock.Instant)?
        var quota: QuotaWatch.Finding?

        var fullReason: String? { quota.flatMap { $0.isFull ? $0.sentence : nil } }
    }

    /// etcd takes requests of 1.5 MiB by default.
    package static var commitBytesMax: Int { ClusterTurns.bytesMax }

    /// An outcome counts as unknown when the append has been tried for so long.
    private static let appendTime = Duration.seconds(5)
    /// One endpoint has so long in the first attempt.
    private static let firstTime = Duration.milliseconds(250)
    /// How old the newest proof may be that this server follows a majority of the etcds.
    static let ageMax = Duration.seconds(2)

    /// Opens the history at an address, or begins it there; it waits for etcd as long as that has no quorum.
    ///
    /// - Parameters:
    ///   - place: how the other servers reach this one, such as `http://10.0.0.1:8080`; nil for one that does not take the
    ///     part of the writer.
    ///   - directory: where a copy of the newest snapshot is kept; nil for nowhere.
    ///   - report: takes what happens in the background, on any thread.
    ///   - initial: returns the first state of a new history as UTF-8 JSON.
    /// - Returns: the journal, and what a store begins with.
    /// - Throws: ``ClusterFault``.
    package static func open(
        _ address: ClusterAddress, reachedAt place: String? = nil, directory: String? = nil,
        retention: JournalRetention = JournalRetention(), report: @escaping @Sendable (ClusterEvent) -> Void,
        initial: () throws -> [UInt8]
    ) throws -> (ClusterJournal, JournalRecovery) {
        let client = try EtcdClient(address, label: "journal")
        let stored = StoredHistory(client: client, keys: ClusterKeys(name: address.name), directory: directory)
        return try whenReached(report) {
            let opened = try stored.open(initial)
            let journal = try ClusterJournal(address, place, stored, opened, retention, report)
            if opened.isRenewed { report(.olderThanSeen) }
            return (journal, opened.recovery)
        }
    }

    /// Nil for one of an earlier program.
    package func domain() throws -> HistoryDomain? { try stored.domain() }

    package func setDomain(_ domain: HistoryDomain) throws {
        _ = try client.commit([.put(keys.domain, try JSON.encode(domain))])
    }

    /// Tries until etcd answers, with a report each ten seconds.
    package func whenReached<Value>(_ work: () throws -> Value) throws -> Value { try Self.whenReached(report, work) }

    private static func whenReached<Value>(
        _ report: @Sendable (ClusterEvent) -> Void, _ work: () throws -> Value
    ) throws -> Value {
        var attempts = 0
        while true {
            do {
                return try work()
            } catch let fault as ClusterFault where fault.isPassing {
                if attempts.isMultiple(of: 20) { report(.waiting(reason: fault.description)) }
                attempts += 1
                pause(milliseconds: 500)
            }
        }
    }

    private init(
        _ address: ClusterAddress, _ place: String?, _ stored: StoredHistory, _ opened: StoredHistory.Opened,
        _ retention: JournalRetention, _ report: @escaping @Sendable (ClusterEvent) -> Void
    ) throws {
        let keys = stored.keys
        self.retention = retention
        self.stored = stored
        let reader = try EtcdClient(address, label: "reader")
        reading = StoredHistory(client: reader, keys: keys)
        documentClient = try EtcdClient(address, label: "documents")
        self.report = report
        found = opened.found
        known = Mutex(opened.known)
        // Equal commits of two nodes must not have equal segments, or each node would take the other's for its own.
        encoder = Mutex(SegmentEncoder(epoch: opened.found.epoch, fence: .random(in: 1 ... .max)))
        follower = try TurnFollower(address, keys, from: opened.revision + 1)
        lease = try WriterLease(address, keys, metaRevision: opened.found.modified, reachedAt: place)
        quota = try QuotaWatch(address)
        follower.start { [weak self] in self?.take($0) }
        quota.start { [weak self] in self?.take($0) }
        lease.start { [weak self] in
            guard let self else { return nil }
            let (key, hash) = known.withLock { ($0.tipKey, $0.tip.hash) }
            return (key, hash, condition.withLock(\.isFit)())
        } _: { [weak self] in
            self?.take($0)
        }
    }

    // MARK: Append

    package func append(_ commits: [Commit], after version: Version) -> AppendResult {
        var (tip, key) = known.withLock { ($0.tip, $0.tipKey) }
        guard tip.version == version else { return .refused(after: version) }
        guard !commits.isEmpty else { return confirm(version) }
        let groups = encoder.withLock { ClusterTurns.groups(commits, after: tip, with: &$0) }
        for segments in groups {
            let result = append(segments, behind: key)
            switch result {
            case .landed: break
            case .refused: return result
            case .failed, .unknown:
                guard tip.version > version else { return result }
                // A part of the commits is durable, and the watch tells nobody of a turn that is known.
                condition.withLock { $0.isOpen = true }
                notifyFollower()
                return .unknown
            }
            known.withLock { known in
                known.dropKeys(expiredAt: .now())
                for segment in segments { known.land(Array(segment.commits), first: segment.first, segment.link) }
            }
            (tip, key) = (segments[segments.count - 1].link, segments[segments.count - 1].first)
        }
        recover()
        return .landed
    }

    /// Finds out whether a version is the newest, for outcomes that its state has refused.
    private func confirm(_ version: Version) -> AppendResult {
        if let reason = condition.withLock({ $0.broken }) { return fail(reason, isOpen: false) }
        do {
            guard try !hasTurns(after: version, by: client) else {
                catchUp()
                return .refused(after: version)
            }
            return .landed
        } catch {
            return fail("\(error)", isOpen: false)
        }
    }

    /// An answer that does not come leaves open whether the segments are there; the same transaction settles it: it
    /// finds ours, or another's, or none, and then it puts ours.
    private func append(_ segments: [ClusterTurns.Segment], behind key: Version) -> AppendResult {
        if let reason = condition.withLock({ $0.broken ?? $0.fullReason }) { return fail(reason, isOpen: false) }
        let first = keys.turn(segments[0].first)
        // A refusal has what the first key has, and whether the turn before is there.
        let transaction = Etcd.Transaction(
            compare: [.absent(first), .present(keys.turn(key)), .unchanged(keys.meta, since: found.modified)],
            success: segments.map { .put(keys.turn($0.first), $0.value) },
            failure: [.read(.init(first)), .read(.init(keys.turn(key)))])
        let end = ContinuousClock.now + Self.appendTime
        var isOpen = false
        // An etcd without a leader holds the request until there is one: others may have one sooner. A slow one has more time
        // with each attempt, and finds what an earlier one has put.
        var timeout = Self.firstTime
        while true {
            do throws(ClusterFault) {
                let answer: Etcd.TransactionResponse = try client.call("/v3/kv/txn", transaction, within: timeout)
                if answer.succeeded == true { return .landed }
                let there = answer.found
                if let found = there.first ?? nil {
                    if found.bytes == segments[0].value { return .landed }
                    catchUp()
                    return .refused(after: segments[0].first - 1)
                }
                let what = (there.last ?? nil) == nil ? "the turn before it is gone" : "it has begun anew"
                return fail(breaks("behind version \(segments[0].first - 1) \(what)"), isOpen: isOpen)
            } catch {
                switch error {
                // A proxy that answers like no etcd may stand before one that has carried it out.
                case .unanswered, .malformed: (isOpen, timeout) = (true, min(timeout * 2, Self.appendTime))
                case .unreachable: break
                case .refused, .history: return fail("\(error)", isOpen: isOpen)
                }
                guard ContinuousClock.now < end else { return fail("\(error)", isOpen: isOpen) }
                pause(milliseconds: 10)
            }
        }
    }

    private func fail(_ reason: String, isOpen: Bool) -> AppendResult {
        condition.withLock { condition in
            condition.failure = reason
            if isOpen { condition.isOpen = true }
        }
        report(.journal(.appendFailed(reason: reason, isOpen: isOpen)))
        return isOpen ? .unknown : .failed
    }

    private func recover() {
        let hadFailed = condition.withLock { condition in
            guard condition.broken == nil else { return false }
            defer { (condition.failure, condition.isOpen) = (nil, false) }
            return condition.failure != nil
        }
        if hadFailed { report(.journal(.appendsAgain)) }
    }

    func breaks(_ detail: String) -> String {
        let reason = "the history \(keys.name) in etcd is not the one that this server has: \(detail)"
        condition.withLock { ($0.broken, $0.failure) = (reason, reason) }
        return reason
    }

    // MARK: Condition

    package var failure: String? { condition.withLock { $0.failure ?? $0.fullReason } }
    package var isOutcomeOpen: Bool { condition.withLock { $0.isOpen } }
    package var isShared: Bool { true }

    package var bytesCount: Int? { nil }

    /// Reads what is behind the tip, so that the outcome of a failed append is known.
    package func probe() {
        guard condition.withLock({ $0.failure != nil && $0.broken == nil }) else { return }
        do throws(ClusterFault) {
            let _: Etcd.RangeResponse = try client.call("/v3/kv/range", Etcd.Range(keys.meta))
        } catch {
            return condition.withLock { if $0.broken == nil { $0.failure = "\(error)" } }
        }
        if catchUp() { recover() }
    }

    /// Does nothing: the keys expire by the wall clock.
    package func note(historyTime: Timestamp) {}

    package func offer(_ snapshot: Snapshot, saved: @escaping @Sendable (Version) -> Void) {
        let (since, link, key, records) = known.withLock { ($0.sinceSnapshot, $0.tip, $0.tipKey, $0.keys) }
        guard since.commits >= 10_000 || since.bytes >= 8 << 20, link.version == snapshot.cursor.version,
            condition.withLock({ !exchange(&$0.isSaving, with: true) })
        else { return }
        background.async { [self] in
            defer { condition.withLock { $0.isSaving = false } }
            do {
                let now = Timestamp.now()
                let live = Array(records.lazy.filter { $0.expiry > now })
                // An old state that is read is not kept in the directory, which has the newest.
                var saving = reading
                saving.directory = stored.directory
                try saving.save(snapshot.saved(), link, key, live, of: found)
                known.withLock { $0.noteSnapshot() }
                saved(try reading.prune(retention, latest: link.version))
            } catch {
                report(.journal(.snapshotNotSaved(reason: "\(error)")))
            }
        }
    }

    package func close(_ snapshot: Snapshot) throws {
        lease.stop()
        follower.stop()
        quota.stop()
        noteTurn(atLeastAfter: .zero)
        background.sync {}
    }
}
