internal import FoundationEssentials
internal import GRDB
internal import StateJSON
internal import StateStore

/// The reading of a journal's tables, which the journal and a ``JournalReader`` share.
struct JournalRows: Sendable {
    /// The path of the file, for error descriptions.
    let path: String
    /// The epoch, from which the default ID of a commit is made.
    let epoch: Epoch

    /// Returns the epoch of the history.
    ///
    /// - Throws: ``JournalError`` for a format that this program does not know.
    static func epoch(_ db: Database, ofFormat format: Int) throws -> Epoch {
        guard format == JournalSchema.version else {
            throw JournalError(
                "the journal is of format \(format), this program knows up to \(JournalSchema.version): use a newer program"
            )
        }
        guard let text = try String.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'epoch'"),
            let epoch = Epoch(text)
        else { throw JournalError("the journal has no epoch: it is damaged") }
        return epoch
    }

    /// Returns the newest version.
    static func latestVersion(_ db: Database) throws -> Version {
        let commits = try Int64.fetchOne(db, sql: "SELECT max(version) FROM commits") ?? 0
        let snapshots = try Int64.fetchOne(db, sql: "SELECT max(version) FROM snapshots") ?? 0
        return Version(max(commits, snapshots))
    }

    /// Returns the state at a version: the newest usable snapshot up to that version, with the patches after it
    /// applied.
    ///
    /// - Parameter warnings: gets a sentence for each snapshot that is damaged.
    /// - Throws: ``JournalError`` when no snapshot is usable or a commit is missing.
    func state(
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

    /// Returns a snapshot, or nil where there is none or it is damaged.
    func snapshot(_ db: Database, _ version: Version) throws -> JSONValue? {
        let row: Row?
        do {
            row = try Row.fetchOne(
                db, sql: "SELECT hash, state FROM snapshots WHERE version = ?", arguments: [Int64(version)])
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
            // A damaged page of a snapshot does not make the commits unreadable.
            return nil
        }
        guard let row else { return nil }
        let state = [UInt8](row["state"] as Data)
        guard ContentHash(state).text == row["hash"] as String else { return nil }
        // The hash is right, so bytes that are no JSON were never a state; an older snapshot serves instead.
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
}

// MARK: - Commits

extension JournalRows {
    /// Returns the oldest version after which the journal has all commits.
    static func oldest(_ db: Database) throws -> Version {
        if let first = try Int64.fetchOne(db, sql: "SELECT min(version) FROM commits") { return Version(first - 1) }
        return Version(try Int64.fetchOne(db, sql: "SELECT max(version) FROM snapshots") ?? 0)
    }

    /// Returns the commits after a version, oldest first, up to the first that is missing; at most `limit` commits and
    /// about 16 megabytes.
    func commits(_ db: Database, after version: Version, through last: Version, limit: Int) throws -> [Commit] {
        var commits: [Commit] = []
        var bytes = 0
        try read(db, after: version, through: last) { commit in
            guard commits.count < limit, bytes < 16 << 20 else { return false }
            commits.append(commit)
            bytes += commit.action.count + commit.patch.count
            return true
        }
        return commits
    }

    /// Reads commits in order, up to the first that is missing or until `take` returns false.
    func read(
        _ db: Database, after version: Version, through last: Version, _ take: (Commit) -> Bool
    ) throws {
        let rows = try Row.fetchCursor(
            db, sql: "SELECT * FROM commits WHERE version > ? AND version <= ? ORDER BY version",
            arguments: [Int64(version), Int64(last)])
        var next = version + 1
        while let row = try rows.next() {
            let commit = try commit(row)
            guard commit.version == next, take(commit) else { return }
            next += 1
        }
    }

    /// Returns the client IDs of the commits after a version up to `last`, by version.
    func clientIDs(_ db: Database, after version: Version, through last: Version) throws -> [Version: [String]] {
        let rows = try Row.fetchCursor(
            db, sql: "SELECT version, id FROM ids WHERE version > ? AND version <= ? ORDER BY version, id",
            arguments: [Int64(version), Int64(last)])
        var ids: [Version: [String]] = [:]
        while let row = try rows.next() { ids[Version(row["version"] as Int64), default: []].append(row["id"]) }
        return ids
    }

    /// Decodes a row of `commits`, without the client IDs, which another table has.
    func commit(_ row: Row) throws -> Commit {
        let version = Version(row["version"] as Int64)
        var changedPointers: [JSONPointer] = []
        if case .array(let pointers) = try JSONValue(parsing: [UInt8](row["changedPointers"] as Data)) {
            for case .string(let text) in pointers {
                if let pointer = JSONPointer(text: text) { changedPointers.append(pointer) }
            }
        }
        return Commit(
            version: version, time: Timestamp(milliseconds: row["time"]),
            id: row["id"] as String? ?? Cursor(epoch, version).description, cause: row["cause"], root: row["root"],
            types: (row["types"] as String).split(separator: ",").map(String.init),
            action: [UInt8](row["action"] as Data), patch: [UInt8](row["patch"] as Data),
            changedPointers: changedPointers)
    }
}
