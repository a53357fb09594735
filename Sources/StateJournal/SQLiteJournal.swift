internal import Dispatch
internal import FoundationEssentials
internal import GRDB
internal import StateJSON
package import StateStore
internal import Synchronization

/// A journal in an SQLite file: commits, snapshots and idempotency keys.
///
/// A commit that ``append(_:after:)`` has taken survives the end of the process and of the machine: each call is one
/// transaction in WAL mode with `synchronous=FULL`. Any thread may call any method; writers take turns.
package final class SQLiteJournal: Journal {
    /// How much of the history the journal keeps.
    package struct Retention: Sendable {
        /// How many of the newest commits are kept, besides those after the oldest snapshot.
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
    let rows: JournalRows
    let database: DatabasePool
    private let lock: DirectoryLock
    private let retention: Retention
    private let report: @Sendable (JournalEvent) -> Void
    private let snapshots = DispatchQueue(label: "storekeeper.snapshots", qos: .utility)
    private let condition = Mutex(Condition())

    private struct Condition {
        /// Why the last attempt to record failed, or nil when it did not.
        var failure: String?
        /// Commits of failed turns that may still be on the disk: after a failed sync that is unknown.
        var remains: [Commit] = []
        /// Commits and bytes of patches since the newest snapshot.
        var commitsSince = 0
        var bytesSince = 0
        var snapshotBytes = 0
        var isSaving = false
    }

    /// Opens the journal in a directory, or begins one there.
    ///
    /// - Parameters:
    ///   - report: takes the failures of calls that do not throw, and of work in the background, on any thread.
    ///   - initial: returns the first state of a new history as UTF-8 JSON.
    /// - Throws: ``JournalError`` when another process has locked the directory, or the journal is damaged or of a
    ///   newer
    ///   format.
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
            epoch = try Self.prepare(database, initial: initial)
            rows = JournalRows(path: path, epoch: epoch)
        } catch let error as JournalError {
            throw error
        } catch {
            throw JournalError("open", path, error)
        }
    }

    static func path(in directory: String) -> String { directory + "/journal.sqlite" }

    private static func prepare(_ database: DatabasePool, initial: () throws -> [UInt8]) throws -> Epoch {
        try database.write { db in
            switch try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0 {
            case 0:
                let epoch = Epoch.random()
                try begin(db, epoch, version: 0, state: initial())
                return epoch
            case let format: return try JournalRows.epoch(db, ofFormat: format)
            }
        }
    }

    /// Begins a history in an empty file.
    static func begin(_ db: Database, _ epoch: Epoch, version: Version, state: [UInt8]) throws {
        try JournalSchema.create(db)
        try db.execute(sql: "INSERT INTO meta VALUES ('epoch', ?)", arguments: [epoch.text])
        try insertSnapshot(db, version: version, state: state)
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

    package func offer(_ snapshot: any AnySnapshot, saved: @escaping @Sendable (Version) -> Void) {
        guard claimSnapshot() else { return }
        snapshots.async { [self] in
            do {
                saved(try saveSnapshot(snapshot.whole(), version: snapshot.cursor.version))
            } catch {
                report(.snapshotNotSaved(reason: "\(error)"))
            }
        }
    }

    package func close(_ snapshot: any AnySnapshot) throws {
        try close(snapshot.whole(), version: snapshot.cursor.version)
    }

    /// How many commits of failed turns may still be on the disk.
    var remainsCount: Int { condition.withLock { $0.remains.count } }

    /// Records all of the commits or none, and returns when they are on the disk.
    ///
    /// - Throws: ``JournalError``; whether the commits are on the disk is then unknown until the next call deletes
    ///   them.
    package func record(_ commits: [Commit]) throws {
        guard !commits.isEmpty else { return }
        var remains = condition.withLock { $0.remains }
        do {
            try database.writeWithoutTransaction { db in
                try db.inTransaction(.immediate) {
                    // A commit without rows was never written, so that only commits with deleted rows stay in the list.
                    remains = try remains.filter { try Self.takeBack($0, db) }
                    remains += commits
                    for commit in commits { try Self.insert(commit, db) }
                    return .commit
                }
            }
        } catch {
            let failure = JournalError("write to", path, error)
            condition.withLock { condition in
                condition.failure = failure.description
                condition.remains = remains
            }
            throw failure
        }
        condition.withLock { condition in
            condition.failure = nil
            condition.remains = []
            condition.commitsSince += commits.count
            condition.bytesSince += commits.reduce(0) { $0 + $1.patch.count }
        }
    }

    /// Deletes the rows that a commit of a failed turn has left; no client has received an answer for them.
    ///
    /// A row with the same version and any other content was written by another process and stays: the insertion of the
    /// new commit then fails, and the store refuses the turn.
    ///
    /// - Returns: whether the commit had rows.
    private static func takeBack(_ commit: Commit, _ db: Database) throws -> Bool {
        try db.cachedStatement(
            sql: """
                DELETE FROM commits WHERE version = ? AND time = ? AND id IS ? AND cause IS ? AND root IS ?
                    AND types = ? AND action = ? AND patch = ? AND changedPointers = ?
                """
        ).execute(arguments: columns(of: commit))
        guard db.changesCount > 0 else { return false }
        let version = Int64(commit.version)
        for id in commit.clientIDs {
            try db.cachedStatement(sql: "DELETE FROM ids WHERE id = ? AND version = ?").execute(
                arguments: [id, version])
        }
        if let record = commit.idempotency {
            try db.cachedStatement(sql: "DELETE FROM keys WHERE key = ? AND fingerprint = ? AND version = ?").execute(
                arguments: [record.key, record.fingerprint, Int64(record.version)])
        }
        return true
    }

    static func insert(_ commit: Commit, _ db: Database) throws {
        let version = Int64(commit.version)
        try db.cachedStatement(
            sql: """
                INSERT INTO commits (version, time, id, cause, root, types, action, patch, changedPointers)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(arguments: columns(of: commit))
        for id in commit.clientIDs {
            try db.cachedStatement(sql: "INSERT OR REPLACE INTO ids VALUES (?, ?)").execute(arguments: [id, version])
        }
        if let record = commit.idempotency {
            try db.cachedStatement(sql: "INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?, ?)").execute(
                arguments: [
                    record.key, record.fingerprint, Int64(record.version), record.id, record.isChange,
                    record.expiry.milliseconds,
                ])
        }
    }

    /// A commit as the columns of its row: version, time, id, cause, root, types, action, patch, changedPointers.
    private static func columns(of commit: Commit) -> StatementArguments {
        [
            Int64(commit.version), commit.time.milliseconds,
            commit.clientIDs.contains(commit.id) ? commit.id : nil, commit.cause, commit.root,
            commit.types.count == 1 ? commit.types[0] : commit.types.joined(separator: ","), Data(commit.action),
            Data(commit.patch), Data(encoded(commit.changedPointers)),
        ]
    }

    private static func encoded(_ pointers: [JSONPointer]) -> [UInt8] {
        var writer = JSONWriter()
        writer.array(pointers) { $1.string($0.description) }
        return writer.bytes
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

    /// Saves a last snapshot if there are commits after the newest one, checkpoints the WAL, and releases the
    /// directory.
    ///
    /// - Throws: ``JournalError``. No recorded commit is lost; the next start takes longer.
    package func close(_ state: [UInt8], version: Version) throws {
        defer { lock.release() }
        do {
            if condition.withLock({ $0.commitsSince > 0 }) { _ = try saveSnapshot(state, version: version) }
            try database.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) }
            try database.close()
        } catch { throw JournalError("close", path, error) }
    }
}

// MARK: - Snapshots

extension SQLiteJournal {
    /// Sets the counters since the newest snapshot to what a recovery has found.
    func beginCounting(_ recovery: Recovery) {
        condition.withLock { condition in
            condition.commitsSince = recovery.patchesCount
            condition.bytesSince = recovery.patchesBytes
            condition.snapshotBytes = recovery.state.count
        }
    }

    /// Returns whether a snapshot is due, and if so claims the right to save it.
    ///
    /// A snapshot is due after 10,000 commits whose patches have as many bytes as the last snapshot: that bounds the time
    /// of a start, and the bytes of snapshots stay below those of the commits.
    package func claimSnapshot() -> Bool {
        condition.withLock { condition in
            guard !condition.isSaving, condition.commitsSince >= 10_000, condition.bytesSince >= condition.snapshotBytes
            else { return false }
            condition.isSaving = true
            condition.commitsSince = 0
            condition.bytesSince = 0
            return true
        }
    }

    /// Saves a snapshot after ``claimSnapshot()``, and prunes what exceeds the retention.
    ///
    /// - Returns: the oldest version after which the journal has all commits.
    /// - Throws: ``JournalError``. No commit is lost; the next start takes longer.
    package func saveSnapshot(_ state: [UInt8], version: Version) throws -> Version {
        defer {
            condition.withLock { condition in
                condition.isSaving = false
                condition.snapshotBytes = state.count
            }
        }
        do {
            return try database.write { db in
                try Self.insertSnapshot(db, version: version, state: state)
                return try self.prune(db, latest: version)
            }
        } catch { throw JournalError("write a snapshot to", path, error) }
    }

    static func insertSnapshot(_ db: Database, version: Version, state: [UInt8]) throws {
        try db.execute(
            sql: "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)",
            arguments: [Int64(version), ContentHash(state).text, Data(state)])
    }

    private func prune(_ db: Database, latest: Version) throws -> Version {
        try db.execute(
            sql: """
                DELETE FROM snapshots WHERE version NOT IN
                    (SELECT version FROM snapshots ORDER BY version DESC LIMIT ?)
                """, arguments: [max(retention.snapshotsMax, 2)])
        try db.execute(
            sql: "DELETE FROM keys WHERE expiry < ?", arguments: [Int64(Date().timeIntervalSince1970 * 1000)])
        // The commits after the oldest snapshot stay, so that a start can use it when the newer ones are damaged.
        let kept = try Int64.fetchOne(db, sql: "SELECT min(version) FROM snapshots") ?? 0
        let last = min(kept, Int64(latest) - Int64(retention.commitsMax))
        if last > 0 {
            try db.execute(sql: "DELETE FROM ids WHERE version <= ?", arguments: [last])
            try db.execute(sql: "DELETE FROM commits WHERE version <= ?", arguments: [last])
        }
        return try JournalRows.oldest(db)
    }
}
