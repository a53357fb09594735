internal import Dispatch
internal import FoundationEssentials
internal import GRDB
internal import Glibc
internal import StateJSON
package import StateStore
internal import Synchronization

/// The state with which a store begins, and what comes with it.
package struct JournalRecovery: Sendable {
    package var state: [UInt8]
    package var version: Version
    package let oldest: Version
    /// Oldest first.
    package var keys: [KeyRecord]
    /// The time from which the history goes on; nil for that of the wall clock.
    package let historyTime: Timestamp?
    package let patchesCount: Int
    package let warnings: [String]

    package init(
        state: [UInt8], version: Version, oldest: Version, keys: [KeyRecord], historyTime: Timestamp?,
        patchesCount: Int, warnings: [String]
    ) {
        (self.state, self.version, self.oldest, self.keys) = (state, version, oldest, keys)
        (self.historyTime, self.patchesCount, self.warnings) = (historyTime, patchesCount, warnings)
    }
}

extension SQLiteJournal {
    /// Opens the journal in a directory, or begins one there, and reads the newest state.
    ///
    /// - Parameters:
    ///   - acceptsLoss: whether the start goes on from the last good version under a new epoch where the whole journal has
    ///     damage; the damaged files stay.
    ///   - time: the current time, at which idempotency keys may have expired.
    /// - Throws: what ``init(directory:retention:extent:report:initial:)`` and ``recover(at:)`` throw.
    package static func open(
        directory: String, retention: JournalRetention = JournalRetention(), acceptsLoss: Bool = false,
        at time: Timestamp, report: @escaping @Sendable (JournalEvent) -> Void = { _ in },
        initial: () throws -> [UInt8]
    ) throws -> (journal: SQLiteJournal, recovery: JournalRecovery) {
        func open(_ extent: StartCheck.Extent?) throws -> (SQLiteJournal, JournalRecovery) {
            let journal = try SQLiteJournal(
                directory: directory, retention: retention, extent: extent, report: report, initial: initial)
            return (journal, try journal.recover(at: time))
        }
        guard acceptsLoss else { return try open(nil) }
        do {
            return try open(.whole)
        } catch let error as JournalError where error.kind == .damage {
            let place = DataDirectory(path: directory)
            do {
                let lock = try DirectoryLock(place)
                defer { lock.release() }
                report(
                    .lossAccepted(
                        try DamageRecovery.replace(place, lock, because: error.description, initial: initial)))
            }
            return try open(nil)
        }
    }

    /// No reducer runs: the cost is that of the newest usable snapshot and of the commits after it; a missing time of
    /// the history is `time`, but before the first key expires, because the clock may be ahead.
    package func recover(at time: Timestamp) throws -> JournalRecovery {
        try reading { db in
            var warnings: [String] = []
            let latest = try rows.latestVersion(db)
            let (state, count, patchBytes) = try rows.state(db, upTo: latest, warnings: &warnings)
            let all = try rows.keys(db)
            let written = try rows.historyTime(db)
            let historyTime =
                written ?? all.reduce(time) { min($0, Timestamp(milliseconds: $1.expiry.milliseconds &- 1)) }
            let recovery = JournalRecovery(
                state: state.bytes(), version: state.version, oldest: try rows.oldest(db),
                keys: all.filter { $0.expiry > historyTime }, historyTime: historyTime, patchesCount: count,
                warnings: warnings)
            let bytes = try rows.segmentsBytes(db, after: state.version - Version(count))
            withHistoryTime { $0 = NotedHistoryTime(latest: historyTime, written: written) }
            snapshots.withLock {
                $0.begin(
                    commits: count, patchBytes: patchBytes, bytes: bytes, snapshotBytes: recovery.state.count)
            }
            return recovery
        }
    }

    /// Nil when every snapshot is newer.
    package func state(at version: Version) throws -> SavedState? {
        try reading { db in
            guard version >= (try rows.oldestState(db)) else { return nil }
            var warnings: [String] = []
            return try rows.state(db, upTo: version, warnings: &warnings).state.saved
        }
    }

    package func oldestState() throws -> Version {
        try reading { try rows.oldestState($0) }
    }

    func reading<Value>(_ read: (Database) throws -> Value) throws -> Value {
        do {
            return try database.read(read)
        } catch {
            throw JournalError("read", path, error)
        }
    }

    /// About 16 megabytes at most, oldest first; the journal has the commits of a turn before the store publishes them,
    /// so `last` is the published version.
    package func commits(after version: Version, through last: Version, limit: Int) throws -> [Commit] {
        try reading { db in
            try rows.commits(db, after: version, through: last, limit: limit)
        }
    }

    /// Nil if the first commit is pruned; the page ends before a damaged commit, and O(n) commits are examined.
    package func page(_ query: ChangesQuery, latest: StateStore.Cursor) throws -> ChangesPage? {
        var paging = ChangesPaging(query, latest: latest)
        do {
            try reading { db in
                try rows.read(db, after: query.since, through: latest.version) { paging.take($0) }
            }
        } catch {
            // The page after this one begins at the damage and reports it.
            guard paging.page.next > query.since else { throw error }
        }
        // The journal may have pruned the first commit since the caller asked.
        return paging.page.next > query.since ? paging.page : nil
    }

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

    package func note(historyTime: Timestamp) {
        guard withHistoryTime({ $0.take(historyTime) }), failure == nil else { return }
        background.async { [self] in
            // A later note tries again; until then, an end of the process makes keys live longer.
            _ = try? writeHistoryTime()
        }
    }

    func writeHistoryTime() throws {
        guard let time = withHistoryTime({ $0.unwritten }) else { return }
        try writing { db in
            try JournalSchema.set(db, "history_time", SegmentRows.encoded(time.milliseconds, epoch))
        }
        withHistoryTime { $0.written = time }
    }
}

/// The file has it an hour late at most while the server is used, and exactly after a stop; a loss makes keys live
/// longer, never shorter.
struct NotedHistoryTime: Sendable {
    /// Nil before ``SQLiteJournal/recover(at:)``.
    var latest: Timestamp?
    var written: Timestamp?

    var unwritten: Timestamp? { latest == written ? nil : latest }

    /// Returns whether the file should have it.
    mutating func take(_ time: Timestamp) -> Bool {
        latest = time
        guard let written, time < written.advanced(by: .seconds(3600)) else { return true }
        return false
    }
}

extension SegmentRows {
    /// Nil where it is damaged: a wrong time could make a key expire early.
    func historyTime(_ db: Database) throws -> Timestamp? {
        let value: DatabaseValue? = try JournalSchema.value(db, "history_time")
        guard let data = value.flatMap(Data.fromDatabaseValue), data.count == 24 else { return nil }
        let milliseconds = Int64(bitPattern: data.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
        return Self.encoded(milliseconds, epoch) == data ? Timestamp(milliseconds: milliseconds) : nil
    }

    /// 8 bytes, most significant first, and the hash of them in this history.
    fileprivate static func encoded(_ milliseconds: Int64, _ epoch: Epoch) -> Data {
        withUnsafeBytes(of: milliseconds.bigEndian) { number in
            let hash = SegmentHash(
                after: SegmentHash(beginning: epoch, version: 0), first: 0, last: 0, body: number.bytes)
            return Data(number) + hash.data
        }
    }
}
