internal import GRDB
package import StateStore

/// Appears complete or not at all: the draft writes a file of another name without syncs, and renames it once it is on
/// the disk; one that is released before removes its file, and only one thread may use it.
package final class JournalDraft: HistoryDraft {
    package let epoch: Epoch
    package var domain: HistoryDomain?
    private let directory: DataDirectory
    private let lock: DirectoryLock
    private let database: DatabaseQueue
    private let rows: SegmentRows
    private let writer: SegmentWriter
    private var tip: ChainLink
    private var ids: [IDVersions.Entry] = []
    private var waiting: [Commit] = []
    private var waitingBytes = 0
    private var isFinished = false

    /// Two servers must not have the same epoch; throws where the directory has a journal, or is locked.
    package convenience init(directory: String, epoch: Epoch = .random()) throws {
        let place = DataDirectory(path: directory)
        let lock = try DirectoryLock(place)
        // SQLite would take a leftover file of an old journal, such as its WAL, for a part of the new one.
        for file in [place.journal, place.replacement] {
            for suffix in [""] + DataDirectory.companions where place.size(file + suffix) != nil {
                throw JournalError("the data directory \(directory) has a journal already; an empty one is needed")
            }
        }
        if case .record(let fence, _) = try Fence.read(place), fence.stage != .beginning {
            throw JournalError(
                "the data directory \(directory) has the fence of a journal, although the journal is gone; an empty one is needed"
            )
        }
        try self.init(in: place, lock, epoch)
    }

    init(in directory: DataDirectory, _ lock: DirectoryLock, _ epoch: Epoch = .random()) throws {
        self.epoch = epoch
        self.directory = directory
        self.lock = lock
        rows = SegmentRows(path: directory.journal, epoch: epoch)
        writer = SegmentWriter(epoch: epoch, path: directory.journal)
        tip = ChainLink(beginning: epoch, version: 0)
        try directory.removeDraft()
        try directory.touch(directory.draft)
        do {
            var configuration = Configuration()
            configuration.label = "storekeeper.journal.draft"
            database = try DatabaseQueue(path: directory.draft, configuration: configuration)
            try database.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
            }
        } catch {
            throw JournalError("begin", directory.journal, error)
        }
    }

    deinit {
        guard !isFinished else { return }
        // If the file cannot be removed, the next draft removes it.
        try? directory.remove(directory.draft)
        lock.undo()
    }

    package func begin(version: Version, keys: [KeyRecord]) throws {
        tip = ChainLink(beginning: epoch, version: version)
        try writing { db in
            try JournalSchema.begin(db, epoch, version: version)
            if let domain { try JournalSchema.setDomain(db, domain) }
            try writer.insert(keys, db)
        }
    }

    package func save(_ state: [UInt8]) throws {
        try flush()
        try writing { try rows.insertSnapshot($0, version: tip.version, state: state) }
    }

    /// Writes 1,024 commits, which are four segments, or 16 megabytes at a time.
    package func append(_ commit: Commit) throws {
        waiting.append(commit)
        waitingBytes += commit.action.count + commit.patch.count
        if waiting.count >= 4 * SegmentBody.commitsMax || waitingBytes >= 16 << 20 { try flush() }
    }

    /// After an error, the directory has no journal.
    package func finish() throws {
        try end()
        // The fence comes first: a journal without one is refused. A process that is killed meanwhile leaves no journal, or a
        // whole one.
        let fence = try Fence(directory, FenceRecord(epoch: epoch, term: 0, link: tip, stage: .beginning))
        try directory.rename(directory.draft, to: directory.journal)
        try directory.sync(directory.path)
        try fence.close()
        isFinished = true
        lock.release()
    }

    func finishReplacement() throws {
        try end()
        try directory.rename(directory.draft, to: directory.replacement)
        isFinished = true
        try directory.sync(directory.path)
    }

    private func end() throws {
        try flush()
        try writing { db in
            try IDTable.insert(ids.sorted(), db)
            try IDTable.setIndexed(db, through: tip.version)
            writer.finish()
        }
        do {
            try database.close()
        } catch { throw JournalError("finish", directory.journal, error) }
        try directory.sync(directory.draft)
    }

    private func flush() throws {
        guard !waiting.isEmpty else { return }
        try writing { db in
            tip = try writer.insert(waiting, after: tip, db)
            for commit in waiting { ids += IDVersions.entries(of: commit) }
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
            throw JournalError("write to", directory.journal, error)
        }
    }
}
