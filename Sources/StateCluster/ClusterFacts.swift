internal import FoundationEssentials
package import StateJournal
package import StateStore

extension JournalFacts {
    /// O(n) in the bytes of the turns, also while servers write; verifies only the commits after the newest snapshot.
    package init(_ address: ClusterAddress, at time: Timestamp) throws {
        let history = try ClusterHistory(address)
        let (oldest, manifests) = (history.oldest(), try history.stored.manifests())
        self.init()
        format = history.format
        epoch = history.epoch.text
        domain = history.domain?.name
        versions = HistoryVersions(
            oldestState: manifests.first { $0.version >= oldest }?.version ?? history.latest,
            oldestCommit: oldest + 1, latest: history.latest)
        commits = Int(history.latest - oldest)
        snapshots = manifests.map { SnapshotSize(version: $0.version, bytes: $0.stateBytes) }
        revision = history.stored.revision
        etcds = EtcdCount(address)
        var found = Turns()
        try history.stored.forEachTurn(from: oldest) { _, value in
            guard !RecordedTurn.isBeginning(value) else { return true }
            found.count += 1
            found.bytes += value.count
            return true
        }
        turns = found
        var live = 0
        if let newest = manifests.last {
            live = try history.stored.load(newest, history.epoch).1.count { $0.expiry > time }
            try history.forEachCommit(after: newest.version) { commit in
                if let key = commit.idempotency, key.expiry > time { live += 1 }
            }
        }
        keys = live
    }
}

extension EtcdCount {
    /// For two seconds at most.
    package init(_ address: ClusterAddress) {
        self.init(all: address.endpoints.count)
        for endpoint in address.endpoints {
            var one = address
            one.endpoints = [endpoint]
            // Whatever the reason is, this one does not answer.
            let client = try? EtcdClient(one, label: "probe")
            let answer: Etcd.Nothing? = try? client?.call("/v3/maintenance/status", Etcd.Nothing())
            if answer != nil { answering += 1 }
        }
    }
}
