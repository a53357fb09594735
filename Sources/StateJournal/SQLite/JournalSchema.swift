internal import GRDB
internal import StateStore

enum JournalSchema {
    /// A program refuses a newer one.
    static let version = 2

    static func begin(_ db: Database, _ epoch: Epoch, version: Version) throws {
        try db.execute(
            sql: """
                CREATE TABLE meta (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
                -- Runs of commits without a gap; each hash covers the versions, the body and the hash before it.
                CREATE TABLE segments (
                    first INTEGER PRIMARY KEY, last INTEGER NOT NULL, hash BLOB NOT NULL, body BLOB NOT NULL
                );
                -- A cache of the clients' IDs in the segments up to the version ids_through; hashes, because they are short.
                CREATE TABLE ids (hash INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (hash, version))
                    WITHOUT ROWID;
                -- The idempotency keys of a segment, which outlive it; expiry is that of the last of them to expire.
                CREATE TABLE keys (
                    first INTEGER PRIMARY KEY, expiry INTEGER NOT NULL, hash BLOB NOT NULL, body BLOB NOT NULL
                );
                CREATE INDEX keys_by_expiry ON keys (expiry);
                -- A cache: any of them can be made again from an older one and the commits after it. chain is the hash of
                -- the segment that has the version; hash covers state, version and chain.
                CREATE TABLE snapshots (
                    version INTEGER PRIMARY KEY, hash BLOB NOT NULL, chain BLOB NOT NULL, state BLOB NOT NULL
                );
                PRAGMA user_version = \(Self.version);
                """)
        try set(db, "epoch", epoch.text)
        try setBase(db, ChainLink(beginning: epoch, version: version))
        try set(db, "term", Int64(0))
    }

    /// Nil also for a value of another type.
    static func value<Value: DatabaseValueConvertible>(_ db: Database, _ name: String) throws -> Value? {
        let sql = "SELECT value FROM meta WHERE name = ?"
        return try DatabaseValue.fetchOne(db, sql: sql, arguments: [name]).flatMap(Value.fromDatabaseValue)
    }

    static func version(_ db: Database, _ name: String) throws -> Version? {
        try value(db, name).flatMap(Version.init(value:))
    }

    static func set(_ db: Database, _ name: String, _ value: some DatabaseValueConvertible) throws {
        try db.execute(sql: "INSERT OR REPLACE INTO meta VALUES (?, ?)", arguments: [name, value])
    }

    /// Nil if no server has named it.
    static func domain(_ db: Database) throws -> HistoryDomain? {
        guard let name: String = try value(db, "domain") else { return nil }
        return HistoryDomain(
            name: name, since: try version(db, "domain_since") ?? 0, isHeldToSchema: try value(db, "domain_schema"))
    }

    static func setDomain(_ db: Database, _ domain: HistoryDomain) throws {
        try set(db, "domain", domain.name)
        try set(db, "domain_since", Int64(clamping: domain.since))
        try db.execute(sql: "DELETE FROM meta WHERE name = 'domain_schema'")
        if domain.isHeldToSchema == true { try set(db, "domain_schema", 1) }
    }

    /// Counts the bytes of segments from one snapshot to the next, also where the snapshots are gone; an imported
    /// journal gets it at the first start.
    static func addSizes(_ db: Database) throws {
        try db.execute(
            sql: "CREATE TABLE IF NOT EXISTS sizes (version INTEGER PRIMARY KEY, bytes INTEGER NOT NULL)")
    }

    static func setBase(_ db: Database, _ link: ChainLink) throws {
        try set(db, "base_version", Int64(link.version))
        try set(db, "base_hash", link.hash.data)
    }
}
