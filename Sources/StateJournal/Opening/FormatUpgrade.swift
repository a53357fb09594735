internal import FoundationEssentials
internal import GRDB
internal import Segments
internal import StateJSON
internal import StateStore

/// Rewrites a journal of format 1, which has a row for each commit, as segments.
///
/// It runs within a transaction of the caller's: an upgrade that is interrupted leaves format 1. It holds the commits of one
/// segment in memory, the IDs of 65,536 commits and one snapshot. The pages of the old tables stay in the file, and what is
/// written later takes them.
struct FormatUpgrade {
    private let db: Database
    private let path: String
    private let epoch: Epoch
    private let writer: SegmentWriter
    private let rows: SegmentRows
    private var tip: ChainLink
    private var segment: [Commit] = []
    private var entries: [RecentIDs.Entry] = []

    /// Rewrites everything.
    ///
    /// - Parameter progress: is called after each segment with the number of commits that are rewritten, and of all.
    /// - Throws: ``JournalError`` where a commit is missing; the caller then rolls back.
    static func run(_ db: Database, _ path: String, _ progress: (Int, Int) -> Void) throws {
        guard let text = try String.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'epoch'"),
            let epoch = Epoch(text)
        else { throw JournalError(damaged: path, "it has no epoch") }
        try db.execute(
            sql: """
                DROP INDEX keys_by_expiry;
                ALTER TABLE meta RENAME TO old_meta;
                ALTER TABLE ids RENAME TO old_ids;
                ALTER TABLE keys RENAME TO old_keys;
                ALTER TABLE snapshots RENAME TO old_snapshots;
                """)
        try JournalSchema.create(db)
        var upgrade = try FormatUpgrade(db, path, epoch)
        try JournalSchema.begin(db, epoch, version: upgrade.tip.version)
        try upgrade.rewriteCommits(progress)
        try upgrade.rewriteSnapshots()
        try db.execute(
            sql: """
                DROP TABLE commits; DROP TABLE old_meta; DROP TABLE old_ids; DROP TABLE old_keys;
                DROP TABLE old_snapshots;
                """)
    }

    private init(_ db: Database, _ path: String, _ epoch: Epoch) throws {
        self.db = db
        self.path = path
        self.epoch = epoch
        writer = SegmentWriter(epoch: epoch, path: path)
        rows = SegmentRows(path: path, epoch: epoch)
        let base = try Int64.fetchOne(
            db,
            sql: """
                SELECT coalesce((SELECT min(version) - 1 FROM commits), (SELECT max(version) FROM old_snapshots), 0)
                """)
        guard let base = base.flatMap({ Version(exactly: $0) }) else {
            throw JournalError(damaged: path, "it has a negative version")
        }
        tip = ChainLink(beginning: epoch, version: base)
    }

    private mutating func rewriteCommits(_ progress: (Int, Int) -> Void) throws {
        let total = try Int.fetchOne(db, sql: "SELECT count(*) FROM commits") ?? 0
        var ids = try OldRows(
            Row.fetchCursor(db, sql: "SELECT version, id FROM old_ids ORDER BY version, id"))
        var keys = try OldRows(Row.fetchCursor(db, sql: "SELECT * FROM old_keys WHERE version >= 0 ORDER BY version"))
        try writer.insert(keys.take(through: tip.version).map(Self.key), db)
        let commits = try Row.fetchCursor(db, sql: "SELECT * FROM commits ORDER BY version")
        var done = 0
        var next = tip.version + 1
        while let row = try commits.next() {
            let version = Version(row["version"] as Int64)
            guard version == next else {
                throw JournalError(
                    "cannot upgrade the journal \(path): it lacks the commit of version \(next); restore it from a backup, or export what follows with the program that wrote it"
                )
            }
            next += 1
            let clientIDs = try ids.take(through: version).map { $0["id"] as String }
            entries += clientIDs.map { RecentIDs.Entry(hash: RecentIDs.hash(of: $0), version: version) }
            let key = try keys.take(through: version).last.map(Self.key)
            segment.append(try commit(row, clientIDs, key))
            done += 1
            guard SegmentBody.end(of: segment, from: 0) < segment.count || segment.count == SegmentBody.commitsMax
            else { continue }
            try flush(all: false)
            progress(done, total)
        }
        try flush(all: true)
    }

    /// Writes the waiting commits, of which the last may belong to the next segment.
    private mutating func flush(all isLast: Bool) throws {
        let end = isLast ? segment.count : SegmentBody.end(of: segment, from: 0)
        tip = try writer.insert(Array(segment[..<end]), after: tip, db)
        segment.removeFirst(end)
        guard entries.count >= RecentIDs.waitingMax || isLast else { return }
        try IDTable.insert(entries.sorted(), db)
        entries.removeAll(keepingCapacity: true)
        if isLast { try IDTable.setIndexed(db, through: tip.version) }
    }

    private func rewriteSnapshots() throws {
        let versions = try Int64.fetchAll(
            db, sql: "SELECT version FROM old_snapshots WHERE version >= ? ORDER BY version",
            arguments: [Int64(rows.oldest(db))])
        for version in versions {
            guard
                let row = try Row.fetchOne(
                    db, sql: "SELECT hash, state FROM old_snapshots WHERE version = ?", arguments: [version])
            else { continue }
            let state = [UInt8](row["state"] as Data)
            try rows.insertSnapshot(db, version: Version(version), state: state)
            guard ContentHash(state).text != row["hash"] as String else { continue }
            // A damaged snapshot stays one.
            try db.execute(sql: "UPDATE snapshots SET hash = x'' WHERE version = ?", arguments: [version])
        }
    }

    private func commit(_ row: Row, _ clientIDs: [String], _ key: KeyRecord?) throws -> Commit {
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
            changedPointers: changedPointers, clientIDs: clientIDs, idempotency: key)
    }

    private static func key(_ row: Row) -> KeyRecord {
        KeyRecord(
            key: IdempotencyKey(recorded: row["key"]), fingerprint: row["fingerprint"],
            version: Version(row["version"] as Int64),
            id: row["id"], isChange: row["changed"], expiry: Timestamp(milliseconds: row["expiry"]))
    }
}

/// Rows that are ordered by their version, read beside other rows.
private struct OldRows {
    private let rows: RowCursor
    private var next: Row?

    init(_ rows: RowCursor) throws {
        self.rows = rows
        next = try rows.next()?.copy()
    }

    /// Returns the next rows whose version is at most `version`.
    mutating func take(through version: Version) throws -> [Row] {
        var taken: [Row] = []
        while let row = next, (row["version"] as Int64) <= Int64(version) {
            taken.append(row)
            next = try rows.next()?.copy()
        }
        return taken
    }
}
