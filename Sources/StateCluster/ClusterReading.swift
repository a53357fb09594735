internal import Dispatch
internal import FoundationEssentials
internal import StateJournal
package import StateStore
internal import Synchronization

extension ClusterJournal {
    func hasTurns(after version: Version, by client: EtcdClient) throws(ClusterFault) -> Bool {
        try client.range(keys.turnRange(from: version + 1, limit: 1, keysOnly: true)).kvs?.isEmpty == false
    }

    /// Acknowledged anywhere; what leads to it has come to this journal's followers.
    package func newestVersion() throws -> Version {
        let tip = known.withLock { $0.tip.version }
        if try hasTurns(after: tip, by: reading.client) { catchUp(by: reading) }
        return known.withLock { $0.tip.version }
    }

    package func commits(after version: Version, through last: Version, limit: Int) throws -> [Commit] {
        if let known = known.withLock({ $0.commits(after: version, limit: limit) }) {
            return last == .max ? known : known.filter { $0.version <= last }
        }
        var commits: [Commit] = []
        var bytes = 0
        try reading.forEachTurn(from: try reading.turnKey(of: version + 1), through: last) { first, value in
            for commit in try RecordedTurn(first, value, after: nil, epoch).commits
            where commit.version > version && commit.version <= last && commits.count < limit {
                commits.append(commit)
                bytes += commit.action.count + commit.patch.count
            }
            return commits.count < limit && bytes < 16 << 20
        }
        guard commits.first.map({ $0.version == version + 1 }) ?? true else { return [] }
        return commits
    }

    /// The first call for an ID that is not of a commit since this server's start reads all turns that are kept.
    package func commit(id: String, by subject: String?) throws -> Commit? {
        let name = CommitName(id, by: subject)
        func commit(among versions: [Version]) throws -> Commit? {
            for version in versions {
                if let found = try self.commit(version: version), found.has(clientID: id, by: subject) { return found }
            }
            return nil
        }
        let (versions, isWhole) = known.withLock { ($0.ids.versions(name), $0.ids.isWhole) }
        if let found = try commit(among: versions) { return found }
        guard !isWhole else { return nil }
        return try commit(
            among: indexing.sync {
                try readPastIDs()
                return known.withLock { $0.ids.versions(name) }
            })
    }

    private func readPastIDs() throws {
        let (since, isWhole) = known.withLock { ($0.ids.since, $0.ids.isWhole) }
        guard !isWhole else { return }
        var past = KnownIDs(since: try reading.oldestVersion() ?? 0)
        if past.since < since {
            try reading.forEachTurn(from: past.since + 1, through: since) { first, value in
                for commit in try RecordedTurn(first, value, after: nil, epoch, onlyWithIDs: true).commits
                where commit.version <= since { past.insert(commit) }
                return true
            }
        }
        known.withLock { $0.ids.insert(before: past, since) }
    }

    package func state(at version: Version) throws -> SavedState? {
        guard let manifest = try reading.manifests().last(where: { $0.version <= version }) else { return nil }
        var state = try PatchedState(parsing: try reading.load(manifest, epoch).0, version: manifest.version)
        while state.version < version {
            let page = try commits(after: state.version, through: version, limit: 1000)
            guard !page.isEmpty else { return nil }
            for commit in page { _ = try state.take(commit) }
        }
        return state.saved
    }

    package func oldestState() throws -> Version {
        try reading.manifests(limit: 1).first?.version ?? 0
    }
}
