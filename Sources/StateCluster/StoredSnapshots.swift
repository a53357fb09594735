internal import FoundationEssentials
internal import StateJSON
internal import StateJournal
internal import StateStore

struct SnapshotManifest: Codable {
    var version: UInt64
    /// The version in the key of the turn that ends with it.
    var key: UInt64
    var chain: Data
    var stateBytes: Int
    var keysBytes: Int
    var chunks: Int
    var hash: String

    /// Nil where the numbers cannot be those of a snapshot.
    var bytesCount: Int? {
        let (sum, isTooLarge) = stateBytes.addingReportingOverflow(keysBytes)
        guard !isTooLarge, stateBytes >= 0, keysBytes >= 0, 0...sum ~= chunks, key <= version,
            version <= UInt64(Int64.max)
        else { return nil }
        return sum
    }
}

/// Each snapshot that is kept has all turns behind it, and two are kept, so that a start can do with the second-newest.
struct KeptHistory {
    let snapshot: Version
    let turn: Version
    let secondNewest: Version

    /// Nil without two snapshots, so that all is kept; they come oldest first, and `first` is the version in the key of
    /// the oldest turn that has to be kept in any case.
    init?(_ snapshots: [(version: Version, key: Version)], snapshotsMax: Int, from first: Version) {
        guard snapshots.count > 1 else { return nil }
        let second = snapshots[snapshots.count - 2]
        let turn = min(first, second.key)
        snapshot = snapshots.suffix(max(2, snapshotsMax)).first { $0.key >= turn }?.version ?? second.version
        (self.turn, secondNewest) = (turn, second.version)
    }
}

/// Each has parts of at most 1 MiB, with a manifest that is put last.
extension StoredHistory {
    private static let chunkBytes = 1 << 20

    func putSnapshot(
        _ state: [UInt8], _ link: ChainLink, _ key: Version, _ records: [KeyRecord], _ epoch: Epoch,
        where conditions: [Etcd.Compare] = []
    ) throws(ClusterFault) -> SnapshotManifest? {
        var table = ByteWriter()
        _ = KeyTable.write(records, epoch, to: &table)
        let bytes = state + table.bytes
        var count = 0
        for start in stride(from: 0, to: bytes.count, by: Self.chunkBytes) {
            let chunk = bytes[start..<min(start + Self.chunkBytes, bytes.count)]
            guard try client.commit([.put(keys.chunk(link.version, count), chunk)], where: conditions) else {
                return nil
            }
            count += 1
        }
        let manifest = SnapshotManifest(
            version: link.version, key: key, chain: Data(link.hash.bytes), stateBytes: state.count,
            keysBytes: table.bytes.count, chunks: count, hash: Self.hash(bytes))
        keep(bytes, of: manifest)
        return manifest
    }

    func operation(_ manifest: SnapshotManifest) throws -> Etcd.Operation {
        .put(keys.snapshot(manifest.version), try JSON.encode(manifest))
    }

    func manifests(limit: Int = 0) throws(ClusterFault) -> [SnapshotManifest] {
        try pairs(Etcd.Range(below: keys.snapshots, limit: limit)).map { (pair) throws(ClusterFault) in
            guard let manifest = try? Etcd.decode(SnapshotManifest.self, from: pair.bytes), manifest.bytesCount != nil
            else { throw ClusterFault("a snapshot's manifest in etcd cannot be read") }
            return manifest
        }
    }

    /// Nil for a damaged one.
    func loadUndamaged(
        _ manifest: SnapshotManifest, _ epoch: Epoch, damaged: (ClusterFault) -> Void = { _ in }
    ) throws(ClusterFault) -> ([UInt8], [KeyRecord])? {
        do throws(ClusterFault) {
            return try load(manifest, epoch)
        } catch {
            guard !error.isPassing else { throw error }
            damaged(error)
            return nil
        }
    }

    func load(_ manifest: SnapshotManifest, _ epoch: Epoch) throws(ClusterFault) -> ([UInt8], [KeyRecord]) {
        let bytes: [UInt8]
        if let kept = keptBytes(of: manifest), Self.isWhole(kept, manifest) {
            bytes = kept
        } else {
            bytes = try fetch(manifest)
            guard Self.isWhole(bytes, manifest) else {
                throw ClusterFault("the snapshot of version \(manifest.version) in etcd is damaged")
            }
            keep(bytes, of: manifest)
        }
        let table = Array(bytes[manifest.stateBytes...])
        do {
            let records = table.isEmpty ? [] : try table.withUnsafeBytes { try KeyTable.read($0, epoch) }
            return (Array(bytes[..<manifest.stateBytes]), records)
        } catch {
            throw ClusterFault("the keys of version \(manifest.version) in etcd cannot be read: \(error)")
        }
    }

    private func fetch(_ manifest: SnapshotManifest) throws(ClusterFault) -> [UInt8] {
        var bytes: [UInt8] = []
        for index in 0..<manifest.chunks {
            let part = try pairs(Etcd.Range(keys.chunk(manifest.version, index))).first
            // The hash shows parts that are missing or too many.
            guard let part, bytes.count < manifest.bytesCount ?? 0 else { break }
            bytes += part.bytes
        }
        return bytes
    }

    private static func isWhole(_ bytes: [UInt8], _ manifest: SnapshotManifest) -> Bool {
        bytes.count == manifest.bytesCount && hash(bytes) == manifest.hash
    }

    static func hash(_ bytes: [UInt8]) -> String {
        let hash = ContentHash(bytes)
        return "\(String(hash.high, radix: 16))-\(String(hash.low, radix: 16))"
    }
}

/// A copy that is damaged or cannot be read is as if it were not there.
extension StoredHistory {
    private static let copyPrefix = "snapshot-"

    private func copy(of manifest: SnapshotManifest) -> URL? {
        directory.map { URL(fileURLWithPath: "\($0)/\(Self.copyPrefix)\(manifest.version)-\(manifest.hash)") }
    }

    /// The caller compares their hash with the manifest's.
    private func keptBytes(of manifest: SnapshotManifest) -> [UInt8]? {
        copy(of: manifest).flatMap { try? Array(Data(contentsOf: $0)) }
    }

    private func keep(_ bytes: [UInt8], of manifest: SnapshotManifest) {
        guard let directory, let copy = copy(of: manifest) else { return }
        let manager = FileManager.default
        try? manager.createDirectory(atPath: directory, withIntermediateDirectories: true)
        guard (try? Data(bytes).write(to: copy, options: .atomic)) != nil else { return }
        for name in (try? manager.contentsOfDirectory(atPath: directory)) ?? []
        where name.hasPrefix(Self.copyPrefix) && name != copy.lastPathComponent {
            try? manager.removeItem(atPath: "\(directory)/\(name)")
        }
    }
}
