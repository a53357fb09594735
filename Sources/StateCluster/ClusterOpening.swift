internal import FoundationEssentials
internal import StateJSON
internal import StateJournal
internal import StateStore

extension StoredHistory {
    struct Opened {
        var known: KnownTurns
        var recovery: JournalRecovery
        var found: ClusterMeta.Found
        /// Of the last turn that was read.
        var revision: UInt64
        var isRenewed: Bool
    }

    func open(_ initial: () throws -> [UInt8]) throws -> Opened {
        var found = try meta()
        if found == nil {
            try begin(initial())
            found = try meta()
        }
        let isRenewed = try found.map(isOlderThanSeen) ?? false
        if isRenewed, let old = found {
            try renewEpoch(of: old)
            found = try meta()
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
        let revision = try forEachTurn(from: known.tip.version + 1) { first, value in
            _ = try known.take(first, value)
            for commit in known.commits(after: state.version, limit: .max) ?? [] { _ = try state.take(commit) }
            return true
        }
        let oldest = try oldestVersion() ?? 0
        let now = Timestamp.now()
        return Opened(
            known: known,
            recovery: JournalRecovery(
                state: state.bytes(), version: state.version, oldest: oldest,
                keys: Array(known.keys.lazy.filter { $0.expiry > now }), historyTime: nil,
                patchesCount: Int(state.version - newest.version), warnings: warnings),
            found: found, revision: revision, isRenewed: isRenewed)
    }

    /// As after a restore: a turn that is deleted for its age has newer ones behind it.
    private func isOlderThanSeen(_ found: ClusterMeta.Found) throws -> Bool {
        guard let directory, let seen = SeenTurn(in: directory, of: found.epoch, secret: found.meta.secret) else {
            return false
        }
        guard let (key, value) = try firstTurn(of: keys.turnRange(from: seen.key, limit: 1)) else { return true }
        return key == seen.key && !seen.isTurn(value)
    }

    private func newestSnapshot(
        _ epoch: Epoch, _ warnings: inout [String]
    ) throws -> (SnapshotManifest, [UInt8], [KeyRecord]) {
        for manifest in try manifests().reversed() {
            let found = try loadUndamaged(manifest, epoch) { warnings.append($0.description) }
            if let (state, records) = found { return (manifest, state, records) }
        }
        throw ClusterFault(
            "the history \(keys.name) in etcd has no good snapshot" + warnings.map { "; \($0)" }.joined())
    }

    /// Of several nodes that try, one does, and none over what another history has left.
    private func begin(_ state: [UInt8]) throws {
        let epoch = Epoch.random()
        let link = ChainLink(beginning: epoch, version: 0)
        let isNew: [Etcd.Compare] = [.absent(keys.meta), .absent(keys.draft)]
        guard let manifest = try putSnapshot(state, link, 0, [], epoch, where: isNew) else { return }
        let beginning: [Etcd.Operation] = [
            .put(keys.turn(0), link.hash.bytes), try operation(manifest),
            .put(keys.meta, try JSON.encode(ClusterMeta(beginning: epoch))),
        ]
        let isEmpty: [Etcd.Compare] = [.absent(.init(below: keys.turns)), .absent(.init(below: keys.snapshots))]
        _ = try client.commit(beginning, where: isNew + isEmpty)
    }

    /// The turns stay as they are: they hold no epoch.
    func renewEpoch(of found: ClusterMeta.Found) throws {
        // In another etcd, another history may have begun at the same revision.
        guard var meta = try meta()?.meta, meta.secret == found.meta.secret else {
            throw ClusterFault("the history \(keys.name) in etcd is another one")
        }
        meta.epoch = Epoch.random().text
        let renewal = Etcd.Operation.put(keys.meta, try JSON.encode(meta))
        _ = try client.commit([renewal], where: [.unchanged(keys.meta, since: found.modified)])
    }

    // MARK: Snapshots

    /// Saves nothing where the beginning of the history has changed since it was found.
    func save(
        _ state: [UInt8], _ link: ChainLink, _ key: Version, _ records: [KeyRecord], of found: ClusterMeta.Found
    ) throws {
        let isSame: [Etcd.Compare] = [.present(keys.turn(key)), .unchanged(keys.meta, since: found.modified)]
        let refused = ClusterFault("the history \(keys.name) in etcd is another one, or has no turn of version \(key)")
        guard let manifest = try putSnapshot(state, link, key, records, found.epoch, where: isSame),
            try client.commit([operation(manifest)], where: isSame)
        else { throw refused }
    }

    /// The result is the oldest version after which all commits are kept.
    func prune(_ retention: JournalRetention, latest: Version) throws -> Version {
        let saved = try manifests()
        let surplus = latest - min(latest, Version(clamping: retention.commitsMax))
        let first = try surplus > 0 ? turnKey(of: surplus + 1) : 0
        let all = saved.map { (version: $0.version, key: $0.key) }
        guard let kept = KeptHistory(all, snapshotsMax: retention.snapshotsMax, from: first) else {
            return try oldestVersion() ?? 0
        }
        // A snapshot's parts are read by its manifest only. Parts without one are of a save that has failed.
        try delete(keys.snapshots, upTo: keys.snapshot(kept.snapshot))
        try delete(keys.chunk(0, nil), upTo: keys.chunk(kept.snapshot, nil))
        try deleteTurns(before: kept.turn)
        // A copy or a backup reads at one revision: one that has begun since the second-newest snapshot goes on.
        if let revision = try client.range(.init(keys.snapshot(kept.secondNewest))).kvs?.first?.mod_revision {
            // Another server may have compacted further already.
            let _: Etcd.Nothing? = try? client.ask("/v3/kv/compaction", ["revision": revision])
        }
        return try oldestVersion() ?? 0
    }

    /// etcd carries out a deletion in one piece, and nothing else meanwhile: one of 100,000 keys holds appends up for 0.4 s.
    private static let deletedVersionsMax: Version = 5000

    private func deleteTurns(before end: Version) throws {
        var first = try firstTurn(of: keys.turnRange(limit: 1, keysOnly: true))?.key ?? end
        while first < end {
            let next = min(first + Self.deletedVersionsMax, end)
            try delete(keys.turn(first), upTo: keys.turn(next))
            first = next
        }
    }

    private func delete(_ key: String, upTo end: String) throws {
        let _: Etcd.Nothing = try client.ask("/v3/kv/deleterange", Etcd.Range(key, upTo: end))
    }
}
