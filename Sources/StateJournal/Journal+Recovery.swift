internal import FoundationEssentials
internal import GRDB
internal import StateJSON
package import StateStore

extension Journal {
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
            let head = try Self.headVersion(db)
            let (state, version, count, bytes) = try self.state(db, upTo: head, warnings: &warnings)
            let keys = try Row.fetchAll(
                db, sql: "SELECT * FROM keys WHERE expiry > ?", arguments: [time.milliseconds]
            ).map { row in
                KeyRecord(
                    key: row["key"], fingerprint: row["fingerprint"], version: Version(row["version"] as Int64),
                    id: row["id"], isChange: row["changed"], expiry: Timestamp(milliseconds: row["expiry"]))
            }
            return Recovery(
                state: state.text, version: version, oldest: try Self.oldest(db), keys: keys, patchesCount: count,
                patchesBytes: bytes, warnings: warnings)
        }
    }

    /// The state at a version as JSON, or nil when no snapshot so old is kept.
    package func state(at version: Version) throws -> [UInt8]? {
        try reading { db in
            let oldest = try Int64.fetchOne(db, sql: "SELECT min(version) FROM snapshots") ?? 0
            guard version >= Version(oldest) else { return nil }
            var warnings: [String] = []
            return try self.state(db, upTo: version, warnings: &warnings).state.text
        }
    }

    /// The oldest version whose state can be looked at.
    package func oldestState() throws -> Version {
        try reading { db in Version(try Int64.fetchOne(db, sql: "SELECT min(version) FROM snapshots") ?? 0) }
    }

    private static func headVersion(_ db: Database) throws -> Version {
        let commits = try Int64.fetchOne(db, sql: "SELECT max(version) FROM commits") ?? 0
        let snapshots = try Int64.fetchOne(db, sql: "SELECT max(version) FROM snapshots") ?? 0
        return Version(max(commits, snapshots))
    }

    private func state(
        _ db: Database, upTo version: Version, warnings: inout [String]
    ) throws -> (state: JSONValue, version: Version, patchesCount: Int, patchesBytes: Int) {
        let candidates = try Int64.fetchAll(
            db, sql: "SELECT version FROM snapshots WHERE version <= ? ORDER BY version DESC",
            arguments: [Int64(version)])
        for candidate in candidates {
            guard let state = try snapshot(db, Version(candidate)) else {
                warnings.append("the snapshot of version \(candidate) is damaged; an older one is used")
                continue
            }
            do {
                return try apply(db, to: state, from: Version(candidate), upTo: version)
            } catch let error as PatchMismatch {
                warnings.append(
                    "the snapshot of version \(candidate) does not fit the commits after it: \(error.detail)")
            }
        }
        throw JournalError(
            "the journal \(path) has no snapshot that can be used for version \(version): restore it from a backup")
    }

    private func snapshot(_ db: Database, _ version: Version) throws -> JSONValue? {
        let row: Row?
        do {
            row = try Row.fetchOne(
                db, sql: "SELECT hash, state FROM snapshots WHERE version = ?", arguments: [Int64(version)])
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
            // A damaged page under a snapshot must not take the commits with it.
            return nil
        }
        guard let row else { return nil }
        let state = [UInt8](row["state"] as Data)
        guard ContentHash(state).text == row["hash"] as String else { return nil }
        // The hash is right: what cannot be parsed was never a state.
        return try? JSONValue(parsing: state, depthMax: 1000)
    }

    private func apply(
        _ db: Database, to state: JSONValue, from start: Version, upTo end: Version
    ) throws -> (JSONValue, Version, Int, Int) {
        var state = state
        var version = start
        let rows = try Row.fetchCursor(
            db, sql: "SELECT version, patch FROM commits WHERE version > ? AND version <= ? ORDER BY version",
            arguments: [Int64(start), Int64(end)])
        var count = 0
        var bytes = 0
        while let row = try rows.next() {
            guard Version(row["version"] as Int64) == version + 1 else { break }
            version += 1
            count += 1
            let patch = [UInt8](row["patch"] as Data)
            bytes += patch.count
            guard patch.count > 2 else { continue }
            try state.apply(patch: JSONValue(parsing: patch, depthMax: 1000))
        }
        guard version == end else {
            throw JournalError(
                "the journal \(path) lacks the commit of version \(version + 1): restore it from a backup")
        }
        return (state, version, count, bytes)
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

extension Journal {
    /// Commits after a version, oldest first, at most `limit`, and without a gap: where one is missing, those before it.
    ///
    /// It ends after 16 megabytes, too. `head` is the last version that may be told: the journal has a turn's commits before anybody else does.
    package func commits(after version: Version, through head: Version, limit: Int) throws -> [Commit] {
        try reading { db in
            var commits: [Commit] = []
            var bytes = 0
            let rows = try Row.fetchCursor(
                db, sql: "SELECT * FROM commits WHERE version > ? AND version <= ? ORDER BY version LIMIT ?",
                arguments: [Int64(version), Int64(head), limit])
            while bytes < 16 << 20, let row = try rows.next() {
                let commit = try self.commit(row)
                guard commit.version == version + 1 + Version(commits.count) else { break }
                commits.append(commit)
                bytes += commit.action.count + commit.patch.count
            }
            return commits
        }
    }

    /// The commit that made a version, if it is kept.
    package func commit(version: Version) throws -> Commit? {
        try reading { db in
            try Row.fetchOne(db, sql: "SELECT * FROM commits WHERE version = ?", arguments: [Int64(clamping: version)])
                .map(self.commit)
        }
    }

    /// The newest commit with a client's own ID, if it is kept.
    package func commit(id: String) throws -> Commit? {
        try reading { db in
            try Row.fetchOne(
                db,
                sql: "SELECT * FROM commits WHERE version = (SELECT max(version) FROM ids WHERE ids.id = ?)",
                arguments: [id]
            ).map(self.commit)
        }
    }

    private func commit(_ row: Row) throws -> Commit {
        let version = Version(row["version"] as Int64)
        var touched: [JSONPointer] = []
        if case .array(let pointers) = try JSONValue(parsing: [UInt8](row["touched"] as Data)) {
            for case .string(let text) in pointers {
                if let pointer = JSONPointer(text: text) { touched.append(pointer) }
            }
        }
        return Commit(
            version: version, time: Timestamp(milliseconds: row["time"]),
            id: row["id"] as String? ?? Cursor(epoch, version).description, cause: row["cause"], root: row["root"],
            types: (row["types"] as String).split(separator: ",").map(String.init),
            action: [UInt8](row["action"] as Data), patch: [UInt8](row["patch"] as Data), touched: touched)
    }
}
