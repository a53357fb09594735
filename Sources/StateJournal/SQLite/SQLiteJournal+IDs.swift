internal import Dispatch
internal import GRDB
internal import Segments
package import StateStore
internal import Synchronization

extension SQLiteJournal {
    /// Returns the newest commit with a client's ID, or nil when the journal lacks it.
    ///
    /// - Parameter subject: the subject that has dispatched it; nil for any.
    package func commit(id: String, by subject: String? = nil) throws -> Commit? {
        let hash = RecentIDs.hash(of: id, by: subject)
        let recent = ids.withLock { $0.versions(hash) }
        return try reading { db in
            // The IDs in memory are newer than those in the table.
            for version in recent {
                if let commit = try rows.commit(db, version), commit.has(clientID: id, by: subject) { return commit }
            }
            for version in try IDTable.versions(db, hash) {
                if let commit = try rows.commit(db, version), commit.has(clientID: id, by: subject) { return commit }
            }
            return nil
        }
    }

    /// Adds the IDs of commits to the index, and writes them to the table when they are many.
    func indexIDs(of commits: [Commit]) {
        let isDue = ids.withLock { ids in
            ids.insert(commits)
            return ids.isDue
        }
        guard isDue else { return }
        background.async { [self] in
            guard let (entries, version) = ids.withLock({ $0.claim() }) else { return }
            do {
                try IDTable.write(
                    entries, through: version, pruned: reading { try rows.oldest($0) }, to: database)
                ids.withLock { $0.finish(through: version) }
            } catch {
                ids.withLock { $0.abandon() }
                report(.idsNotIndexed(reason: JournalError("write the IDs of commits to", path, error).description))
            }
        }
    }
}

extension SegmentRows {
    func recentIDs(_ db: Database) throws -> RecentIDs {
        let base = try base(db).version
        let tip = try tip(db).version
        let recorded = try IDTable.indexed(db) ?? base
        // A version behind the tip is damage, and says nothing of what the table has.
        let indexed = recorded <= tip ? max(recorded, base) : base
        var ids = RecentIDs(indexed: indexed)
        try readSegments(db, after: indexed, through: .max) { decoder, first in
            guard decoder.hasClientIDs else {
                ids.skip(to: first + Version(decoder.count - 1))
                return true
            }
            for index in (indexed >= first ? Int(indexed + 1 - first) : 0)..<decoder.count {
                ids.insert([try decoder.commit(at: index)])
            }
            return true
        }
        return ids
    }
}
