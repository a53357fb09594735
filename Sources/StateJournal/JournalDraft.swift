internal import FoundationEssentials
internal import GRDB
internal import Glibc
package import StateStore

/// A journal in the making, in a directory without one: it is there whole, or not at all.
///
/// It is written under another name, without a sync, and gets its own when all of it is on the disk. A draft that is
/// dropped before takes its file along. One thread uses it.
package final class JournalDraft {
    /// The new history's name: two servers must not share one.
    package let epoch = Epoch.random()
    private let directory: String
    private let path: String
    private let lock: DirectoryLock
    private let database: DatabaseQueue
    private var waiting: [Commit] = []
    private var waitingBytes = 0
    private var isFinished = false

    /// Takes the directory, which is made where there is none.
    ///
    /// - Throws: ``JournalError`` when there is a journal in it, or another process has it.
    package init(directory: String) throws {
        self.directory = directory
        path = directory + "/draft.sqlite"
        lock = try DirectoryLock(directory: directory)
        // A file beside the journal, such as its WAL, would be taken for a part of the new one.
        let journal = URL(fileURLWithPath: SQLiteJournal.path(in: directory)).lastPathComponent
        do {
            let names = try FileManager.default.contentsOfDirectory(atPath: directory)
            guard !names.contains(where: { $0.hasPrefix(journal) }) else {
                throw JournalError("the data directory \(directory) has a journal already; an empty one is needed")
            }
            // Of a draft whose process was killed.
            if names.contains("draft.sqlite") { try FileManager.default.removeItem(atPath: path) }
            var configuration = Configuration()
            configuration.label = "storekeeper.journal.draft"
            database = try DatabaseQueue(path: path, configuration: configuration)
            try database.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
            }
        } catch let error as JournalError {
            throw error
        } catch {
            throw JournalError("begin", SQLiteJournal.path(in: directory), error)
        }
    }

    deinit {
        // Where it cannot be removed, the next draft tries again.
        if !isFinished { try? FileManager.default.removeItem(atPath: path) }
    }

    /// Begins the history with a state.
    package func begin(_ state: [UInt8], version: Version) throws {
        try writing { try SQLiteJournal.begin($0, epoch, version: version, state: state) }
    }

    /// Adds the next commit.
    package func append(_ commit: Commit) throws {
        waiting.append(commit)
        waitingBytes += commit.action.count + commit.patch.count
        if waiting.count >= 1000 || waitingBytes >= 16 << 20 { try flush() }
    }

    /// Saves the state after the last commit, and makes the draft the directory's journal.
    ///
    /// - Throws: ``JournalError``; then there is no journal.
    package func finish(_ state: [UInt8], version: Version) throws {
        try flush()
        try writing { try SQLiteJournal.insertSnapshot($0, version: version, state: state) }
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
            for commit in waiting { try SQLiteJournal.insert(commit, db) }
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
