internal import Dispatch
internal import FoundationEssentials
internal import GRDB
package import StateStore
internal import Synchronization

/// A journal in an SQLite file: segments of commits, snapshots and idempotency keys.
///
/// A commit that ``append(_:after:)`` has taken survives the end of the process and of the machine: each call is one
/// transaction in WAL mode with `synchronous=FULL`. Any thread may call any method; writers take turns.
package final class SQLiteJournal: Journal {
    /// How much of the history the journal keeps.
    package struct Retention: Sendable {
        /// How many of the newest commits are kept, besides those after the oldest snapshot and those that share a
        /// segment with a kept one.
        package var commitsMax: Int
        /// How many snapshots are kept, at least 2; no state before the oldest can be read.
        package var snapshotsMax: Int

        /// Makes a retention; the defaults suit a server.
        package init(commitsMax: Int = 1_000_000, snapshotsMax: Int = 8) {
            self.commitsMax = commitsMax
            self.snapshotsMax = snapshotsMax
        }
    }

    /// The epoch of the history.
    package let epoch: Epoch
    let path: String
    let rows: SegmentRows
    let database: DatabasePool
    let retention: Retention
    let report: @Sendable (JournalEvent) -> Void
    /// The queue of snapshots and of the index of IDs.
    let background = DispatchQueue(label: "storekeeper.snapshots", qos: .utility)
    let ids: Mutex<RecentIDs>
    private let lock: DirectoryLock
    private let writer: SegmentWriter
    private let condition: Mutex<Condition>

    private struct Condition {
        /// The end of the newest segment, behind which the next append builds.
        var tip: ChainLink
        /// Why the last attempt to record failed, or nil when it did not.
        var failure: String?
        /// Segments of failed appends that may still be on the disk: after a failed sync that is unknown.
        var remains: [SegmentWriter.Remains] = []
        var snapshots = SnapshotSchedule()
    }

    /// Opens the journal in a directory, or begins one there.
    ///
    /// A journal of format 1 is upgraded, at about 200,000 commits a second.
    ///
    /// - Parameters:
    ///   - report: takes the failures of calls that do not throw, and of work in the background, on any thread.
    ///   - initial: returns the first state of a new history as UTF-8 JSON.
    /// - Throws: ``JournalError`` when another process has locked the directory, or the journal is damaged or of a
    ///   newer format.
    package init(
        directory: String, retention: Retention = Retention(),
        report: @escaping @Sendable (JournalEvent) -> Void = { _ in }, initial: () throws -> [UInt8]
    ) throws {
        path = Self.path(in: directory)
        lock = try DirectoryLock(directory: directory)
        self.retention = retention
        self.report = report
        do {
            var configuration = Configuration()
            configuration.busyMode = .timeout(5)
            configuration.maximumReaderCount = 4
            configuration.label = "storekeeper.journal"
            database = try DatabasePool(path: path, configuration: configuration)
            // GRDB sets NORMAL when it switches to WAL, with which a power failure can lose acknowledged commits.
            let synchronous = try database.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA synchronous = FULL")
                return try Int.fetchOne(db, sql: "PRAGMA synchronous")
            }
            guard synchronous == 2 else { throw JournalError("SQLite does not take synchronous=FULL") }
            epoch = try Self.prepare(database, path, report, initial: initial)
            let rows = SegmentRows(path: path, epoch: epoch)
            let (tip, ids) = try database.read { db in (try rows.tip(db), try rows.recentIDs(db)) }
            self.rows = rows
            self.ids = Mutex(ids)
            condition = Mutex(Condition(tip: tip))
            writer = SegmentWriter(epoch: epoch, path: path)
        } catch {
            throw JournalError("open", path, error)
        }
    }

    static func path(in directory: String) -> String { directory + "/journal.sqlite" }

    private static func prepare(
        _ database: DatabasePool, _ path: String, _ report: (JournalEvent) -> Void, initial: () throws -> [UInt8]
    ) throws -> Epoch {
        let (epoch, isUpgraded) = try database.write { db in
            let format = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
            if format == 0 {
                let epoch = Epoch.random()
                try begin(db, path, epoch, version: 0, state: initial())
                return (epoch, false)
            }
            if format == 1 { try upgrade(db, path, report) }
            return (try SegmentRows.epoch(db, path), format == 1)
        }
        // The transaction has made the WAL as large as the history.
        if isUpgraded { try database.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) } }
        return epoch
    }

    /// Upgrades the file, and reports the progress each second.
    private static func upgrade(_ db: Database, _ path: String, _ report: (JournalEvent) -> Void) throws {
        var reported = ContinuousClock.now
        try FormatUpgrade.run(db, path) { done, total in
            guard reported.duration(to: .now) >= .seconds(1) else { return }
            reported = .now
            report(.upgrading(commits: done, of: total))
        }
    }

    /// Begins a history in an empty file.
    static func begin(_ db: Database, _ path: String, _ epoch: Epoch, version: Version, state: [UInt8]) throws {
        try JournalSchema.create(db)
        try JournalSchema.begin(db, epoch, version: version)
        try SegmentRows(path: path, epoch: epoch).insertSnapshot(db, version: version, state: state)
    }

    /// Why the last attempt to record failed; nil when it succeeded.
    package var failure: String? { condition.withLock { $0.failure } }

    package func append(_ commits: [Commit], after version: Version) -> AppendResult {
        do {
            try record(commits)
            return .landed
        } catch {
            report(.appendFailed(reason: "\(error)"))
            return .unknown
        }
    }

    /// Does nothing: the directory lock excludes other writers, so no other process appends.
    package func follow(_ appended: @escaping @Sendable () -> Void) {}

    /// How many segments of failed appends may still be on the disk.
    var remainsCount: Int { condition.withLock { $0.remains.count } }

    /// Records all of the commits or none, and returns when they are on the disk.
    ///
    /// - Throws: ``JournalError``; whether the commits are on the disk is then unknown until the next call deletes
    ///   them.
    package func record(_ commits: [Commit]) throws {
        guard !commits.isEmpty else { return }
        do {
            try database.writeWithoutTransaction { db in
                var (tip, remains) = condition.withLock { ($0.tip, $0.remains) }
                // A segment that was not found was never written, so that only segments that were found stay in the list.
                defer { condition.withLock { ($0.tip, $0.remains) = (tip, remains) } }
                tip = try writer.append(commits, after: tip, takingBack: &remains, db)
                // Here, because the index takes the commits in order.
                indexIDs(of: commits)
            }
        } catch {
            let failure = JournalError("write to", path, error)
            condition.withLock { $0.failure = failure.description }
            throw failure
        }
        condition.withLock { condition in
            condition.failure = nil
            condition.snapshots.count(commits)
        }
    }

    /// Tries a write if the last one failed, so that ``failure`` is reset once the disk works again, without an action.
    package func probe() {
        guard failure != nil else { return }
        do {
            try database.write { db in
                try db.execute(sql: "INSERT OR REPLACE INTO meta VALUES ('probe', datetime('now'))")
            }
            condition.withLock { $0.failure = nil }
        } catch {
            condition.withLock { $0.failure = JournalError("write to", path, error).description }
        }
    }

    /// Changes what decides when a snapshot is due.
    func scheduleSnapshots<Value: Sendable>(_ change: (inout SnapshotSchedule) -> Value) -> Value {
        condition.withLock { change(&$0.snapshots) }
    }

    package func close(_ snapshot: any AnySnapshot) throws {
        try close(snapshot.whole(), version: snapshot.cursor.version)
    }

    /// Saves a last snapshot if there are commits after the newest one, checkpoints the WAL, and releases the
    /// directory.
    ///
    /// - Throws: ``JournalError``. No recorded commit is lost; the next start takes longer.
    package func close(_ state: [UInt8], version: Version) throws {
        defer { lock.release() }
        do {
            // What the background does must be complete: it uses the database.
            background.sync {}
            if scheduleSnapshots({ $0.isBehind }) { _ = try saveSnapshot(state, version: version) }
            try database.writeWithoutTransaction { db in
                writer.finish()
                _ = try db.checkpoint(.truncate)
            }
            try database.close()
        } catch { throw JournalError("close", path, error) }
    }
}
