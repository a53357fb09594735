internal import GRDB
internal import Glibc
internal import StateStore

/// Opens the journal for reading only: SQLite drops the end of a WAL that does not fit when it closes a database that
/// was opened for writing, and what this program refuses must stay as it is.
struct Inspection {
    var isNew = true
    var term: UInt64
    let isFencePartial: Bool
    var report: StartCheck.Report?
    /// Nil for a new journal; the IDs are those that the index does not have.
    var newest: (tip: ChainLink, ids: RecentIDs)?

    /// An `extent` of nil verifies as much as the last stop calls for.
    init(_ directory: DataDirectory, extent: StartCheck.Extent? = nil) throws {
        let fence = try Fence.read(directory)
        let record = try fence.record(in: directory)
        isFencePartial = if case .record(_, true) = fence { true } else { false }
        term = record?.term ?? 0
        do {
            isNew = try !inspect(directory, record, extent)
        } catch {
            throw JournalError("open", directory.journal, error)
        }
    }

    private mutating func inspect(
        _ directory: DataDirectory, _ fence: FenceRecord?, _ extent: StartCheck.Extent?
    ) throws -> Bool {
        let path = directory.journal
        let size = directory.size(path)
        // SQLite would delete the WAL of a file that is missing or empty.
        guard let size, size > 0 else {
            let state = size == nil ? "missing" : "empty"
            try Self.refuse(path, "is \(state)", fence)
            guard directory.size(path + "-wal") ?? 0 == 0 else {
                throw JournalError(
                    "the journal \(path) is \(state), although its WAL is there: \(JournalError.advice)", kind: .damage)
            }
            return false
        }
        let database = try Self.open(path)
        return try database.read { db in
            let format = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
            guard format > 0 else {
                try Self.refuse(path, "has no tables", fence)
                return false
            }
            let rows = try SegmentRows(db, path)
            guard let fence else { throw JournalError(lackingFence: directory.fence) }
            term = max(term, try JournalSchema.version(db, "term") ?? 0)
            try Self.compare(rows, with: fence, db)
            try rows.verifyBase(db)
            let extent = extent ?? (fence.stage == .closed ? .afterClose : .afterKill)
            report = try StartCheck.run(rows, db, extent)
            newest = (try rows.tip(db), try rows.recentIDs(db))
            return true
        }
    }

    private static func refuse(_ path: String, _ finding: String, _ fence: FenceRecord?) throws(JournalError) {
        guard let fence, fence.stage != .beginning else { return }
        throw JournalError(
            "the journal \(path) \(finding), although the fence beside it says that version \(fence.link.version) was acknowledged: \(JournalError.advice)",
            kind: .damage)
    }

    /// Opens a journal for reading, in a way that changes neither the journal nor its WAL.
    static func open(_ path: String) throws -> DatabaseQueue {
        var status = stat()
        // SQLite removes the WAL beside an empty file.
        guard stat(path, &status) != 0 || status.st_size > 0 else {
            throw JournalError("the journal \(path) is empty: \(JournalError.advice)", kind: .damage)
        }
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        configuration.label = "storekeeper.journal.inspection"
        return try DatabaseQueue(path: path, configuration: configuration)
    }

    static func compare(_ rows: SegmentRows, with fence: FenceRecord, _ db: Database) throws {
        let path = rows.path
        guard rows.epoch == fence.epoch else {
            throw JournalError(
                "the journal \(path) is of another history (\(rows.epoch)) than the fence beside it (\(fence.epoch)): \(JournalError.advice)",
                kind: .damage)
        }
        let tip = try rows.tip(db)
        guard tip.version >= fence.link.version else {
            throw JournalError(
                "the journal \(path) ends at version \(tip.version), although version \(fence.link.version) was acknowledged: the end is lost: \(JournalError.advice)",
                kind: .damage)
        }
        // Commits can only be pruned up to the fence: the fence is on the disk before.
        let link = try rows.link(db, before: fence.link.version + 1)
        guard link == fence.link else {
            throw JournalError(
                "the journal \(path) has another commit of version \(fence.link.version) than the one that was acknowledged: \(JournalError.advice)",
                kind: .damage)
        }
    }
}
