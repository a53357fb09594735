internal import Dispatch
internal import FoundationEssentials
internal import GRDB
package import StateStore

extension SQLiteJournal {
    package func offer(_ snapshot: any AnySnapshot, saved: @escaping @Sendable (Version) -> Void) {
        guard claimSnapshot() else { return }
        background.async { [self] in
            do {
                saved(try saveSnapshot(snapshot.whole(), version: snapshot.cursor.version))
            } catch {
                report(.snapshotNotSaved(reason: "\(error)"))
            }
        }
    }

    /// Returns whether a snapshot is due, and if so claims the right to save it.
    package func claimSnapshot() -> Bool { scheduleSnapshots { $0.claim() } }

    /// Saves a snapshot after ``claimSnapshot()``, and prunes what exceeds the retention.
    ///
    /// - Returns: the oldest version after which the journal has all commits.
    /// - Throws: ``JournalError``. No commit is lost; the next start takes longer.
    package func saveSnapshot(_ state: [UInt8], version: Version) throws -> Version {
        defer { scheduleSnapshots { $0.finish(snapshotBytes: state.count) } }
        do {
            return try database.write { db in
                try rows.insertSnapshot(db, version: version, state: state)
                return try prune(db, latest: version)
            }
        } catch { throw JournalError("write a snapshot to", path, error) }
    }

    /// Deletes snapshots, expired keys and the segments that only have commits beyond the retention.
    private func prune(_ db: Database, latest: Version) throws -> Version {
        try db.execute(
            sql: """
                DELETE FROM snapshots WHERE version NOT IN
                    (SELECT version FROM snapshots ORDER BY version DESC LIMIT ?)
                """, arguments: [max(retention.snapshotsMax, 2)])
        try db.execute(
            sql: "DELETE FROM keys WHERE expiry < ?", arguments: [Int64(Date().timeIntervalSince1970 * 1000)])
        // The commits after the oldest snapshot stay, so that a start can use it when the newer ones are damaged.
        let kept = try rows.oldestState(db)
        let surplus = latest > Version(retention.commitsMax) ? latest - Version(retention.commitsMax) : 0
        let base = try rows.base(db)
        guard let link = try rows.link(db, endingAtOrBefore: min(kept, surplus)), link.version > base.version else {
            return base.version
        }
        try db.execute(sql: "DELETE FROM segments WHERE first <= ?", arguments: [Int64(link.version)])
        try JournalSchema.setBase(db, link)
        return link.version
    }
}
