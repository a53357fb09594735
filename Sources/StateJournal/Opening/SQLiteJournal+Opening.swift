internal import GRDB
internal import Glibc
internal import StateStore

extension SQLiteJournal {
    /// Opens the database, also on a full disk.
    static func open(_ path: String) throws -> DatabasePool {
        var status = stat()
        let isEmpty = stat(path + "-wal", &status) != 0 || status.st_size == 0
        do {
            return try openPool(path)
        } catch let error as DatabaseError where isEmpty && error.resultCode == .SQLITE_FULL {
            // GRDB writes to a WAL that is empty. One byte, which takes no room on the disk, is no frame, and keeps it from that.
            let descriptor = Glibc.open(
                path + "-wal", O_RDWR | O_CREAT | O_CLOEXEC, stat(path, &status) == 0 ? status.st_mode & 0o777 : 0o600)
            defer { if descriptor >= 0 { Glibc.close(descriptor) } }
            guard descriptor >= 0, ftruncate(descriptor, 1) == 0 else { throw error }
            return try openPool(path)
        }
    }

    private static func openPool(_ path: String) throws -> DatabasePool {
        var configuration = Configuration()
        configuration.busyMode = .timeout(5)
        configuration.maximumReaderCount = 4
        configuration.label = "storekeeper.journal"
        let database = try DatabasePool(path: path, configuration: configuration)
        // GRDB sets NORMAL when it switches to WAL, with which a power failure can lose acknowledged commits.
        let synchronous = try database.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA synchronous = FULL")
            return try Int.fetchOne(db, sql: "PRAGMA synchronous")
        }
        guard synchronous == 2 else { throw JournalError("SQLite does not take synchronous=FULL") }
        return database
    }

    /// Writes the fence before the history begins: a journal without a fence is refused.
    static func announce(_ epoch: Epoch, _ directory: DataDirectory, term: UInt64) throws {
        let link = ChainLink(beginning: epoch, version: 0)
        _ = try Fence(directory, FenceRecord(epoch: epoch, term: term, link: link, stage: .beginning))
        try directory.touch(directory.journal)
    }

    /// No other writer can append behind the new term.
    ///
    /// A failed sync of an earlier process has left its bytes in the page cache only: the checkpoint writes them to the
    /// disk before anything is published, if there is room.
    static func nextTerm(
        _ db: Database, _ rows: SegmentRows, _ directory: DataDirectory, after known: UInt64
    ) throws -> (term: UInt64, tip: ChainLink) {
        do {
            _ = try db.checkpoint(.truncate)
        } catch let error as DatabaseError {
            // An export is reading, or there is no room in the file. A server that can be read is worth more.
            guard [.SQLITE_BUSY, .SQLITE_FULL, .SQLITE_IOERR].contains(error.resultCode) else { throw error }
        }
        try directory.sync(directory.path)
        var term = known
        try db.inTransaction(.immediate) {
            term = max(term, try JournalSchema.term(db)) + 1
            try JournalSchema.setTerm(db, term)
            try JournalSchema.addSizes(db)
            return .commit
        }
        return (term, try rows.tip(db))
    }
}
