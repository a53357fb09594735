internal import GRDB
package import StateStore
internal import Synchronization

extension SQLiteJournal {
    package struct Compaction: Sendable {
        package var bytesBefore: Int
        package var bytesAfter: Int
        package var oldestBefore: Version
        package var oldestAfter: Version
        package var damagedSnapshots: [Version]
    }

    /// Refuses a journal that lacks a commit, or that a server uses; SQLite writes the file anew in one transaction,
    /// which needs free space of up to twice its size, and an error loses nothing.
    package static func compact(
        directory path: String, retention: JournalRetention, at time: Timestamp
    ) throws -> Compaction {
        let directory = DataDirectory(path: path)
        let none = JournalError("there is no journal in the data directory \(path)")
        guard directory.size(directory.journal) ?? 0 > 0 else { throw none }
        let before = directory.size(directory.journal) ?? 0
        let journal = try SQLiteJournal(
            directory: path, retention: retention, extent: .whole, initial: { throw none })
        let recovery = try journal.recover(at: time)
        if recovery.patchesCount > 0 {
            _ = try journal.saveSnapshot(recovery.state, version: recovery.version)
            journal.snapshots.withLock {
                $0.begin(commits: 0, patchBytes: 0, bytes: 0, snapshotBytes: recovery.state.count)
            }
        }
        let (oldest, damaged) = try journal.shrink(latest: recovery.version)
        try journal.close(recovery.state, version: recovery.version)
        return Compaction(
            bytesBefore: before, bytesAfter: directory.size(directory.journal) ?? 0, oldestBefore: recovery.oldest,
            oldestAfter: oldest, damagedSnapshots: damaged)
    }

    private func shrink(latest: Version) throws -> (oldest: Version, damaged: [Version]) {
        do {
            try fence.sync()
            let done = try writing { db in
                let damaged = try rows.snapshotVersions(db, through: .max).filter { try rows.snapshot(db, $0) == nil }
                for version in damaged { try rows.deleteSnapshot(db, version) }
                let oldest = try prune(db, latest: latest)
                try db.execute(sql: "DELETE FROM ids WHERE version <= ?", arguments: [Int64(oldest)])
                return (oldest, damaged)
            }
            try database.writeWithoutTransaction { db in try db.execute(sql: "VACUUM") }
            return done
        } catch {
            throw JournalError("compact", path, error)
        }
    }
}
