internal import Dispatch
internal import GRDB
internal import StateJSON
package import StateStore
internal import Synchronization

/// The versions of the commits that have a client's ID, by the ID's hash.
package struct IDVersions: Sendable {
    package struct Entry: Hashable, Comparable, Sendable {
        var hash: Int64
        package var version: Version

        package static func < (left: Entry, right: Entry) -> Bool {
            left.hash != right.hash ? left.hash < right.hash : left.version < right.version
        }
    }

    private var newest: [Int64: Version] = [:]
    /// A client has used an ID again, or two IDs have one hash.
    private var older: [Entry] = []

    package init() {}

    package var count: Int { newest.count + older.count }

    var entries: [Entry] { newest.map { Entry(hash: $0.key, version: $0.value) } + older }

    package static func hash(of id: String, by subject: String? = nil) -> Int64 {
        Int64(bitPattern: CommitName(id, by: subject).hash.low)
    }

    static func entries(of commit: Commit) -> [Entry] {
        commit.names.map { Entry(hash: Int64(bitPattern: $0.hash.low), version: commit.version) }
    }

    /// The commits come in the order of their versions.
    package mutating func insert(_ commit: Commit) {
        guard !commit.clientIDs.isEmpty else { return }
        for name in commit.names {
            let hash = Int64(bitPattern: name.hash.low)
            if let before = newest.updateValue(commit.version, forKey: hash), before != commit.version {
                older.append(Entry(hash: hash, version: before))
            }
        }
    }

    /// Newest first.
    package func versions(_ hash: Int64) -> [Version] {
        guard let version = newest[hash] else { return [] }
        guard !older.isEmpty else { return [version] }
        return [version] + older.lazy.reversed().filter { $0.hash == hash }.map(\.version)
    }

    mutating func remove(through version: Version) {
        newest = newest.filter { $0.value > version }
        older.removeAll { $0.version <= version }
    }
}

/// A row of the table costs more than the rest of a commit when it is written alone, because each goes to another page,
/// so the IDs wait here until they are many; the segments have them, too.
struct RecentIDs {
    /// Bounds memory, and the time of a start.
    static let waitingMax = 65_536

    private(set) var indexed: Version
    private var latest: Version
    private(set) var waiting = IDVersions()
    private var isWriting = false
    private var failed: Version?

    init(indexed: Version) {
        self.indexed = indexed
        latest = indexed
    }

    /// True where many entries wait; after a failure, when as many have come again.
    private(set) var isDue = false

    @discardableResult
    mutating func insert(_ commits: [Commit]) -> Bool {
        for commit in commits {
            latest = commit.version
            waiting.insert(commit)
        }
        let most = Version(Self.waitingMax)
        let isMany = waiting.count >= Self.waitingMax || latest - indexed >= most
        isDue = isMany && !isWriting && failed.map { latest - $0 >= most } ?? true
        return isDue
    }

    /// The entries stay here until the table has them.
    mutating func claim() -> (entries: [IDVersions.Entry], through: Version)? {
        guard isDue else { return nil }
        (isDue, isWriting) = (false, true)
        return (waiting.entries, latest)
    }

    mutating func finish(through version: Version) {
        isWriting = false
        failed = nil
        indexed = version
        waiting.remove(through: version)
    }

    mutating func abandon() {
        isWriting = false
        failed = latest
    }
}

extension SQLiteJournal {
    package func commit(id: String, by subject: String? = nil) throws -> Commit? {
        let hash = IDVersions.hash(of: id, by: subject)
        let recent = ids.withLock { $0.waiting.versions(hash) }
        return try reading { db in
            // The IDs in memory are newer than those in the table.
            for version in recent {
                if let commit = try rows.commit(db, version), commit.has(clientID: id, by: subject) { return commit }
            }
            for version in try IDTable.versions(db, hash) {
                if let commit = try rows.commit(db, version), commit.has(clientID: id, by: subject) { return commit }
            }
            return nil
        }
    }

    func indexIDs(of commits: [Commit]) {
        guard ids.withLock({ $0.insert(commits) }) else { return }
        background.async { [self] in
            guard let (entries, version) = ids.withLock({ $0.claim() }) else { return }
            do {
                try IDTable.write(
                    entries, through: version, pruned: reading { try rows.oldest($0) }, to: database)
                ids.withLock { $0.finish(through: version) }
            } catch {
                ids.withLock { $0.abandon() }
                report(.idsNotIndexed(reason: JournalError("write the IDs of commits to", path, error).description))
            }
        }
    }
}

extension SegmentRows {
    func recentIDs(_ db: Database) throws -> RecentIDs {
        let base = try base(db).version
        let tip = try tip(db).version
        let recorded = try IDTable.indexed(db) ?? base
        // A version behind the tip is damage, and says nothing of what the table has.
        let indexed = recorded <= tip ? max(recorded, base) : base
        var ids = RecentIDs(indexed: indexed)
        try read(db, after: indexed, through: .max) { commit in
            ids.insert([commit])
            return true
        }
        return ids
    }
}

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
