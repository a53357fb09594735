internal import Dispatch
internal import GRDB
package import StateStore
internal import Synchronization

/// A commit that ``append(_:after:)`` has taken survives the end of the process and of the machine: each call is one
/// transaction in WAL mode with `synchronous=FULL`; any thread may call any method, and writers take turns.
package final class SQLiteJournal: Journal {
    package let epoch: Epoch
    let path: String
    let rows: SegmentRows
    let database: DatabasePool
    let retention: JournalRetention
    let report: @Sendable (JournalEvent) -> Void
    let background = DispatchQueue(label: "storekeeper.snapshots", qos: .utility)
    let ids: Mutex<RecentIDs>
    let fence: Fence
    private let lock: DirectoryLock
    private let writer: SegmentWriter
    private let condition: Mutex<Condition>
    let snapshots: Mutex<SnapshotSchedule>
    private let directory: DataDirectory
    /// Nil once this writer has taken the journal over.
    private let termBefore: Mutex<UInt64?>

    private struct Condition {
        var tip: ChainLink
        var failure: String?
        var remains: [SegmentWriter.Remains] = []
        /// Whether a failed append may still come into the journal by a recovery of SQLite.
        var isOpen = false
        var failedBytes = 0
        var superseded: JournalError?
        var historyTime = NotedHistoryTime()
    }

    /// An `extent` of nil verifies as much as the last stop calls for; any thread may call `report`, and `initial` is
    /// the first state of a new history.
    init(
        directory: String, retention: JournalRetention = JournalRetention(), extent: StartCheck.Extent? = nil,
        report: @escaping @Sendable (JournalEvent) -> Void = { _ in }, initial: () throws -> [UInt8]
    ) throws {
        let directory = DataDirectory(path: directory)
        path = directory.journal
        self.directory = directory
        lock = try DirectoryLock(directory)
        self.retention = retention
        self.report = report
        try Replacement.complete(directory)
        let inspection = try Inspection(directory, extent: extent)
        if let found = inspection.report { report(.checked(found)) }
        if inspection.isFencePartial { report(.fencePartial) }
        do {
            let new = inspection.isNew ? Epoch.random() : nil
            if let new {
                // The fence comes before the history: a journal without a fence is refused.
                let link = ChainLink(beginning: new, version: 0)
                let record = FenceRecord(epoch: new, term: inspection.term, link: link, stage: .beginning)
                _ = try Fence(directory, record)
                try directory.touch(directory.journal)
            }
            database = try Self.open(path)
            let (rows, tip) = try database.write { [path] db in
                if let new {
                    try JournalSchema.begin(db, new, version: 0)
                    try SegmentRows(path: path, epoch: new).insertSnapshot(db, version: 0, state: initial())
                }
                let rows = try SegmentRows(db, path)
                return (rows, try rows.tip(db))
            }
            (self.rows, epoch) = (rows, rows.epoch)
            fence = Fence(of: directory)
            termBefore = Mutex(inspection.term)
            let known = inspection.newest.flatMap { $0.tip == tip ? $0.ids : nil }
            ids = Mutex(try known ?? database.read { try rows.recentIDs($0) })
            condition = Mutex(Condition(tip: tip))
            snapshots = Mutex(SnapshotSchedule(retention))
            writer = SegmentWriter(epoch: epoch, path: path, term: nil)
            do {
                try takeOver()
            } catch let error where !inspection.isNew && JournalError("write to", path, error).kind == .noRoom {
                let failure = JournalError("write to", path, error).description
                condition.withLock { $0.failure = failure }
                report(.appendFailed(reason: failure, isOpen: false))
            }
        } catch {
            throw JournalError("open", path, error)
        }
    }

    private var mustTakeOver: Bool { termBefore.withLock { $0 != nil } }

    /// No other writer can append behind the new term.
    ///
    /// Without room, what is there can be read, and each append and probe tries again.
    private func takeOver() throws {
        // The lock is held for so long, because an append and a probe must not both do it.
        try termBefore.withLock { termBefore in
            guard let known = termBefore else { return }
            try database.writeWithoutTransaction { db in
                do {
                    // A failed sync of an earlier process has left its bytes in the page cache only: they are written to the
                    // disk before anything is published, if there is room.
                    _ = try db.checkpoint(.truncate)
                } catch let error as DatabaseError {
                    // An export is reading, or there is no room in the file. A server that can be read is worth more.
                    guard [.SQLITE_BUSY, .SQLITE_FULL, .SQLITE_IOERR].contains(error.resultCode) else { throw error }
                }
                try directory.sync(directory.path)
                var term = known
                try db.inTransaction(.immediate) {
                    term = max(term, try JournalSchema.version(db, "term") ?? 0) + 1
                    try JournalSchema.set(db, "term", Int64(clamping: term))
                    try JournalSchema.addSizes(db)
                    return .commit
                }
                try fence.begin(FenceRecord(epoch: epoch, term: term, link: rows.tip(db), stage: .open))
                writer.begin(term: term)
            }
            termBefore = nil
        }
    }

    /// Nil for one of an earlier program.
    package func domain() throws -> HistoryDomain? { try reading { try JournalSchema.domain($0) } }

    package func setDomain(_ domain: HistoryDomain) throws { try writing { try JournalSchema.setDomain($0, domain) } }

    package var failure: String? { condition.withLock { $0.failure } }

    package var isOutcomeOpen: Bool { condition.withLock { $0.isOpen } }

    package var isShared: Bool { false }

    package var bytesCount: Int? {
        // A file that is not there has no bytes: SQLite makes the WAL with the first write.
        (directory.size(path) ?? 0) + (directory.size(path + "-wal") ?? 0)
    }

    package func append(_ commits: [Commit], after version: Version) -> AppendResult {
        do throws(SegmentWriter.Failure) {
            try write(commits)
            return .landed
        } catch {
            report(.appendFailed(reason: error.cause.description, isOpen: error.mayHaveLanded))
            return error.mayHaveLanded ? .unknown : .failed
        }
    }

    /// Does nothing: the directory lock excludes other writers, so no other process appends.
    package func follow(_ appended: @escaping @Sendable () -> Void) {}

    var remainsCount: Int { condition.withLock { $0.remains.count } }

    private func write(_ commits: [Commit]) throws(SegmentWriter.Failure) {
        guard !commits.isEmpty else { return }
        if let superseded = condition.withLock({ $0.superseded }) { throw .init(cause: superseded) }
        do {
            try prepareToWrite()
            try database.writeWithoutTransaction { db in try append(commits, db) }
        } catch {
            throw noteFailure(error, of: commits)
        }
        let hadFailed = condition.withLock { condition in
            defer { condition.failure = nil }
            condition.isOpen = false
            return condition.failure != nil
        }
        snapshots.withLock { $0.count(commits) }
        do throws(JournalError) {
            try fence.raise(to: condition.withLock { $0.tip })
            if hadFailed { report(.appendsAgain) }
        } catch {
            // The commits are on the disk, so they have landed. The next append waits for the fence.
            condition.withLock { $0.failure = error.description }
            report(.appendFailed(reason: error.description, isOpen: false))
        }
    }

    private func append(_ commits: [Commit], _ db: Database) throws(SegmentWriter.Failure) {
        var (tip, remains) = condition.withLock { ($0.tip, $0.remains) }
        defer { condition.withLock { ($0.tip, $0.remains) = (tip, remains) } }
        do throws(SegmentWriter.Failure) {
            tip = try writer.append(commits, after: tip, takingBack: &remains, db)
        } catch {
            guard error.mayHaveLanded else { throw error }
            // If this works, the commits are proven not to be in the journal.
            guard (try? writer.takeBack(&remains, after: tip, writing: 0, db)) != nil else { throw error }
            condition.withLock { $0.isOpen = false }
            throw SegmentWriter.Failure(cause: error.cause)
        }
        // Here, because the index takes the commits in order.
        indexIDs(of: commits)
    }

    private func prepareToWrite() throws {
        if mustTakeOver { try takeOver() }
        // At most one append lands that the fence does not know.
        if let link = fence.unwritten { try fence.raise(to: link) }
    }

    @discardableResult
    private func noteFailure(_ error: any Error, of commits: [Commit]? = nil) -> SegmentWriter.Failure {
        let failure = SegmentWriter.Failure(error, path)
        let isSuperseded = failure.cause.kind == .superseded
        condition.withLock { condition in
            condition.failure = failure.cause.description
            if let commits {
                condition.isOpen = condition.isOpen || failure.mayHaveLanded
                condition.failedBytes = commits.reduce(0) { $0 + $1.action.count + $1.patch.count }
            }
            if isSuperseded { condition.superseded = failure.cause }
        }
        if isSuperseded { fence.giveUp() }
        return failure
    }

    /// Writes as much as the failed append, and takes back what that may have left, so that ``failure`` is reset once
    /// the next append will work.
    package func probe() {
        let isDue = condition.withLock { $0.failure != nil && $0.superseded == nil }
        guard isDue else { return }
        do {
            try prepareToWrite()
            try database.writeWithoutTransaction { db in
                var (tip, remains, bytes) = condition.withLock { ($0.tip, $0.remains, $0.failedBytes) }
                defer { condition.withLock { $0.remains = remains } }
                try writer.takeBack(&remains, after: tip, writing: bytes, db)
                condition.withLock { ($0.failure, $0.isOpen) = (nil, false) }
            }
            report(.appendsAgain)
        } catch {
            noteFailure(error)
        }
    }

    func writing<Value>(_ write: (Database) throws -> Value) throws -> Value {
        try database.write { db in
            try writer.verifyTerm(db)
            return try write(db)
        }
    }

    func withHistoryTime<Value: Sendable>(_ change: (inout NotedHistoryTime) -> Value) -> Value {
        condition.withLock { change(&$0.historyTime) }
    }

    package func close(_ snapshot: Snapshot) throws {
        try close(snapshot.saved(), version: snapshot.cursor.version)
    }

    /// No recorded commit is lost by an error; the next start takes longer.
    package func close(_ state: [UInt8], version: Version) throws {
        defer { lock.release() }
        do {
            // The work of the background must be complete: it uses the database.
            background.sync {}
            // A failed turn is taken back, so that the outcome of its commits is known.
            probe()
            let (isOpen, isSuperseded) = condition.withLock { ($0.isOpen, $0.superseded != nil) }
            if !isSuperseded, snapshots.withLock({ $0.isBehind }) { _ = try saveSnapshot(state, version: version) }
            // Without it, keys live longer.
            if !isSuperseded { _ = try? writeHistoryTime() }
            try database.writeWithoutTransaction { db in
                writer.finish()
                _ = try db.checkpoint(.truncate)
            }
            try database.close()
            if !isOpen { try fence.close() }
        } catch { throw JournalError("close", path, error) }
    }
}
