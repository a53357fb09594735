internal import FoundationEssentials
internal import GRDB
internal import StateJSON
package import StateStore

/// Each read is one transaction of at most a thousand commits, so that a server can checkpoint its WAL; a commit that
/// is pruned between two reads makes the next one throw, and any thread may use it.
package final class JournalReader: RecordedHistory, Sendable {
    package let epoch: Epoch
    package let latest: Version
    package let domain: HistoryDomain?
    let directory: DataDirectory
    let database: DatabaseQueue
    let rows: SegmentRows
    let path: String

    /// Changes nothing in the directory.
    package init(directory: String) throws {
        try Self.check(directory)
        let directory = DataDirectory(path: directory)
        self.directory = directory
        path = directory.journal
        do {
            database = try Inspection.open(path)
            (rows, latest, domain) = try database.read { [path] db in
                let rows = try SegmentRows(db, path)
                return (rows, try rows.latestVersion(db), try JournalSchema.domain(db))
            }
            epoch = rows.epoch
        } catch {
            throw JournalError("read", path, error)
        }
    }

    package static func check(_ directory: String) throws(JournalError) {
        guard FileManager.default.fileExists(atPath: DataDirectory(path: directory).journal) else {
            throw JournalError("there is no journal in the data directory \(directory)")
        }
    }

    /// 0 if the process is unknown; nil without one.
    package static func user(of directory: String) -> Int32? {
        DirectoryLock.holder(of: DataDirectory(path: directory))
    }

    package static func refuseInUse(_ directory: String) throws(JournalError) {
        guard user(of: directory) != nil else { return }
        throw JournalError(
            "another process is using the data directory \(directory): a second server in the same epoch would make another history of it; stop that server, or restore a backup under a new epoch"
        )
    }

    /// O(n) in the size; a deep verification is one transaction, during which the WAL of a serving journal grows.
    package func verify(_ depth: HistoryDepth, at time: Timestamp) throws {
        try verify { db in if depth == .deep { try verifyDeeply(db, at: time) } }
    }

    /// The WAL of a serving journal grows meanwhile.
    package func holding<Value>(_ body: () throws -> Value) throws -> Value {
        var result: Result<Value, any Error>?
        try verify { _ in result = Result { try body() } }
        guard let result else { preconditionFailure("a verification without a fault calls its function") }
        return try result.get()
    }

    func verify(with more: (Database) throws -> Void) throws {
        // A server that is running raises the fence after the journal, so the fence is read first.
        let fence = try Fence.read(directory)
        try reading { db in
            try compare(with: fence, db)
            try rows.verifyBase(db)
            _ = try StartCheck.run(rows, db, .whole)
            try more(db)
        }
    }

    func compare(with fence: Fence.Content, _ db: Database) throws {
        guard let record = try fence.record(in: directory) else { throw JournalError(lackingFence: directory.fence) }
        try Inspection.compare(rows, with: record, db)
    }

    package func beginning() throws -> HistoryBeginning {
        let fence = try Fence.read(directory)
        return try reading { db in
            do {
                try compare(with: fence, db)
            } catch let error as JournalError {
                throw JournalError(
                    "\(error); with --since N, export writes what is there after version N", kind: error.kind)
            }
            let first = try oldestStart(db)
            let base = try rows.base(db).version
            guard first <= base else {
                throw JournalError(
                    "the journal \(path) lacks commits before version \(first + 1): with --since \(first) or a later version, export writes what follows: \(JournalError.advice)",
                    kind: .damage)
            }
            for candidate in try rows.snapshotVersions(db, after: Int64(first) - 1, through: latest) {
                guard let (state, _) = try rows.snapshot(db, candidate) else { continue }
                return (candidate, state.bytes())
            }
            throw JournalError("the journal \(path) has no good snapshot whose later commits are all kept")
        }
    }

    package func beginning(at version: Version) throws -> HistoryBeginning {
        try reading { db in
            guard version <= latest else {
                throw JournalError("the journal \(path) ends at version \(latest): there is no version \(version)")
            }
            let first = max(try oldestStart(db), try rows.oldestState(db))
            guard version >= first else {
                throw JournalError(
                    "the journal \(path) keeps no state of version \(version) with all commits after it; the oldest is \(first)"
                )
            }
            var warnings: [String] = []
            return (version, try rows.state(db, upTo: version, warnings: &warnings).state.bytes())
        }
    }

    /// O(n) in the number of segments.
    private func oldestStart(_ db: Database) throws -> Version {
        guard try rows.tip(db).version >= latest else { return latest }
        let first = try Version(
            db,
            """
            SELECT max(first) FROM
                (SELECT first, lag(last) OVER (ORDER BY first) AS before FROM segments WHERE first <= ?)
            WHERE before IS NOT first - 1
            """, [Int64(latest)])
        return first.flatMap { $0 > 0 ? $0 - 1 : nil } ?? latest
    }

    /// The reader has at most a thousand commits or 16 megabytes of them in memory at a time.
    package func forEachCommit(after start: Version, _ body: (Commit) throws -> Void) throws {
        var version = start
        while version < latest {
            let commits = try reading { db in
                let last = min(version + 1000, latest)
                return try rows.commits(db, after: version, through: last, limit: 1000)
            }
            guard let last = commits.last else {
                throw JournalError(
                    "the journal \(path) lacks the commit of version \(version + 1); if a server has dropped it meanwhile, begin again"
                )
            }
            for commit in commits { try body(commit) }
            version = last.version
        }
    }

    /// Oldest first.
    package func snapshots() throws -> [Version] {
        try reading { try rows.snapshotVersions($0, through: latest) }
    }

    /// Nil when it is damaged or pruned.
    package func snapshot(_ version: Version) throws -> [UInt8]? {
        try reading { db in
            try rows.snapshotBytes(db, version).map { [UInt8]($0.state) }
        }
    }

    package func oldest() throws -> Version { try reading(rows.oldest) }

    package func keys(through version: Version) throws -> [KeyRecord] {
        try reading { try rows.keys($0).filter { $0.version <= version } }
    }

    func reading<Value>(_ read: (Database) throws -> Value) throws -> Value {
        do {
            return try database.unsafeReentrantRead { db in
                guard !db.isInsideTransaction else { return try read(db) }
                try db.beginTransaction(.deferred)
                // SQLite may have ended it itself, and nothing was written.
                defer { try? db.rollback() }
                return try read(db)
            }
        } catch {
            throw JournalError("read", path, error)
        }
    }
}
