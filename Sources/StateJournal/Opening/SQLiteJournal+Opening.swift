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
}
