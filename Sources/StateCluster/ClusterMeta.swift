internal import Dispatch
internal import FoundationEssentials
internal import StateJSON
internal import StateStore

/// The value of the key `meta`, without which there is no history of that name.
struct ClusterMeta: Codable {
    var format = 1
    var epoch: String
    /// By which the servers of the history know each other.
    var secret: String?

    init(beginning epoch: Epoch) {
        self.epoch = epoch.text
        // 32 random bytes as hexadecimal digits.
        secret = (0..<4).map { _ in
            let text = String(UInt64.random(in: 0 ... .max), radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }.joined()
    }

    struct Found {
        var meta: ClusterMeta
        var epoch: Epoch
        var modified: UInt64
        var revision: UInt64
    }

    static func domain(_ client: EtcdClient, _ keys: ClusterKeys) throws(ClusterFault) -> HistoryDomain? {
        let answer: Etcd.RangeResponse = try client.ask("/v3/kv/range", Etcd.Range(keys.domain))
        guard let value = answer.kvs?.first?.value else { return nil }
        guard let domain = try? Etcd.decode(HistoryDomain.self, from: value) else {
            throw ClusterFault("the key \(keys.domain) in etcd does not belong to a Storekeeper")
        }
        return domain
    }

    static func read(_ client: EtcdClient, _ keys: ClusterKeys) throws(ClusterFault) -> Found? {
        let answer: Etcd.RangeResponse = try client.ask("/v3/kv/range", Etcd.Range(keys.meta))
        guard let pair = answer.kvs?.first else { return nil }
        guard let meta = try? Etcd.decode(ClusterMeta.self, from: pair.value ?? Data()),
            let epoch = Epoch(meta.epoch), let modified = UInt64(pair.mod_revision),
            let revision = answer.header.revision.flatMap({ UInt64($0) })
        else { throw ClusterFault("the key \(keys.meta) in etcd does not belong to a Storekeeper") }
        guard meta.format == 1 else {
            throw ClusterFault(
                "the history \(keys.name) in etcd has format \(meta.format), which a newer program reads")
        }
        return Found(meta: meta, epoch: epoch, modified: modified, revision: revision)
    }
}

extension EtcdClient {
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
