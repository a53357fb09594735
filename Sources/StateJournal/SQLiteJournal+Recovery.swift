internal import FoundationEssentials
internal import GRDB
internal import StateJSON
package import StateStore

extension SQLiteJournal {
    /// Where a journal has left a store.
    package struct Recovery: Sendable {
        /// The newest state, as JSON.
        package var state: [UInt8]
        package var version: Version
        /// The oldest version that can be followed from.
        package var oldest: Version
        package var keys: [KeyRecord]
        /// How many patches were applied to the snapshot.
        package var patchesCount: Int
        /// How many bytes they have.
        package var patchesBytes: Int
        /// Snapshots that were of no use, as sentences for the operator.
        package var warnings: [String]
    }

    /// Reads the newest state: the newest good snapshot and the patches after it.
    ///
    /// No reducer runs.
    ///
    /// The cost is that of one snapshot and of the commits since, whatever the length of the journal.
    ///
    /// - Throws: ``JournalError`` when no snapshot can be used or a commit is missing.
    package func recover(at time: Timestamp) throws -> Recovery {
        let recovery = try readRecovery(at: time)
        beginCounting(recovery)
        return recovery
    }

    private func readRecovery(at time: Timestamp) throws -> Recovery {
        try reading { db in
            var warnings: [String] = []
            let head = try JournalRows.headVersion(db)
            let (state, version, count, bytes) = try rows.state(db, upTo: head, warnings: &warnings)
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

    /// The state at a version as JSON, or nil when no snapshot so old is kept.
    package func state(at version: Version) throws -> [UInt8]? {
        try reading { db in
            let oldest = try Int64.fetchOne(db, sql: "SELECT min(version) FROM snapshots") ?? 0
            guard version >= Version(oldest) else { return nil }
            var warnings: [String] = []
            return try rows.state(db, upTo: version, warnings: &warnings).state.text
        }
    }

    /// The oldest version whose state can be looked at.
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
    /// Commits after a version, oldest first, at most `limit`, and without a gap: where one is missing, those before it.
    ///
    /// It ends after 16 megabytes, too. `last` is the last version that may be told: the journal has a turn's commits before anybody else does.
    package func commits(after version: Version, through last: Version, limit: Int) throws -> [Commit] {
        try reading { db in
            try rows.commits(db, after: version, through: last, limit: limit)
        }
    }

    /// The commits after a position that pass a filter, or nil where the next commit is not kept.
    ///
    /// It costs the commits that it looks at.
    package func page(_ query: ChangesQuery, latest: StateStore.Cursor) throws -> ChangesPage? {
        var paging = ChangesPaging(query, latest: latest)
        try reading { db in
            try rows.read(db, after: query.since, through: latest.version) { paging.take($0) }
        }
        // What was there a moment ago may have been dropped since, and a damaged journal may lack a commit.
        return paging.page.next > query.since ? paging.page : nil
    }

    /// The commit that made a version, if it is kept.
    package func commit(version: Version) throws -> Commit? {
        try reading { db in
            try Row.fetchOne(db, sql: "SELECT * FROM commits WHERE version = ?", arguments: [Int64(clamping: version)])
                .map { try rows.commit($0) }
        }
    }

    /// The newest commit with a client's own ID, if it is kept.
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
