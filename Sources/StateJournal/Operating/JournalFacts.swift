internal import GRDB
package import StateStore

/// What an operator asks about a journal first.
package struct JournalFacts: Sendable {
    /// What the fence says.
    package enum FenceFacts: Sendable {
        case missing
        /// Neither of its two records is whole.
        case damaged
        /// The newest acknowledged version, the number of the writer, and whether that writer has closed the journal.
        case whole(version: Version, term: UInt64, isClosed: Bool, isPartial: Bool)
    }

    /// What only a journal of the present format says.
    package struct History: Sendable {
        package var epoch: Epoch
        /// The oldest version after which every commit is there.
        package var oldest: Version
        package var latest: Version
        /// The versions of the snapshots, oldest first, with their bytes.
        package var snapshots: [(version: Version, bytes: Int)]
        /// How many idempotency keys have not expired.
        package var keysCount: Int
    }

    /// The number of the file's format.
    package var format: Int
    /// Nil for a format that only a start of the server reads.
    package var history: History?
    /// The bytes of the files.
    package var files: [(name: String, bytes: Int)]
    package var fence: FenceFacts
    /// Whether another process has the journal open for writing.
    package var isInUse: Bool

    /// Reads the journal in a directory, also while a server writes to it; O(n) in the number of keys.
    ///
    /// It verifies nothing, and changes nothing.
    ///
    /// - Parameter time: the current time, at which keys may have expired.
    /// - Throws: ``JournalError`` where there is no journal, or it cannot be read.
    package init(directory path: String, at time: Timestamp) throws {
        try JournalReader.check(path)
        let directory = DataDirectory(path: path)
        isInUse = DirectoryLock.isTaken(directory)
        switch try Fence.read(directory) {
        case .missing: fence = .missing
        case .damaged: fence = .damaged
        case .record(let record, let isPartial):
            fence = .whole(
                version: record.link.version, term: record.term, isClosed: record.stage == .closed,
                isPartial: isPartial)
        }
        do {
            (format, history) = try Inspection.open(directory.journal).read { db in
                let format = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
                guard format == JournalSchema.version else { return (format, nil) }
                return (format, try History(db, directory.journal, at: time))
            }
        } catch {
            throw JournalError("read", directory.journal, error)
        }
        let names = ["journal.sqlite"] + DataDirectory.companions.map { "journal.sqlite" + $0 } + ["fence"]
        files = names.compactMap { name in directory.size(path + "/" + name).map { (name, $0) } }
    }
}

extension JournalFacts.History {
    fileprivate init(_ db: Database, _ path: String, at time: Timestamp) throws {
        let rows = SegmentRows(path: path, epoch: try SegmentRows.epoch(db, path))
        epoch = rows.epoch
        oldest = try rows.oldest(db)
        latest = try rows.latestVersion(db)
        snapshots = try Row.fetchAll(
            db, sql: "SELECT version, length(state) AS bytes FROM snapshots ORDER BY version"
        ).compactMap { row in
            guard let version = Version(row, "version") else { return nil }
            return (version, Int.fromDatabaseValue(row["bytes"]) ?? 0)
        }
        var count = 0
        try rows.readKeys(db) { _, keys in count += (keys ?? []).count { $0.expiry > time } }
        keysCount = count
    }
}
