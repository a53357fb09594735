internal import FoundationEssentials
internal import StateJSON
package import StateJournal
package import StateStore

/// Reads one revision of etcd: what servers delete, they compact when they save the second snapshot from now, and then
/// the next read throws; only one thread may use it.
package final class ClusterHistory: RecordedHistory {
    package let epoch: Epoch
    package let latest: Version
    package let domain: HistoryDomain?
    let format: Int
    private let base: Version
    let stored: StoredHistory

    private var name: String { stored.keys.name }

    package init(_ address: ClusterAddress) throws {
        guard let found = try Self.meta(address) else {
            throw ClusterFault("there is no history \(address.name) in etcd")
        }
        let client = try EtcdClient(address, label: "history", timeout: .seconds(10), patience: .seconds(10))
        stored = StoredHistory(client: client, keys: ClusterKeys(name: address.name), revision: found.revision)
        epoch = found.epoch
        format = found.meta.format
        domain = try stored.domain()
        let last = stored.keys.turnRange(limit: 1, isNewestFirst: true)
        guard let base = try stored.oldestVersion(), let newest = try stored.firstTurn(of: last)
        else { throw ClusterFault("the history \(address.name) in etcd has no turns") }
        self.base = base
        latest = try RecordedTurn(newest.key, newest.value, after: nil, epoch).link.version
    }

    package static func isThere(_ address: ClusterAddress) throws -> Bool { try meta(address) != nil }

    private static func meta(_ address: ClusterAddress) throws -> ClusterMeta.Found? {
        let client = try EtcdClient(address, label: "history", timeout: .seconds(10))
        return try StoredHistory(client: client, keys: ClusterKeys(name: address.name)).meta()
    }

    /// Asks etcd for two seconds at most; nil where the history names none.
    package static func domain(_ address: ClusterAddress) throws -> HistoryDomain? {
        let client = try EtcdClient(address, label: "domain")
        return try StoredHistory(client: client, keys: ClusterKeys(name: address.name)).domain()
    }

    package func oldest() -> Version { base }

    /// Each read is at one revision and verifies the chain.
    package func holding<Value>(_ body: () throws -> Value) throws -> Value { try body() }

    /// At either depth: the chain of all turns, and each snapshot's hash and place in it; O(n) in the size.
    package func verify(_ depth: HistoryDepth, at time: Timestamp) throws {
        let manifests = try stored.manifests()
        let ends = Dictionary(manifests.map { ($0.key, $0) }) { first, _ in first }
        try forEachTurn(from: base) { turn in
            guard let manifest = ends[turn.first] else { return true }
            guard turn.link.version == manifest.version, manifest.chain == Data(turn.link.hash.bytes) else {
                throw ClusterFault("the snapshot of version \(manifest.version) in etcd does not belong to its turn")
            }
            return true
        }
        for manifest in manifests { _ = try stored.load(manifest, epoch) }
    }

    package func beginning() throws -> HistoryBeginning { try undamaged().beginning }

    private func undamaged() throws -> (beginning: HistoryBeginning, keys: [KeyRecord]) {
        for manifest in try stored.manifests() where manifest.version >= base {
            guard let (state, keys) = try stored.loadUndamaged(manifest, epoch) else { continue }
            return ((manifest.version, state), keys)
        }
        throw ClusterFault("the history \(name) in etcd has no good snapshot whose later commits are all kept")
    }

    package func beginning(at version: Version) throws -> HistoryBeginning {
        guard version <= latest else {
            throw ClusterFault(
                "the history \(name) in etcd ends at version \(latest): there is no version \(version)")
        }
        let usable = try stored.manifests().filter { $0.version >= base }
        for manifest in usable.reversed() where manifest.version <= version {
            guard let (text, _) = try stored.loadUndamaged(manifest, epoch) else { continue }
            guard manifest.version < version else { return (version, text) }
            var state = try PatchedState(parsing: text, version: manifest.version)
            try forEachCommit(after: manifest.version, through: version) { _ = try state.take($0) }
            return (version, state.bytes())
        }
        throw ClusterFault(
            "the history \(name) in etcd keeps no state of version \(version) with all commits after it; the oldest is \(usable.first?.version ?? latest)"
        )
    }

    package func forEachCommit(after start: Version, _ body: (Commit) throws -> Void) throws {
        try forEachCommit(after: start, through: latest, body)
    }

    private func forEachCommit(after start: Version, through end: Version, _ body: (Commit) throws -> Void) throws {
        guard start < end else { return }
        var last = start
        // The turn with a version is the newest whose key is not above it. It, or the one before, is where the chain begins.
        try forEachTurn(from: max(base, stored.turnKey(of: start))) { turn in
            for commit in turn.commits where commit.version > start && commit.version <= end {
                try body(commit)
                last = commit.version
            }
            return last < end
        }
        guard last == end else { throw RecordedTurn.missing(last + 1) }
    }

    /// Of the first one, whose predecessor may be deleted, only the form is verified, and by the turn behind it that its
    /// hash is the recorded one.
    private func forEachTurn(from key: Version, _ take: (RecordedTurn) throws -> Bool) throws {
        var tip: ChainLink?
        try stored.forEachTurn(from: key) { first, value in
            let turn = try RecordedTurn(first, value, after: tip, epoch)
            tip = turn.link
            return try take(turn)
        }
    }

    package func snapshots() throws -> [Version] { try stored.manifests().map(\.version) }

    package func snapshot(_ version: Version) throws -> [UInt8]? {
        guard let manifest = try stored.manifests().first(where: { $0.version == version }) else { return nil }
        return try stored.loadUndamaged(manifest, epoch)?.0
    }

    package func keys(through version: Version) throws -> [KeyRecord] {
        try undamaged().keys.filter { $0.version <= version }
    }
}

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
