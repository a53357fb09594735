internal import FoundationEssentials
internal import StateJSON
internal import StateJournal
package import StateStore

extension ClusterJournal {
    /// The contents of a journal for a store that starts.
    package struct Recovery: Sendable {
        /// The newest state, as UTF-8 JSON.
        package var state: [UInt8]
        package var version: Version
        /// The oldest version after which the journal has all commits.
        package var oldest: Version
        /// The keys that have not expired, oldest first.
        package var keys: [KeyRecord]
        /// How many patches were applied to the snapshot.
        package var patchesCount: Int
        /// A sentence for the operator for each snapshot that is damaged.
        package var warnings: [String]
    }
}

/// Begins a history in etcd, reads one, and saves its snapshots.
struct ClusterOpening {
    struct Opened {
        var known: KnownTurns
        var recovery: ClusterJournal.Recovery
        var metaRevision: UInt64
        var secret: String?
        /// The revision of etcd up to which everything is read.
        var revision: UInt64
        /// Whether the history has a new epoch, because it is older than what this server has seen of it.
        var isRenewed = false
    }

    private let client: EtcdClient
    private let keys: ClusterKeys
    private let snapshots: ClusterSnapshots
    private let directory: String?

    init(_ client: EtcdClient, _ keys: ClusterKeys, cache: SnapshotCache? = nil) {
        self.client = client
        self.keys = keys
        directory = cache?.directory
        snapshots = ClusterSnapshots(client: client, keys: keys, cache: cache)
    }

    func run(_ initial: () throws -> [UInt8]) throws -> Opened {
        var found = try ClusterMeta.read(client, keys)
        if found == nil {
            try begin(initial())
            found = try ClusterMeta.read(client, keys)
        }
        let isRenewed = try found.map(isOlderThanSeen) ?? false
        if isRenewed, let old = found {
            try renewEpoch(old.modified, of: old.meta.secret)
            found = try ClusterMeta.read(client, keys)
        }
        guard let found else {
            throw ClusterFault(
                "the keys \(keys.name)/ in etcd are parts of a history that is not whole: an import or a copy was interrupted or is going on; run it again, delete them, or take another name"
            )
        }
        let epoch = found.epoch
        var warnings: [String] = []
        let (newest, text, records) = try newestSnapshot(epoch, &warnings)
        guard let hash = SegmentHash(newest.chain) else { throw ClusterFault("a snapshot in etcd has no hash") }
        var known = KnownTurns(
            epoch: epoch, tip: ChainLink(version: newest.version, hash: hash), key: newest.key, keys: records)
        var state = try PatchedState(parsing: text, version: newest.version)
        let revision = try TurnPages(client, keys).forEach(from: known.tip.version + 1) { first, value in
            do throws(KnownTurns.Fault) {
                _ = try known.take(first, value)
            } catch {
                throw ClusterFault("the turn of version \(first) in etcd cannot be read: \(error)")
            }
            for commit in known.commits(after: state.version, limit: .max) ?? [] { _ = try state.take(commit) }
            return true
        }
        let oldest = try oldestTurn()
        let now = Timestamp.now()
        return Opened(
            known: known,
            recovery: .init(
                state: state.bytes(), version: state.version, oldest: oldest,
                keys: Array(known.keys.lazy.filter { $0.expiry > now }),
                patchesCount: Int(state.version - newest.version),
                warnings: warnings),
            metaRevision: found.modified, secret: found.meta.secret, revision: revision, isRenewed: isRenewed)
    }

    /// Whether the newest turn seen is gone, as after a restore: one deleted for its age has newer ones behind it.
    private func isOlderThanSeen(_ found: ClusterMeta.Found) throws -> Bool {
        guard let directory, let seen = SeenTurn(in: directory, of: found.epoch, secret: found.meta.secret) else {
            return false
        }
        let answer: Etcd.RangeResponse = try client.ask(
            "/v3/kv/range", Etcd.Range(keys.turn(seen.key), upTo: ClusterKeys.end(of: keys.turns), limit: 1))
        guard let pair = answer.kvs?.first, let key = keys.version(ofTurn: pair.key) else { return true }
        return key == seen.key && !seen.isTurn(pair.value ?? Data())
    }

    private func newestSnapshot(
        _ epoch: Epoch, _ warnings: inout [String]
    ) throws -> (SnapshotManifest, [UInt8], [KeyRecord]) {
        for manifest in try snapshots.manifests().reversed() {
            do throws(ClusterFault) {
                let (state, records) = try snapshots.load(manifest, epoch)
                return (manifest, state, records)
            } catch {
                guard !error.isPassing else { throw error }
                warnings.append(error.description)
            }
        }
        throw ClusterFault(
            "the history \(keys.name) in etcd has no good snapshot" + warnings.map { "; \($0)" }.joined())
    }

    /// Begins a history; of several nodes that try, one does, and none over what another history has left.
    private func begin(_ state: [UInt8]) throws {
        let epoch = Epoch.random()
        let link = ChainLink(beginning: epoch, version: 0)
        let isNew: [Etcd.Compare] = [.absent(keys.meta), .absent(keys.draft)]
        guard let manifest = try snapshots.put(state, link, 0, [], epoch, where: isNew) else { return }
        let transaction = Etcd.Transaction(
            compare: isNew + [.absent(below: keys.turns), .absent(below: keys.snapshots)],
            success: [
                .init(request_put: .init(keys.turn(0), link.hash.bytes)), try snapshots.operation(manifest),
                .init(request_put: .init(keys.meta, try JSON.encode(ClusterMeta(beginning: epoch)))),
            ])
        let _: Etcd.TransactionResponse = try client.ask("/v3/kv/txn", transaction)
    }

    /// The turns stay as they are: they hold no epoch.
    func renewEpoch(_ revision: UInt64, of secret: String?) throws {
        // In another etcd, another history may have begun at the same revision.
        guard var meta = try ClusterMeta.read(client, keys)?.meta, meta.secret == secret else {
            throw ClusterFault("the history \(keys.name) in etcd is another one")
        }
        meta.epoch = Epoch.random().text
        let transaction = Etcd.Transaction(
            compare: [.unchanged(keys.meta, since: revision)],
            success: [.init(request_put: .init(keys.meta, try JSON.encode(meta)))])
        let _: Etcd.TransactionResponse = try client.ask("/v3/kv/txn", transaction)
    }

    // MARK: Snapshots

    /// Saves a snapshot, unless the beginning of the history has changed since a revision of etcd.
    func save(
        _ state: [UInt8], _ link: ChainLink, _ key: Version, _ records: [KeyRecord], _ epoch: Epoch,
        meta revision: UInt64
    ) throws {
        let isSame: [Etcd.Compare] = [.present(keys.turn(key)), .unchanged(keys.meta, since: revision)]
        let refused = ClusterFault("the history \(keys.name) in etcd is another one, or has no turn of version \(key)")
        guard let manifest = try snapshots.put(state, link, key, records, epoch, where: isSame) else { throw refused }
        let transaction = Etcd.Transaction(compare: isSame, success: [try snapshots.operation(manifest)])
        let answer: Etcd.TransactionResponse = try client.ask("/v3/kv/txn", transaction)
        guard answer.succeeded == true else { throw refused }
    }

    /// The result is the oldest version after which all commits are kept.
    func prune(_ retention: JournalRetention, latest: Version) throws -> Version {
        let manifests = try snapshots.manifests()
        let surplus = latest - min(latest, Version(clamping: retention.commitsMax))
        let first = try surplus > 0 ? turn(of: surplus + 1) : 0
        let all = manifests.map { (version: $0.version, key: $0.key) }
        guard let kept = KeptHistory(all, snapshotsMax: retention.snapshotsMax, from: first) else {
            return try oldestTurn()
        }
        // A snapshot's parts are read by its manifest only. Parts without one are of a save that has failed.
        try delete(keys.snapshots, upTo: keys.snapshot(kept.snapshot))
        try delete(keys.chunk(0, nil), upTo: keys.chunk(kept.snapshot, nil))
        try deleteTurns(before: kept.turn)
        // A copy or a backup reads at one revision: one that has begun since the second-newest snapshot goes on.
        let answer: Etcd.RangeResponse = try client.ask("/v3/kv/range", Etcd.Range(keys.snapshot(kept.secondNewest)))
        if let revision = answer.kvs?.first?.mod_revision {
            // Another server may have compacted further already.
            let _: Etcd.Nothing? = try? client.ask("/v3/kv/compaction", Etcd.Compaction(revision: revision))
        }
        return try oldestTurn()
    }

    /// etcd carries out a deletion in one piece, and nothing else meanwhile: one of 100,000 keys holds appends up for 0.4 s.
    private static let deletedVersionsMax: Version = 5000

    private func deleteTurns(before end: Version) throws {
        var first = try firstTurn().flatMap { keys.version(ofTurn: $0.key) } ?? end
        while first < end {
            let next = min(first + Self.deletedVersionsMax, end)
            try delete(keys.turn(first), upTo: keys.turn(next))
            first = next
        }
    }

    private func delete(_ key: String, upTo end: String) throws {
        let _: Etcd.Nothing = try client.ask("/v3/kv/deleterange", Etcd.Range(key, upTo: end))
    }

    /// The version in the key of the turn that has a commit, or the commit's own where no turn is so old.
    func turn(of version: Version) throws(ClusterFault) -> Version {
        var range = Etcd.Range(keys.turn(1), upTo: keys.turn(version + 1), limit: 1)
        (range.sort_order, range.keys_only) = ("DESCEND", true)
        let answer: Etcd.RangeResponse = try client.ask("/v3/kv/range", range)
        return answer.kvs?.first.flatMap { keys.version(ofTurn: $0.key) } ?? version
    }

    func oldestTurn() throws -> Version {
        guard let pair = try firstTurn(), let first = keys.version(ofTurn: pair.key) else { return 0 }
        return first > 0 && !KnownTurns.isBeginning(pair.value ?? Data()) ? first - 1 : first
    }

    private func firstTurn() throws -> Etcd.Pair? {
        let answer: Etcd.RangeResponse = try client.ask(
            "/v3/kv/range", Etcd.Range(keys.turns, upTo: ClusterKeys.end(of: keys.turns), limit: 1))
        return answer.kvs?.first
    }

    func state(at version: Version, _ epoch: Epoch, _ commits: (Version, Int) throws -> [Commit]) throws -> SavedState?
    {
        guard let manifest = try snapshots.manifests().last(where: { $0.version <= version }) else { return nil }
        var state = try PatchedState(parsing: try snapshots.load(manifest, epoch).0, version: manifest.version)
        while state.version < version {
            let page = try commits(state.version, 1000)
            guard !page.isEmpty else { return nil }
            for commit in page { _ = try state.take(commit) }
        }
        return state.saved
    }
}
