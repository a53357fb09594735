internal import Dispatch
internal import FoundationEssentials
internal import StateJournal
package import StateStore
internal import Synchronization

extension ClusterJournal {
    func hasTurns(after version: Version, by client: EtcdClient) throws(ClusterFault) -> Bool {
        var range = Etcd.Range(keys.turn(version + 1), upTo: ClusterKeys.end(of: keys.turns), limit: 1)
        range.keys_only = true
        let answer: Etcd.RangeResponse = try client.ask("/v3/kv/range", range)
        return answer.kvs?.isEmpty == false
    }

    /// The newest version that is acknowledged anywhere; what leads to it has come to this journal's followers.
    ///
    /// - Throws: ``ClusterFault`` where etcd does not answer.
    package func newestVersion() throws -> Version {
        let tip = known.withLock { $0.tip.version }
        if try hasTurns(after: tip, by: reader) { catchUp(by: reader) }
        return known.withLock { $0.tip.version }
    }

    package func commits(after version: Version, through last: Version, limit: Int) throws -> [Commit] {
        if let known = known.withLock({ $0.commits(after: version, limit: limit) }) {
            return last == .max ? known : known.filter { $0.version <= last }
        }
        var commits: [Commit] = []
        var bytes = 0
        let key = try ClusterOpening(reader, keys).turn(of: version + 1)
        try TurnPages(reader, keys).forEach(from: key, through: last) { first, value in
            do throws(KnownTurns.Fault) {
                for commit in try KnownTurns.commits(first, value, epoch)
                where commit.version > version && commit.version <= last && commits.count < limit {
                    commits.append(commit)
                    bytes += commit.action.count + commit.patch.count
                }
            } catch { throw ClusterFault("the turn of version \(first) in etcd cannot be read: \(error)") }
            return commits.count < limit && bytes < 16 << 20
        }
        guard commits.first.map({ $0.version == version + 1 }) ?? true else { return [] }
        return commits
    }

    package func page(_ query: ChangesQuery, latest: Cursor) throws -> ChangesPage? {
        let commits = try commits(after: query.since, through: latest.version, limit: 10_000)
        guard !commits.isEmpty || query.since >= latest.version else { return nil }
        return ChangesPage(query, from: commits, latest: latest)
    }

    package func commit(version: Version) throws -> Commit? {
        version > 0 ? try commits(after: version - 1, through: version, limit: 1).first : nil
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
        var past = KnownIDs(since: try ClusterOpening(reader, keys).oldestTurn())
        if past.since < since {
            try TurnPages(reader, keys).forEach(from: past.since + 1, through: since) { first, value in
                do throws(KnownTurns.Fault) {
                    for commit in try KnownTurns.commits(first, value, epoch, needsIDs: true)
                    where commit.version <= since { past.insert(commit) }
                } catch { throw ClusterFault("the turn of version \(first) in etcd cannot be read: \(error)") }
                return true
            }
        }
        known.withLock { $0.ids.insert(before: past, since) }
    }

    package func state(at version: Version) throws -> SavedState? {
        try ClusterOpening(reader, keys).state(at: version, epoch) {
            try commits(after: $0, through: version, limit: $1)
        }
    }

    package func oldestState() throws -> Version {
        try ClusterSnapshots(client: reader, keys: keys).manifests(limit: 1).first?.version ?? 0
    }
}
