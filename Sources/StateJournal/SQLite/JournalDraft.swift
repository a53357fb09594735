internal import FoundationEssentials
internal import GRDB
internal import Glibc
package import StateStore

/// A new journal for a directory without one, which appears there complete or not at all.
///
/// The draft writes a file of another name without syncs, and renames it once all of it is on the disk. A draft that is
/// released before removes its file. Only one thread may use a draft.
package final class JournalDraft {
    /// The epoch of the new history: two servers must not have the same one.
    package let epoch = Epoch.random()
    private let directory: String
    private let path: String
    private let lock: DirectoryLock
    private let database: DatabaseQueue
    private let rows: SegmentRows
    private let writer: SegmentWriter
    private var tip: ChainLink
    private var ids: [RecentIDs.Entry] = []
    private var waiting: [Commit] = []
    private var waitingBytes = 0
    private var isFinished = false

    /// Locks the directory, which it makes where there is none.
    ///
    /// - Throws: ``JournalError`` when the directory has a journal, or another process has locked it.
    package init(directory: String) throws {
        self.directory = directory
        path = directory + "/draft.sqlite"
        let journalPath = SQLiteJournal.path(in: directory)
        rows = SegmentRows(path: journalPath, epoch: epoch)
        writer = SegmentWriter(epoch: epoch, path: journalPath)
        tip = ChainLink(beginning: epoch, version: 0)
        lock = try DirectoryLock(directory: directory)
        // SQLite would take a leftover file of an old journal, such as its WAL, for a part of the new one.
        let journal = URL(fileURLWithPath: SQLiteJournal.path(in: directory)).lastPathComponent
        do {
            let names = try FileManager.default.contentsOfDirectory(atPath: directory)
            guard !names.contains(where: { $0.hasPrefix(journal) }) else {
                throw JournalError("the data directory \(directory) has a journal already; an empty one is needed")
            }
            // A draft whose process was killed leaves its file.
            if names.contains("draft.sqlite") { try FileManager.default.removeItem(atPath: path) }
            var configuration = Configuration()
            configuration.label = "storekeeper.journal.draft"
            database = try DatabaseQueue(path: path, configuration: configuration)
            try database.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
            }
        } catch {
            throw JournalError("begin", SQLiteJournal.path(in: directory), error)
        }
    }

    deinit {
        // If the file cannot be removed, the next draft removes it.
        if !isFinished { try? FileManager.default.removeItem(atPath: path) }
    }

    /// Begins the history with a state, as UTF-8 JSON.
    ///
    /// - Throws: ``JournalError``.
    package func begin(_ state: [UInt8], version: Version) throws {
        tip = ChainLink(beginning: epoch, version: version)
        try writing { try SQLiteJournal.begin($0, rows.path, epoch, version: version, state: state) }
    }

    /// Adds the next commit; writes 1,024 commits, which are four segments, or 16 megabytes at a time.
    ///
    /// - Throws: ``JournalError``.
    package func append(_ commit: Commit) throws {
        waiting.append(commit)
        waitingBytes += commit.action.count + commit.patch.count
        if waiting.count >= 4 * SegmentBody.commitsMax || waitingBytes >= 16 << 20 { try flush() }
    }

    /// Saves the state after the last commit, and makes the draft the directory's journal.
    ///
    /// - Throws: ``JournalError``; the directory then has no journal.
    package func finish(_ state: [UInt8], version: Version) throws {
        try flush()
        try writing { db in
            try IDTable.insert(ids.sorted(), db)
            try IDTable.setIndexed(db, through: tip.version)
            try rows.insertSnapshot(db, version: version, state: state)
            writer.finish()
        }
        do {
            try database.close()
        } catch { throw JournalError("finish", SQLiteJournal.path(in: directory), error) }
        try sync(path)
        guard rename(path, SQLiteJournal.path(in: directory)) == 0 else {
            throw JournalError("cannot rename \(path): \(String(cString: strerror(errno)))")
        }
        isFinished = true
        try sync(directory)
        lock.release()
    }

    private func flush() throws {
        guard !waiting.isEmpty else { return }
        try writing { db in
            tip = try writer.insert(waiting, after: tip, db)
            for commit in waiting {
                ids += commit.clientIDs.map { RecentIDs.Entry(hash: RecentIDs.hash(of: $0), version: commit.version) }
            }
            if ids.count >= RecentIDs.waitingMax {
                try IDTable.insert(ids.sorted(), db)
                ids.removeAll(keepingCapacity: true)
            }
        }
        waiting.removeAll(keepingCapacity: true)
        waitingBytes = 0
    }

    private func writing(_ write: (Database) throws -> Void) throws {
        do {
            try database.write(write)
        } catch {
            throw JournalError("write to", SQLiteJournal.path(in: directory), error)
        }
    }

    private func sync(_ path: String) throws {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        defer { if descriptor >= 0 { Glibc.close(descriptor) } }
        guard descriptor >= 0, fsync(descriptor) == 0 else {
            throw JournalError("cannot write \(path) to the disk: \(String(cString: strerror(errno)))")
        }
    }
}
