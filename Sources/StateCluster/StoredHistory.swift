internal import FoundationEssentials
internal import StateJSON
internal import StateStore
internal import Synchronization

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

/// All servers of a history and several commands share such a text, for example its tokens; any thread may call any
/// method.
package final class ClusterDocument: Sendable {
    package struct Content: Sendable {
        package var bytes: [UInt8]?
        /// Of etcd, for the content or for the change that has made it so.
        package var revision: UInt64
    }

    let key: String
    private let client: EtcdClient
    /// Nil while no journal follows the document.
    private let followed = Mutex<Content?>(nil)

    package convenience init(_ address: ClusterAddress, _ name: String) throws {
        self.init(try EtcdClient(address, label: name), ClusterKeys(name: address.name), name)
    }

    init(_ client: EtcdClient, _ keys: ClusterKeys, _ name: String) {
        self.client = client
        key = "\(keys.name)/\(name)"
    }

    package func content() throws(ClusterFault) -> Content {
        if let content = followed.withLock(\.self) { return content }
        return try read()
    }

    package var revision: UInt64? { followed.withLock { $0?.revision } }

    package func read() throws(ClusterFault) -> Content {
        let answer = try client.range(Etcd.Range(key))
        return answer.kvs?.first.map { Content($0) } ?? Content(bytes: nil, revision: answer.header.number)
    }

    /// Returns false where the document is no longer what the caller has seen; where etcd does not answer, whether it
    /// is replaced is not known.
    package func replace(_ seen: Content, by bytes: [UInt8]) throws(ClusterFault) -> Bool {
        let isAsSeen: Etcd.Compare = seen.bytes == nil ? .absent(key) : .unchanged(key, since: seen.revision)
        return try client.commit([.put(key, bytes)], where: [isAsSeen])
    }

    func follow() throws(ClusterFault) { note(try read()) }

    func note(_ content: Content) {
        followed.withLock { known in
            // The watch may begin before what was read.
            if content.revision >= known?.revision ?? 0 { known = content }
        }
    }
}

extension ClusterDocument.Content {
    init(_ pair: Etcd.Pair, isDeleted: Bool = false) {
        self.init(bytes: isDeleted ? nil : pair.bytes, revision: UInt64(pair.mod_revision) ?? 0)
    }
}
