internal import FoundationEssentials
internal import GRDB
internal import StateJSON
package import StateStore

extension SQLiteJournal {
    /// What a journal has for a store that starts.
    package struct Recovery: Sendable {
        /// The newest state, as UTF-8 JSON.
        package var state: [UInt8]
        package var version: Version
        /// The oldest version after which the journal has all commits.
        package var oldest: Version
        package var keys: [KeyRecord]
        /// How many patches were applied to the snapshot.
        package var patchesCount: Int
        /// How many bytes those patches have.
        package var patchesBytes: Int
        /// A sentence for the operator for each snapshot that is damaged.
        package var warnings: [String]
    }

    /// Reads the newest state: the newest usable snapshot, with the patches after it applied.
    ///
    /// No reducer runs. The cost is that of one snapshot and of the commits after it, independent of the length of the
    /// journal.
    ///
    /// - Parameter time: the current time, at which idempotency keys may have expired.
    /// - Throws: ``JournalError`` when no snapshot is usable or a commit is missing.
    package func recover(at time: Timestamp) throws -> Recovery {
        let recovery = try readRecovery(at: time)
        beginCounting(recovery)
        return recovery
    }

    private func readRecovery(at time: Timestamp) throws -> Recovery {
        try reading { db in
            var warnings: [String] = []
            let latest = try JournalRows.latestVersion(db)
            let (state, version, count, bytes) = try rows.state(db, upTo: latest, warnings: &warnings)
            let keys = try Row.fetchAll(
                db, sql: "SELECT * FROM keys WHERE expiry > ?", arguments: [time.milliseconds]
            ).map { row in
                KeyRecord(
                    key: row["key"], fingerprint: row["fingerprint"], version: Version(row["version"] as Int64),
                    id: row["id"], isChange: row["changed"], expiry: Timestamp(milliseconds: row["expiry"]))
            }
            return Recovery(
                state: state.text, version: version, oldest: try JournalRows.oldest(db), keys: keys,
                patchesCount: count,
                patchesBytes: bytes, warnings: warnings)
        }
    }

    /// Returns the state at a version as UTF-8 JSON, or nil when every snapshot is newer.
    package func state(at version: Version) throws -> [UInt8]? {
        try reading { db in
            let oldest = try Int64.fetchOne(db, sql: "SELECT min(version) FROM snapshots") ?? 0
            guard version >= Version(oldest) else { return nil }
            var warnings: [String] = []
            return try rows.state(db, upTo: version, warnings: &warnings).state.text
        }
    }

    /// Returns the oldest version whose state the journal has.
    package func oldestState() throws -> Version {
        try reading { db in Version(try Int64.fetchOne(db, sql: "SELECT min(version) FROM snapshots") ?? 0) }
    }

    func reading<Value>(_ read: (Database) throws -> Value) throws -> Value {
        do {
            return try database.read(read)
        } catch let error as JournalError {
            throw error
        } catch {
            throw JournalError("read", path, error)
        }
    }
}

// MARK: - Commits

extension SQLiteJournal {
    /// Returns the commits after a version, oldest first, up to the first that is missing; at most `limit` commits and
    /// about 16 megabytes.
    ///
    /// - Parameter last: the published version: the journal has the commits of a turn before the store publishes them.
    package func commits(after version: Version, through last: Version, limit: Int) throws -> [Commit] {
        try reading { db in
            try rows.commits(db, after: version, through: last, limit: limit)
        }
    }

    /// Returns a page of the commits that pass a filter, or nil where the journal lacks the first commit.
    ///
    /// O(n) in the number of commits that it examines.
    package func page(_ query: ChangesQuery, latest: StateStore.Cursor) throws -> ChangesPage? {
        var paging = ChangesPaging(query, latest: latest)
        try reading { db in
            try rows.read(db, after: query.since, through: latest.version) { paging.take($0) }
        }
        // The journal may have pruned the first commit since the caller asked, and a damaged journal may lack it.
        return paging.page.next > query.since ? paging.page : nil
    }

    /// Returns the commit of a version, or nil when the journal lacks it.
    package func commit(version: Version) throws -> Commit? {
        try reading { db in
            try Row.fetchOne(db, sql: "SELECT * FROM commits WHERE version = ?", arguments: [Int64(clamping: version)])
                .map { try rows.commit($0) }
        }
    }

    /// Returns the newest commit with a client's ID, or nil when the journal lacks it.
    package func commit(id: String) throws -> Commit? {
        try reading { db in
            try Row.fetchOne(
                db,
                sql: "SELECT * FROM commits WHERE version = (SELECT max(version) FROM ids WHERE ids.id = ?)",
                arguments: [id]
            ).map { try rows.commit($0) }
        }
    }
}
