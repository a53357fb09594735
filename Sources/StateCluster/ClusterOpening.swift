internal import FoundationEssentials
internal import Segments
internal import StateJSON
package import StateStore

extension ClusterJournal {
    /// What a journal has for a store that starts.
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

/// What the key `meta` of a history says.
struct ClusterMeta: Codable {
    /// The form of keys and values.
    var format = 1
    var epoch: String
    /// By which the servers of the history know each other.
    var secret: String?
}

/// Where a snapshot is, and what it is of.
struct SnapshotManifest: Codable {
    var version: UInt64
    /// The version in the key of the turn that ends with it.
    var key: UInt64
    /// The hash of that turn, 16 bytes.
    var chain: Data
    /// The bytes of the state, and behind them those of the table of keys.
    var stateBytes: Int
    var keysBytes: Int
    var chunks: Int
    /// The hash of all of them.
    var hash: String
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
    }

    private let client: EtcdClient
    private let keys: ClusterKeys
    private static let chunkBytes = 1 << 20

    init(_ client: EtcdClient, _ keys: ClusterKeys) {
        self.client = client
        self.keys = keys
    }

    private func call<Answer: Decodable & Sendable>(
        _ path: String, _ message: some Encodable & Sendable
    ) throws(ClusterFault) -> Answer {
        do {
            return try client.call(path, message)
        } catch {
            throw ClusterFault(error)
        }
    }

    /// Reads the newest snapshot and the turns behind it; a history that is not there begins with the initial state.
    func run(_ initial: () throws -> [UInt8]) throws -> Opened {
        var found = try meta()
        if found == nil {
            try begin(initial())
            found = try meta()
        }
        guard let (meta, metaRevision) = found, let epoch = Epoch(meta.epoch) else {
            throw ClusterFault("the key \(keys.meta) in etcd is not that of a Storekeeper")
        }
        guard meta.format == 1 else {
            throw ClusterFault(
                "the history \(keys.name) in etcd has format \(meta.format), which a newer program reads")
        }
        var warnings: [String] = []
        let (newest, text, records) = try newestSnapshot(epoch, &warnings)
        guard let hash = SegmentHash(newest.chain) else { throw ClusterFault("a snapshot in etcd has no hash") }
        var known = KnownTurns(
            epoch: epoch, tip: ChainLink(version: newest.version, hash: hash), key: newest.key, keys: records)
        var state = try PatchedState(parsing: text, version: newest.version)
        var revision: UInt64 = 0
        while true {
            let answer: Etcd.RangeResponse = try call(
                "/v3/kv/range",
                Etcd.Range(
                    keys.turn(known.tip.version + 1), upTo: ClusterKeys.end(of: keys.turns), limit: 500))
            revision = answer.header.revision.flatMap { UInt64($0) } ?? 0
            let before = known.tip.version
            for pair in answer.kvs ?? [] {
                guard let first = keys.version(ofTurn: pair.key) else { continue }
                do throws(KnownTurns.Fault) {
                    _ = try known.take(first, Array(pair.value ?? Data()))
                } catch {
                    throw ClusterFault("the turn of version \(first) in etcd cannot be read: \(error)")
                }
                for commit in known.commits(after: state.version, limit: .max) ?? [] { _ = try state.take(commit) }
            }
            if known.tip.version == before { break }
        }
        let oldest = try oldestTurn()
        let now = Timestamp.now()
        return Opened(
            known: known,
            recovery: .init(
                state: state.bytes(), version: state.version, oldest: oldest,
                keys: known.keys.filter { $0.expiry > now }, patchesCount: Int(state.version - newest.version),
                warnings: warnings),
            metaRevision: metaRevision, secret: meta.secret, revision: revision)
    }

    /// The newest snapshot that is not damaged.
    private func newestSnapshot(
        _ epoch: Epoch, _ warnings: inout [String]
    ) throws -> (SnapshotManifest, [UInt8], [KeyRecord]) {
        for manifest in try snapshots(limit: 0).reversed() {
            do {
                let (state, records) = try load(manifest, epoch)
                return (manifest, state, records)
            } catch let fault as ClusterFault where !fault.isPassing {
                warnings.append(fault.description)
            }
        }
        throw ClusterFault(
            "the history \(keys.name) in etcd has no good snapshot" + warnings.map { "; \($0)" }.joined())
    }

    private func meta() throws -> (ClusterMeta, UInt64)? {
        let answer: Etcd.RangeResponse = try call("/v3/kv/range", Etcd.Range(keys.meta))
        guard let pair = answer.kvs?.first else { return nil }
        guard let meta = try? JSONDecoder().decode(ClusterMeta.self, from: pair.value ?? Data()),
            let revision = UInt64(pair.mod_revision)
        else { throw ClusterFault("the key \(keys.meta) in etcd is not that of a Storekeeper") }
        return (meta, revision)
    }

    /// Begins a history; of several nodes that try, one does.
    private func begin(_ state: [UInt8]) throws {
        let epoch = Epoch.random()
        let link = ChainLink(beginning: epoch, version: 0)
        let manifest = try put(state, link, 0, [], epoch)
        let transaction = Etcd.Transaction(
            compare: [.absent(keys.meta)],
            success: [
                .init(request_put: .init(keys.turn(0), Data(link.hash.bytes))),
                .init(request_put: .init(keys.snapshot(0), try JSONEncoder().encode(manifest))),
                .init(
                    request_put: .init(
                        keys.meta, try JSONEncoder().encode(ClusterMeta(epoch: epoch.text, secret: Self.secret())))),
            ])
        let _: Etcd.TransactionResponse = try call("/v3/kv/txn", transaction)
    }

    /// Gives the history another epoch, unless its beginning has changed since a revision of etcd.
    ///
    /// The turns stay as they are: they hold no epoch.
    func renewEpoch(_ revision: UInt64) throws {
        guard var (meta, _) = try meta() else { return }
        meta.epoch = Epoch.random().text
        let transaction = Etcd.Transaction(
            compare: [.unchanged(keys.meta, since: revision)],
            success: [.init(request_put: .init(keys.meta, try JSONEncoder().encode(meta)))])
        let _: Etcd.TransactionResponse = try call("/v3/kv/txn", transaction)
    }

    /// 32 random bytes as hexadecimal digits.
    private static func secret() -> String {
        (0..<4).map { _ in
            let text = String(UInt64.random(in: 0 ... .max), radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
    }

    // MARK: Snapshots

    /// Saves a snapshot of the state at a link.
    func save(_ state: [UInt8], _ link: ChainLink, _ key: Version, _ records: [KeyRecord], _ epoch: Epoch) throws {
        let manifest = try put(state, link, key, records, epoch)
        let transaction = Etcd.Transaction(
            compare: [.present(keys.turn(key))],
            success: [.init(request_put: .init(keys.snapshot(link.version), try JSONEncoder().encode(manifest)))])
        let _: Etcd.TransactionResponse = try call("/v3/kv/txn", transaction)
    }

    private func put(
        _ state: [UInt8], _ link: ChainLink, _ key: Version, _ records: [KeyRecord], _ epoch: Epoch
    ) throws -> SnapshotManifest {
        var table = ByteWriter()
        _ = KeyTable.write(records, epoch, to: &table)
        let bytes = state + table.bytes
        var count = 0
        for start in stride(from: 0, to: bytes.count, by: Self.chunkBytes) {
            let chunk = Data(bytes[start..<min(start + Self.chunkBytes, bytes.count)])
            let _: Etcd.Nothing = try call("/v3/kv/put", Etcd.Put(keys.chunk(link.version, count), chunk))
            count += 1
        }
        return SnapshotManifest(
            version: link.version, key: key, chain: Data(link.hash.bytes), stateBytes: state.count,
            keysBytes: table.bytes.count, chunks: count, hash: Self.hash(bytes))
    }

    private static func hash(_ bytes: [UInt8]) -> String {
        let hash = ContentHash(bytes)
        return "\(String(hash.high, radix: 16))-\(String(hash.low, radix: 16))"
    }

    /// The manifests, oldest first.
    ///
    /// - Parameter limit: the most; 0 for all.
    func snapshots(limit: Int) throws -> [SnapshotManifest] {
        let answer: Etcd.RangeResponse = try call(
            "/v3/kv/range", Etcd.Range(keys.snapshots, upTo: ClusterKeys.end(of: keys.snapshots), limit: limit))
        return try (answer.kvs ?? []).map { pair in
            do {
                return try JSONDecoder().decode(SnapshotManifest.self, from: pair.value ?? Data())
            } catch {
                throw ClusterFault("a snapshot's manifest in etcd cannot be read")
            }
        }
    }

    /// Deletes the snapshots and the turns that need not be kept, and compacts etcd up to there.
    ///
    /// A turn stays where no snapshot that is kept replaces it, and so do the turns behind the second-newest snapshot.
    ///
    /// - Returns: the oldest version after which all turns are kept.
    func prune(_ retention: ClusterJournal.Retention, latest: Version) throws -> Version {
        let manifests = try snapshots(limit: 0)
        if let oldest = manifests.suffix(max(2, retention.snapshotsMax)).first {
            // Without its manifest nobody reads a snapshot's parts. Parts without one are of a save that has failed.
            try delete(keys.snapshots, upTo: keys.snapshot(oldest.version))
            try delete(keys.chunk(0, nil), upTo: keys.chunk(oldest.version, nil))
        }
        let commitsMax = Version(clamping: retention.commitsMax)
        let beginning = manifests.dropLast().last { $0.version + commitsMax <= latest }
        guard let beginning, beginning.key > 0 else { return try oldestTurn() }
        let revision = try delete(keys.turns, upTo: keys.turn(beginning.key))
        if let revision {
            // Another server may have compacted further already.
            let _: Etcd.Nothing? = try? call("/v3/kv/compaction", Etcd.Compaction(revision: revision))
        }
        return beginning.key - 1
    }

    /// Deletes the keys from one up to another, without that one.
    ///
    /// - Returns: the revision of the deletion; nil where there was nothing to delete.
    @discardableResult
    private func delete(_ key: String, upTo end: String) throws -> String? {
        let answer: Etcd.DeleteResponse = try call("/v3/kv/deleterange", Etcd.Range(key, upTo: end))
        return answer.deleted == nil ? nil : answer.header.revision
    }

    /// The oldest version after which all turns are kept.
    func oldestTurn() throws -> Version {
        let answer: Etcd.RangeResponse = try call(
            "/v3/kv/range", Etcd.Range(keys.turns, upTo: ClusterKeys.end(of: keys.turns), limit: 1))
        guard let first = answer.kvs?.first.flatMap({ keys.version(ofTurn: $0.key) }) else { return 0 }
        return first > 0 ? first - 1 : 0
    }

    /// Reads a snapshot: the state as UTF-8 JSON, and the keys.
    private func load(_ manifest: SnapshotManifest, _ epoch: Epoch) throws -> ([UInt8], [KeyRecord]) {
        var bytes: [UInt8] = []
        for index in 0..<manifest.chunks {
            let answer: Etcd.RangeResponse = try call(
                "/v3/kv/range", Etcd.Range(keys.chunk(manifest.version, index)))
            bytes += answer.kvs?.first?.value ?? Data()
        }
        guard bytes.count == manifest.stateBytes + manifest.keysBytes, Self.hash(bytes) == manifest.hash else {
            throw ClusterFault("the snapshot of version \(manifest.version) in etcd is damaged")
        }
        let table = Array(bytes[manifest.stateBytes...])
        do {
            let records = table.isEmpty ? [] : try table.withUnsafeBytes { try KeyTable.read($0, epoch) }
            return (Array(bytes[..<manifest.stateBytes]), records)
        } catch {
            throw ClusterFault("the keys of version \(manifest.version) in etcd cannot be read: \(error)")
        }
    }

    /// The state at a version; nil where no snapshot is so old.
    ///
    /// - Parameter commits: returns the commits after a version, at most so many.
    func state(at version: Version, _ epoch: Epoch, _ commits: (Version, Int) throws -> [Commit]) throws -> [UInt8]? {
        guard let manifest = try snapshots(limit: 0).last(where: { $0.version <= version }) else { return nil }
        var state = try PatchedState(parsing: try load(manifest, epoch).0, version: manifest.version)
        while state.version < version {
            let page = try commits(state.version, 1000)
            guard !page.isEmpty else { return nil }
            for commit in page { _ = try state.take(commit) }
        }
        return state.bytes()
    }
}
