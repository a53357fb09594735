internal import FoundationEssentials
internal import StateJSON
internal import StateJournal
package import StateStore

/// A new history in etcd under a name that has none: turns and snapshots first, `meta` last.
///
/// The key `draft` says which draft puts the turns, and each transaction demands that it still does: one that begins later
/// takes the key over, and deletes what it finds.
package final class ClusterDraft: HistoryDraft {
    package let epoch: Epoch
    package var domain: HistoryDomain?
    private let client: EtcdClient
    private let keys: ClusterKeys
    private let snapshots: ClusterSnapshots
    /// The value of the key `draft` while this draft may write.
    private let id = Data(Epoch.random().text.utf8)
    private var encoder: SegmentEncoder
    private var tip: ChainLink
    private var tipKey: Version = 0
    private var records: [KeyRecord] = []
    private var waiting: [Commit] = []
    private var waitingBytes = 0
    private var isFinished = false

    /// For how long a transaction is tried again while etcd elects a leader.
    private static let patience = Duration.seconds(10)
    private static let deletionMax = 1_000

    /// Claims a name, and deletes what an interrupted draft has left there.
    ///
    /// - Parameter epoch: the name of the new history; servers of two histories must not have the same one.
    /// - Throws: ``ClusterFault`` where there is a history of that name, or etcd does not answer.
    package init(_ address: ClusterAddress, epoch: Epoch = .random()) throws {
        self.epoch = epoch
        client = try EtcdClient(address, label: "draft", timeout: .seconds(10))
        keys = ClusterKeys(name: address.name)
        snapshots = ClusterSnapshots(client: client, keys: keys)
        encoder = SegmentEncoder(epoch: epoch, fence: .random(in: 1 ... .max))
        tip = ChainLink(beginning: epoch, version: 0)
        let claim = Etcd.Transaction(
            compare: [.absent(keys.meta)], success: [.init(request_put: .init(keys.draft, id))])
        let answer: Etcd.TransactionResponse = try client.ask("/v3/kv/txn", claim, patience: Self.patience)
        guard answer.succeeded == true else {
            throw ClusterFault("there is a history \(keys.name) in etcd already; another name is needed")
        }
        try removeTurns()
    }

    deinit {
        guard !isFinished else { return }
        // Keys that cannot be removed are not a history, and the next draft removes them.
        try? removeTurns()
        let _: Etcd.TransactionResponse? = try? client.ask(
            "/v3/kv/txn",
            Etcd.Transaction(compare: [isOurs], success: [.init(request_delete_range: .init(keys.draft))]))
    }

    private var isOurs: Etcd.Compare { .equal(keys.draft, id) }
    private var lost: ClusterFault {
        ClusterFault("another command makes a history \(keys.name) in etcd; this one has stopped")
    }

    private func carryOut(_ operations: [Etcd.Operation]) throws {
        let answer: Etcd.TransactionResponse = try client.ask(
            "/v3/kv/txn", Etcd.Transaction(compare: [isOurs], success: operations), patience: Self.patience)
        guard answer.succeeded == true else { throw lost }
    }

    private func removeTurns() throws {
        for prefix in [keys.turns, keys.snapshots, keys.chunks] {
            let end = ClusterKeys.end(of: prefix)
            while true {
                var range = Etcd.Range(prefix, upTo: end, limit: Self.deletionMax)
                range.keys_only = true
                let found: Etcd.RangeResponse = try client.ask("/v3/kv/range", range, patience: Self.patience)
                guard let last = found.kvs?.last else { break }
                var part = Etcd.Range(prefix, upTo: end)
                if found.more == true { part.range_end = last.key }
                try carryOut([.init(request_delete_range: part)])
                guard found.more == true else { break }
            }
        }
    }

    package func begin(version: Version, keys records: [KeyRecord]) throws {
        tip = ChainLink(beginning: epoch, version: version)
        tipKey = version
        self.records = records
        try carryOut([.init(request_put: .init(keys.turn(version), tip.hash.bytes))])
    }

    /// Adds the next commit; puts 1,024 commits, or four megabytes, at a time.
    ///
    /// - Throws: ``ClusterFault``, also for a commit that is larger than etcd takes.
    package func append(_ commit: Commit) throws {
        let bytes = commit.action.count + commit.patch.count
        guard bytes <= ClusterJournal.commitBytesMax else {
            throw ClusterFault(
                "the commit of version \(commit.version) has \(bytes) bytes, and a history in etcd takes \(ClusterJournal.commitBytesMax)"
            )
        }
        waiting.append(commit)
        waitingBytes += bytes
        if let key = commit.idempotency { records.append(key) }
        if waiting.count >= 4 * SegmentBody.commitsMax || waitingBytes >= 4 << 20 { try flush() }
    }

    package func save(_ state: [UInt8]) throws {
        try flush()
        let now = Timestamp.now()
        records.removeAll { $0.expiry <= now }
        guard let manifest = try snapshots.put(state, tip, tipKey, records, epoch, where: [isOurs]) else { throw lost }
        try carryOut([snapshots.operation(manifest)])
    }

    /// Puts `meta`: from then on there is a history.
    ///
    /// - Throws: ``ClusterFault``; there is no history then, unless etcd has carried out what it has not answered.
    package func finish() throws {
        try flush()
        let meta = ClusterMeta(beginning: epoch)
        let record: Etcd.Operation =
            if let domain {
                .init(request_put: .init(keys.domain, try JSON.encode(domain)))
            } else { .init(request_delete_range: .init(keys.domain)) }
        let transaction = Etcd.Transaction(
            compare: [isOurs, .absent(keys.meta)],
            success: [
                .init(request_put: .init(keys.meta, try JSON.encode(meta))), record,
                .init(request_delete_range: .init(keys.draft)),
            ])
        let answer: Etcd.TransactionResponse = try client.ask("/v3/kv/txn", transaction, patience: Self.patience)
        // One that was carried out without an answer has been sent again, and refused.
        guard try answer.succeeded == true || ClusterMeta.read(client, keys)?.meta.secret == meta.secret else {
            throw lost
        }
        isFinished = true
    }

    private func flush() throws {
        for segments in ClusterTurns.groups(waiting, after: tip, with: &encoder) {
            try carryOut(segments.map { .init(request_put: .init(keys.turn($0.first), $0.value)) })
            if let last = segments.last { (tip, tipKey) = (last.link, last.first) }
        }
        waiting.removeAll(keepingCapacity: true)
        waitingBytes = 0
    }
}
