internal import FoundationEssentials
internal import StateJSON
internal import StateStore

/// The keys of a history in etcd, by the client that reads and writes them.
struct StoredHistory: Sendable {
    let client: EtcdClient
    let keys: ClusterKeys
    /// Nil for the newest.
    var revision: UInt64?
    /// Where a copy of the newest snapshot is kept, so that a start need not fetch it; nil for nowhere.
    var directory: String?

    func pairs(_ range: Etcd.Range) throws(ClusterFault) -> [Etcd.Pair] {
        var range = range
        range.revision = revision.map { "\($0)" }
        return try client.range(range).kvs ?? []
    }
}

/// The value of the key `meta`, without which there is no history of that name.
struct ClusterMeta: Codable {
    var format = 1
    var epoch: String
    /// The servers of the history know each other by it.
    var secret: String?

    init(beginning epoch: Epoch) {
        self.epoch = epoch.text
        secret = (0..<4).map { _ in String(UInt64.random(in: 0 ... .max), radix: 16) }.joined()
    }

    struct Found {
        var meta: ClusterMeta
        var epoch: Epoch
        var modified: UInt64
        var revision: UInt64
    }
}

extension StoredHistory {
    func domain() throws(ClusterFault) -> HistoryDomain? {
        guard let value = try client.range(Etcd.Range(keys.domain)).kvs?.first?.value else { return nil }
        guard let domain = try? Etcd.decode(HistoryDomain.self, from: value) else {
            throw ClusterFault("the key \(keys.domain) in etcd does not belong to a Storekeeper")
        }
        return domain
    }

    func meta() throws(ClusterFault) -> ClusterMeta.Found? {
        let answer = try client.range(Etcd.Range(keys.meta))
        guard let pair = answer.kvs?.first else { return nil }
        guard let meta = try? Etcd.decode(ClusterMeta.self, from: pair.bytes), let epoch = Epoch(meta.epoch),
            let modified = UInt64(pair.mod_revision)
        else { throw ClusterFault("the key \(keys.meta) in etcd does not belong to a Storekeeper") }
        guard meta.format == 1 else {
            throw ClusterFault(
                "the history \(keys.name) in etcd has format \(meta.format), which a newer program reads")
        }
        return ClusterMeta.Found(meta: meta, epoch: epoch, modified: modified, revision: answer.header.number)
    }
}
