internal import FoundationEssentials
internal import Segments
package import StateStore
internal import Synchronization

/// What a journal in etcd keeps: from memory where it is among the newest commits, and else from etcd.
extension ClusterJournal {
    /// The turns whose keys have a version of a range, in order.
    func turns(from first: Version, through last: Version, limit: Int) throws -> [(Version, [UInt8])] {
        let end = last == .max ? ClusterKeys.end(of: keys.turns) : keys.turn(last + 1)
        let answer: Etcd.RangeResponse
        do {
            answer = try client.call("/v3/kv/range", Etcd.Range(keys.turn(first), upTo: end, limit: limit))
        } catch { throw ClusterFault(error) }
        return (answer.kvs ?? []).compactMap { pair in
            keys.version(ofTurn: pair.key).map { ($0, Array(pair.value ?? Data())) }
        }
    }

    /// The newest version that is acknowledged anywhere; what leads to it has come to this journal's followers.
    ///
    /// - Throws: ``ClusterFault`` where etcd does not answer.
    package func newestVersion() throws -> Version {
        let tip = known.withLock { $0.tip.version }
        if try !turns(from: tip + 1, through: .max, limit: 1).isEmpty { catchUp() }
        return known.withLock { $0.tip.version }
    }

    package func commits(after version: Version, through last: Version, limit: Int) throws -> [Commit] {
        if let known = known.withLock({ $0.commits(after: version, limit: limit) }) {
            return last == .max ? known : known.filter { $0.version <= last }
        }
        var commits: [Commit] = []
        var (next, bytes) = (try turn(of: version + 1), 0)
        while commits.count < limit, bytes < 16 << 20 {
            let page = try turns(from: next, through: last, limit: 300)
            guard let newest = page.last else { break }
            for (first, value) in page {
                do throws(KnownTurns.Fault) {
                    for commit in try KnownTurns.commits(first, value, epoch)
                    where commit.version > version && commit.version <= last && commits.count < limit {
                        commits.append(commit)
                        bytes += commit.action.count + commit.patch.count
                    }
                } catch { throw ClusterFault("the turn of version \(first) in etcd cannot be read: \(error)") }
            }
            next = newest.0 + 1
        }
        guard commits.first.map({ $0.version == version + 1 }) ?? true else { return [] }
        return commits
    }

    /// The version in the key of the turn that has a commit, or the commit's own where no turn is so old.
    private func turn(of version: Version) throws(ClusterFault) -> Version {
        var range = Etcd.Range(keys.turn(1), upTo: keys.turn(version + 1), limit: 1)
        (range.sort_order, range.keys_only) = ("DESCEND", true)
        do {
            let answer: Etcd.RangeResponse = try client.call("/v3/kv/range", range)
            return answer.kvs?.first.flatMap { keys.version(ofTurn: $0.key) } ?? version
        } catch {
            throw ClusterFault(error)
        }
    }

    package func page(_ query: ChangesQuery, latest: Cursor) throws -> ChangesPage? {
        let commits = try commits(after: query.since, through: latest.version, limit: 10_000)
        guard !commits.isEmpty || query.since >= latest.version else { return nil }
        return ChangesPage(query, from: commits, latest: latest)
    }

    package func commit(version: Version) throws -> Commit? {
        version > 0 ? try commits(after: version - 1, through: version, limit: 1).first : nil
    }

    /// Looks at the newest 10,000 commits only.
    package func commit(id: String, by subject: String?) throws -> Commit? {
        known.withLock { $0.commit(id: id, by: subject) }
    }

    package func state(at version: Version) throws -> [UInt8]? {
        try ClusterOpening(client, keys).state(at: version, epoch) {
            try commits(after: $0, through: version, limit: $1)
        }
    }

    package func oldestState() throws -> Version {
        try ClusterSnapshots(client: client, keys: keys).manifests(limit: 1).first?.version ?? 0
    }
}
