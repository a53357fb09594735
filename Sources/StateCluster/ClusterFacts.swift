internal import FoundationEssentials
package import StateStore

package struct ClusterFacts: Sendable, Encodable {
    package struct Turns: Sendable, Encodable {
        package var count = 0
        package var bytes = 0
    }

    package var format: Int
    package var epoch: String
    package var domain: String?
    package var versions: HistoryVersions
    package var commits: Int
    /// Oldest first.
    package var snapshots: [SnapshotSize]
    package var keys = 0
    package var turns = Turns()
    package var revision: UInt64
    package var etcds: EtcdCount

    /// O(n) in the bytes of the turns, also while servers write; verifies only the commits after the newest snapshot.
    package init(_ address: ClusterAddress, at time: Timestamp) throws {
        let history = try ClusterHistory(address)
        let (oldest, manifests) = (history.oldest(), try history.saved.manifests())
        format = history.format
        epoch = history.epoch.text
        domain = history.domain?.name
        versions = HistoryVersions(
            oldestState: manifests.first { $0.version >= oldest }?.version ?? history.latest,
            oldestCommit: oldest + 1, latest: history.latest)
        commits = Int(history.latest - oldest)
        snapshots = manifests.map { SnapshotSize(version: $0.version, bytes: $0.stateBytes) }
        revision = history.revision
        etcds = EtcdCount(address)
        try history.pages.forEach(from: oldest) { _, value in
            guard !RecordedTurn.isBeginning(value) else { return true }
            turns.count += 1
            turns.bytes += value.count
            return true
        }
        guard let newest = manifests.last else { return }
        keys = try history.saved.load(newest, history.epoch).1.count { $0.expiry > time }
        try history.forEachCommit(after: newest.version) { commit in
            if let key = commit.idempotency, key.expiry > time { keys += 1 }
        }
    }
}

package struct EtcdCount: Sendable, Encodable, CustomStringConvertible {
    package var answering = 0
    package var all: Int

    /// For two seconds at most.
    package init(_ address: ClusterAddress) {
        all = address.endpoints.count
        for endpoint in address.endpoints {
            var one = address
            one.endpoints = [endpoint]
            // Whatever the reason is, this one does not answer.
            let client = try? EtcdClient(one, label: "probe")
            let answer: Etcd.Nothing? = try? client?.call("/v3/maintenance/status", Etcd.Nothing())
            if answer != nil { answering += 1 }
        }
    }

    package var description: String { "\(answering) of \(all) etcds answer" }
}
