internal import GRDB
internal import StateStore

/// Has a hash for each ID, so the reader of a row verifies the commit's; rows of pruned commits stay until the next
/// write.
enum IDTable {
    /// Bounds how long appends wait.
    private static let partsCount = 64

    /// In the order of the hashes, in several transactions; the table has all IDs up to `through` afterwards, and no
    /// rows up to `pruned`.
    static func write(
        _ entries: [IDVersions.Entry], through version: Version, pruned: Version, to database: some DatabaseWriter
    ) throws {
        var rest = entries.sorted()[...]
        for part in 1...partsCount {
            let end = part == partsCount ? Int64.max : Int64.min &+ Int64(part) << 58
            let entries = rest.prefix { $0.hash < end || part == partsCount }
            rest = rest.dropFirst(entries.count)
            let start = part == 1 ? Int64.min : Int64.min &+ Int64(part - 1) << 58
            try database.write { db in
                try insert(entries, db)
                if pruned > 0 {
                    try db.execute(
                        sql: "DELETE FROM ids WHERE hash BETWEEN ? AND ? AND version <= ?",
                        arguments: [start, end, Int64(pruned)])
                }
                if part == partsCount { try setIndexed(db, through: version) }
            }
        }
    }

    static func insert(_ entries: some Swift.Collection<IDVersions.Entry>, _ db: Database) throws {
        guard !entries.isEmpty else { return }
        let insert = try PreparedStatement(db, "INSERT OR IGNORE INTO ids VALUES (?, ?)")
        for entry in entries {
            insert.bind(1, entry.hash)
            insert.bind(2, Int64(entry.version))
            try insert.run()
        }
    }

    static func setIndexed(_ db: Database, through version: Version) throws {
        try JournalSchema.set(db, "ids_through", Int64(version))
    }

    /// Nil before anything was written.
    static func indexed(_ db: Database) throws -> Version? {
        try JournalSchema.version(db, "ids_through")
    }

    static func versions(_ db: Database, _ hash: Int64) throws -> [Version] {
        let statement = try db.cachedStatement(
            sql: "SELECT version FROM ids WHERE hash = ? ORDER BY version DESC")
        return try Int64.fetchAll(statement, arguments: [hash]).compactMap { Version(exactly: $0) }
    }
}
