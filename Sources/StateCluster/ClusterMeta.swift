internal import Dispatch
internal import FoundationEssentials
internal import StateJSON
internal import StateStore

/// What the key `meta` of a history says.
///
/// Without this key there is no history of that name.
struct ClusterMeta: Codable {
    /// The form of keys and values.
    var format = 1
    var epoch: String
    /// By which the servers of the history know each other.
    var secret: String?

    /// Names a new history.
    init(beginning epoch: Epoch) {
        self.epoch = epoch.text
        // 32 random bytes as hexadecimal digits.
        secret = (0..<4).map { _ in
            let text = String(UInt64.random(in: 0 ... .max), radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
    }

    /// A history that etcd has, and when.
    struct Found {
        var meta: ClusterMeta
        var epoch: Epoch
        /// The revision in which the key was written.
        var modified: UInt64
        /// The revision of etcd that the key was read at.
        var revision: UInt64
    }

    /// Whose history it is; nil for one of an earlier program.
    static func domain(_ client: EtcdClient, _ keys: ClusterKeys) throws(ClusterFault) -> HistoryDomain? {
        let answer: Etcd.RangeResponse = try client.ask("/v3/kv/range", Etcd.Range(keys.domain))
        guard let value = answer.kvs?.first?.value else { return nil }
        guard let domain = try? Etcd.decode(HistoryDomain.self, from: value) else {
            throw ClusterFault("the key \(keys.domain) in etcd is not that of a Storekeeper")
        }
        return domain
    }

    /// Reads the key of a history; nil where it is absent.
    ///
    /// - Throws: ``ClusterFault`` where it is not that of a history that this program reads.
    static func read(_ client: EtcdClient, _ keys: ClusterKeys) throws(ClusterFault) -> Found? {
        let answer: Etcd.RangeResponse = try client.ask("/v3/kv/range", Etcd.Range(keys.meta))
        guard let pair = answer.kvs?.first else { return nil }
        guard let meta = try? Etcd.decode(ClusterMeta.self, from: pair.value ?? Data()),
            let epoch = Epoch(meta.epoch), let modified = UInt64(pair.mod_revision),
            let revision = answer.header.revision.flatMap({ UInt64($0) })
        else { throw ClusterFault("the key \(keys.meta) in etcd is not that of a Storekeeper") }
        guard meta.format == 1 else {
            throw ClusterFault(
                "the history \(keys.name) in etcd has format \(meta.format), which a newer program reads")
        }
        return Found(meta: meta, epoch: epoch, modified: modified, revision: revision)
    }
}

extension EtcdClient {
    /// Sends a request and returns the answer.
    ///
    /// - Parameter patience: for how long it is sent again where no etcd answers.
    func ask<Answer: Decodable & Sendable>(
        _ path: String, _ message: some Encodable & Sendable, patience: Duration = .zero
    ) throws(ClusterFault) -> Answer {
        let end = ContinuousClock.now + patience
        while true {
            do throws(EtcdFailure) {
                return try call(path, message)
            } catch {
                let fault = ClusterFault(error)
                guard fault.isPassing, ContinuousClock.now < end else { throw fault }
                pause(.milliseconds(200))
            }
        }
    }
}
