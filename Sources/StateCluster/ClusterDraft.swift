internal import FoundationEssentials
internal import StateJSON
internal import StateJournal
package import StateStore

/// Puts turns and snapshots first, `meta` last; the key `draft` says which draft writes, and each transaction demands
/// it: one that begins later takes the key over, and deletes what it finds.
package final class ClusterDraft: HistoryDraft {
    package let epoch: Epoch
    package var domain: HistoryDomain?
    private let stored: StoredHistory
    private let id = Data(Epoch.random().text.utf8)
    private var encoder: SegmentEncoder
    private var tip: ChainLink
    private var tipKey: Version = 0
    private var records: [KeyRecord] = []
    private var waiting: [Commit] = []
    private var waitingBytes = 0
    private var isFinished = false

    private static let deletionMax = 1_000

    /// Deletes what an interrupted draft has left; servers of two histories must not have the same epoch.
    package init(_ address: ClusterAddress, epoch: Epoch = .random()) throws {
        self.epoch = epoch
        let client = try EtcdClient(address, label: "draft", timeout: .seconds(10), patience: .seconds(10))
        stored = StoredHistory(client: client, keys: ClusterKeys(name: address.name))
        encoder = SegmentEncoder(epoch: epoch, fence: .random(in: 1 ... .max))
        tip = ChainLink(beginning: epoch, version: 0)
        guard try client.commit([.put(keys.draft, id)], where: [.absent(keys.meta)]) else {
            throw ClusterFault("there is a history \(keys.name) in etcd already; another name is needed")
        }
        try removeTurns()
    }

    deinit {
        guard !isFinished else { return }
        // Keys that cannot be removed are not a history, and the next draft removes them.
        try? removeTurns()
        _ = try? client.commit([.delete(.init(keys.draft))], where: [isOurs])
    }

    private var client: EtcdClient { stored.client }
    private var keys: ClusterKeys { stored.keys }
    private var isOurs: Etcd.Compare { .equal(keys.draft, id) }
    private var lost: ClusterFault {
        ClusterFault("another command makes a history \(keys.name) in etcd; this one has stopped")
    }

    private func carryOut(_ operations: [Etcd.Operation]) throws {
        guard try client.commit(operations, where: [isOurs]) else { throw lost }
    }

    private func removeTurns() throws {
        for prefix in [keys.turns, keys.snapshots, keys.chunks] {
            var isMore = true
            while isMore {
                let found = try client.range(Etcd.Range(below: prefix, limit: Self.deletionMax, keysOnly: true))
                guard let last = found.kvs?.last else { break }
                isMore = found.more == true
                var part = Etcd.Range(below: prefix)
                if isMore { part.range_end = last.key }
                try carryOut([.delete(part)])
            }
        }
    }

    package func begin(version: Version, keys records: [KeyRecord]) throws {
        tip = ChainLink(beginning: epoch, version: version)
        tipKey = version
        self.records = records
        try carryOut([.put(keys.turn(version), tip.hash.bytes)])
    }

    /// Puts 1,024 commits, or four megabytes, at a time; throws for a commit that is larger than etcd takes.
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
        guard let manifest = try stored.putSnapshot(state, tip, tipKey, records, epoch, where: [isOurs]) else {
            throw lost
        }
        try carryOut([stored.operation(manifest)])
    }

    /// From then on there is a history; after an error there is none, unless etcd has carried out what it has not
    /// answered.
    package func finish() throws {
        try flush()
        let meta = ClusterMeta(beginning: epoch)
        let record = try domain.map { Etcd.Operation.put(keys.domain, try JSON.encode($0)) }
        let operations: [Etcd.Operation] = [
            .put(keys.meta, try JSON.encode(meta)), record ?? .delete(.init(keys.domain)), .delete(.init(keys.draft)),
        ]
        // One that was carried out without an answer has been sent again, and refused.
        guard
            try client.commit(operations, where: [isOurs, .absent(keys.meta)])
                || stored.meta()?.meta.secret == meta.secret
        else {
            throw lost
        }
        isFinished = true
    }

    private func flush() throws {
        for segments in ClusterTurns.groups(waiting, after: tip, with: &encoder) {
            try carryOut(segments.map { .put(keys.turn($0.first), $0.value) })
            if let last = segments.last { (tip, tipKey) = (last.link, last.first) }
        }
        waiting.removeAll(keepingCapacity: true)
        waitingBytes = 0
    }
}
