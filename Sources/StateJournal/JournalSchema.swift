internal import GRDB

/// The tables of a journal.
enum JournalSchema {
    /// The number of this format; a program refuses journals of a newer one.
    static let version = 1

    /// Makes the tables in an empty file.
    static func create(_ db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
                -- id is NULL where it is the commit's own cursor; changedPointers is a JSON array of pointers.
                CREATE TABLE commits (
                    version INTEGER PRIMARY KEY,
                    time INTEGER NOT NULL,
                    id TEXT,
                    cause TEXT,
                    root TEXT,
                    types TEXT NOT NULL,
                    action BLOB NOT NULL,
                    patch BLOB NOT NULL,
                    changedPointers BLOB NOT NULL
                );
                -- The clients' own IDs, of commits and of actions inside a batch.
                CREATE TABLE ids (id TEXT NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (id, version)) WITHOUT ROWID;
                CREATE INDEX ids_by_version ON ids (version);
                CREATE TABLE keys (
                    key TEXT PRIMARY KEY,
                    fingerprint TEXT NOT NULL,
                    version INTEGER NOT NULL,
                    id TEXT NOT NULL,
                    changed INTEGER NOT NULL,
                    expiry INTEGER NOT NULL
                ) WITHOUT ROWID;
                CREATE INDEX keys_by_expiry ON keys (expiry);
                -- A cache: any of them can be made again from an older one and the commits after it.
                CREATE TABLE snapshots (version INTEGER PRIMARY KEY, hash TEXT NOT NULL, state BLOB NOT NULL);
                PRAGMA user_version = \(version);
                """)
    }
}
