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
        try db.execute(sql: "INSERT INTO meta VALUES ('epoch', ?)", arguments: [epoch.text])
        try setBase(db, ChainLink(beginning: epoch, version: version))
        try setTerm(db, 0)
    }

    static func term(_ db: Database) throws -> UInt64 {
        try Version(db, "SELECT value FROM meta WHERE name = 'term'") ?? 0
    }

    static func setTerm(_ db: Database, _ term: UInt64) throws {
        try db.execute(
            sql: "INSERT OR REPLACE INTO meta VALUES ('term', ?)", arguments: [Int64(clamping: term)])
    }

    /// Nil if no server has named it.
    static func domain(_ db: Database) throws -> HistoryDomain? {
        let name = try String.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'domain'")
        let since = try Version(db, "SELECT value FROM meta WHERE name = 'domain_since'")
        let isHeld = try Bool.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'domain_schema'")
        return name.map { HistoryDomain(name: $0, since: since ?? 0, isHeldToSchema: isHeld) }
    }

    static func setDomain(_ db: Database, _ domain: HistoryDomain) throws {
        try db.execute(
            sql: "INSERT OR REPLACE INTO meta VALUES ('domain', ?), ('domain_since', ?)",
            arguments: [domain.name, Int64(clamping: domain.since)])
        try db.execute(sql: "DELETE FROM meta WHERE name = 'domain_schema'")
        guard domain.isHeldToSchema == true else { return }
        try db.execute(sql: "INSERT INTO meta VALUES ('domain_schema', 1)")
    }

    /// Counts the bytes of segments from one snapshot to the next, also where the snapshots are gone; an imported
    /// journal gets it at the first start.
    static func addSizes(_ db: Database) throws {
        try db.execute(
            sql: "CREATE TABLE IF NOT EXISTS sizes (version INTEGER PRIMARY KEY, bytes INTEGER NOT NULL)")
    }

    static func setBase(_ db: Database, _ link: ChainLink) throws {
        try db.execute(
            sql: "INSERT OR REPLACE INTO meta VALUES ('base_version', ?), ('base_hash', ?)",
            arguments: [Int64(link.version), link.hash.data])
    }
}
