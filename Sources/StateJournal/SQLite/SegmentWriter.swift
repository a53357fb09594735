internal import GRDB
internal import GRDBSQLite
internal import StateStore

/// Writes commits as segments behind the tip of the chain.
// unchecked: only the queue that serializes the writes to the database calls it.
final class SegmentWriter: @unchecked Sendable {
    /// After a failed sync it is unknown whether it is on the disk.
    struct Remains: Hashable {
        var first: Version
        var hash: SegmentHash
    }

    struct Failure: Error {
        /// Has the kind `superseded` where another process has written, whose segments stay.
        var cause: JournalError
        /// Whether the record that commits the transaction was written, or may have been.
        var mayHaveLanded = false

        init(_ error: any Error, _ path: String) {
            self = error as? Failure ?? Failure(cause: JournalError("write to", path, error))
        }

        init(cause: JournalError, mayHaveLanded: Bool = false) {
            (self.cause, self.mayHaveLanded) = (cause, mayHaveLanded)
        }
    }

    private let epoch: Epoch
    private let path: String
    /// Another process that opens the journal raises it; nil before ``begin(term:)``.
    private var term: UInt64?
    /// Older remains are written over by newer ones.
    private static let remainsMax = 1024
    private var encoder: SegmentEncoder
    private var keys = ByteWriter()
    private var statements: Statements?

    private struct Statements {
        let begin, commit, rollback, term, tip, insert, insertKeys, delete, deleteKeys, probe: PreparedStatement

        init(_ db: Database) throws {
            begin = try PreparedStatement(db, "BEGIN IMMEDIATE")
            commit = try PreparedStatement(db, "COMMIT")
            rollback = try PreparedStatement(db, "ROLLBACK")
            term = try PreparedStatement(db, "SELECT value FROM meta WHERE name = 'term'")
            tip = try PreparedStatement(db, "SELECT last, hash FROM segments ORDER BY first DESC LIMIT 1")
            insert = try PreparedStatement(db, "INSERT INTO segments VALUES (?, ?, ?, ?)")
            insertKeys = try PreparedStatement(db, "INSERT INTO keys VALUES (?, ?, ?, ?)")
            delete = try PreparedStatement(db, "DELETE FROM segments WHERE first = ? AND hash = ?")
            deleteKeys = try PreparedStatement(db, "DELETE FROM keys WHERE first = ?")
            probe = try PreparedStatement(db, "INSERT OR REPLACE INTO meta VALUES ('probe', zeroblob(?))")
        }
    }

    init(epoch: Epoch, path: String, term: UInt64? = 0) {
        self.epoch = epoch
        self.path = path
        self.term = term
        encoder = SegmentEncoder(epoch: epoch, fence: term ?? 0)
    }

    func begin(term: UInt64) {
        self.term = term
        encoder = SegmentEncoder(epoch: epoch, fence: term)
    }

    /// The database cannot be closed with open statements.
    func finish() { statements = nil }

    /// Appends all or none, behind the deletion of the `remains` of failed appends; after an error `remains` has also
    /// those of this append that may have landed, else none.
    func append(
        _ commits: [Commit], after tip: ChainLink, takingBack remains: inout [Remains], _ db: Database
    ) throws(Failure) -> ChainLink {
        var made: [Remains] = []
        var next = tip
        do throws(Failure) {
            try transaction(db, after: tip, takingBack: &remains) { next = try insert(commits, after: tip, $0, &made) }
        } catch {
            if error.mayHaveLanded {
                remains = Array((remains.filter { !made.contains($0) } + made).suffix(Self.remainsMax))
            }
            throw error
        }
        return next
    }

    /// Writes over what a failed append may have left in the WAL, so that it never comes into the journal: the frames
    /// begin where those of the failed transaction do, whose later ones then fit nothing, so no recovery takes them.
    ///
    /// The `bytesCount` more bytes find out whether there is room for an append.
    func takeBack(
        _ remains: inout [Remains], after tip: ChainLink, writing bytesCount: Int, _ db: Database
    ) throws(Failure) {
        for count in bytesCount > 0 ? [bytesCount, 0] : [0] {
            try transaction(db, after: tip, takingBack: &remains) { statements in
                statements.probe.bind(1, Int64(count))
                try statements.probe.run()
            }
        }
    }

    private func transaction(
        _ db: Database, after tip: ChainLink, takingBack remains: inout [Remains],
        _ write: (Statements) throws -> Void
    ) throws(Failure) {
        let statements: Statements
        do {
            statements = try self.statements ?? prepared(db)
            try statements.begin.run()
        } catch {
            throw Failure(error, path)
        }
        // After some errors SQLite has rolled back by itself. An error of the rollback would hide the cause.
        defer { if sqlite3_get_autocommit(db.sqliteConnection) == 0 { try? statements.rollback.run() } }
        do {
            try verifyTerm(statements)
            // No client has received an answer for these commits; a segment with another hash is another process's and stays.
            for segment in remains {
                statements.delete.bind(1, Int64(segment.first))
                try segment.hash.withBytes { hash in
                    statements.delete.bind(2, hash)
                    try statements.delete.run()
                }
                guard statements.delete.changesCount > 0 else { continue }
                statements.deleteKeys.bind(1, Int64(segment.first))
                try statements.deleteKeys.run()
            }
            // Another process may have written behind the tip. There is no segment only before the first append: retention keeps
            // the newest one.
            let isOurs = try statements.tip.row {
                $0.integer(0) == Int64(tip.version) && tip.hash.withBytes($0.bytes(1).elementsEqual)
            }
            guard isOurs ?? (tip == ChainLink(beginning: epoch, version: tip.version)) else {
                throw JournalError(
                    "cannot write to the journal \(path): another process has changed it after version \(tip.version); stop this one and start it again",
                    kind: .superseded)
            }
            try write(statements)
        } catch {
            // The record that commits is the last one that a transaction writes.
            throw Failure(error, path)
        }
        do {
            try statements.commit.run()
        } catch {
            throw Failure(cause: JournalError("write to", path, error), mayHaveLanded: Self.mayHaveLanded(error))
        }
        remains.removeAll()
    }

    /// The frame that commits is the last one, so it is not whole where a write failed: only a sync comes after it.
    private static func mayHaveLanded(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError else { return true }
        return error.resultCode != .SQLITE_FULL && error.extendedResultCode != .SQLITE_IOERR_WRITE
    }

    /// Needs a transaction of the caller's.
    func verifyTerm(_ db: Database) throws { try verifyTerm(prepared(db)) }

    private func verifyTerm(_ statements: Statements) throws {
        guard let term else {
            throw JournalError("cannot write to the journal \(path): the disk was full at the start", kind: .noRoom)
        }
        let found = try statements.term.row { $0.integer(0) }
        guard found != Int64(bitPattern: term) else { return }
        throw JournalError(
            "cannot write to the journal \(path): another process has opened it for writing after this one (term \(found.map(String.init) ?? "none"), this one has \(term)); stop this one: what it has acknowledged is in the journal",
            kind: .superseded)
    }

    func insert(_ commits: [Commit], after tip: ChainLink, _ db: Database) throws -> ChainLink {
        var written: [Remains] = []
        return try insert(commits, after: tip, prepared(db), &written)
    }

    private func insert(
        _ commits: [Commit], after tip: ChainLink, _ statements: Statements, _ written: inout [Remains]
    ) throws -> ChainLink {
        var tip = tip
        var start = 0
        while start < commits.count {
            let end = start + 1 == commits.count ? commits.count : SegmentBody.end(of: commits, from: start)
            let (first, last) = (commits[start].version, commits[end - 1].version)
            guard first == tip.version + 1, last == first + Version(end - start - 1) else {
                throw JournalError(
                    "cannot write to the journal \(path): version \(first) does not follow version \(tip.version)")
            }
            encoder.encode(commits, from: start, to: end)
            let hash = SegmentHash(after: tip.hash, first: first, last: last, body: encoder.body.bytes.span.bytes)
            written.append(Remains(first: first, hash: hash))
            statements.insert.bind(1, Int64(first))
            statements.insert.bind(2, Int64(last))
            try hash.withBytes { hash in
                try encoder.body.bytes.withUnsafeBytes { body in
                    statements.insert.bind(3, hash)
                    statements.insert.bind(4, body)
                    try statements.insert.run()
                }
            }
            var records: [KeyRecord] = []
            for index in start..<end {
                if let record = commits[index].idempotency { records.append(record) }
            }
            if !records.isEmpty { try insert(records, first, statements) }
            tip = ChainLink(version: last, hash: hash)
            start = end
        }
        return tip
    }

    func insert(_ records: [KeyRecord], _ db: Database) throws {
        var rest = records.sorted { $0.version < $1.version }[...]
        while let first = rest.first {
            var part: [KeyRecord] = []
            // A version names one row, so keys of one version stay together.
            while let key = rest.first, part.count < SegmentBody.commitsMax || part.last?.version == key.version {
                part.append(key)
                rest.removeFirst()
            }
            try insert(part, first.version, prepared(db))
        }
    }

    private func insert(
        _ records: [KeyRecord], _ first: Version, _ statements: Statements
    ) throws {
        guard let expiry = KeyTable.write(records, epoch, to: &keys) else { return }
        statements.insertKeys.bind(1, Int64(first))
        statements.insertKeys.bind(2, expiry.milliseconds)
        try keys.bytes.withUnsafeBytes { body in
            try SegmentRows.hash(ofKeys: body, first, epoch).withBytes { hash in
                statements.insertKeys.bind(3, hash)
                statements.insertKeys.bind(4, body)
                try statements.insertKeys.run()
            }
        }
    }

    private func prepared(_ db: Database) throws -> Statements {
        if let statements { return statements }
        let prepared = try Statements(db)
        statements = prepared
        return prepared
    }
}

/// A row or an argument of GRDB's costs about a microsecond, as much as the rest of an append; only the queue of the
/// connection's database may use it.
struct PreparedStatement {
    private let owner: Statement
    private let statement: OpaquePointer

    init(_ db: Database, _ sql: String) throws {
        owner = try db.cachedStatement(sql: sql)
        statement = owner.sqliteStatement
    }

    func bind(_ index: Int32, _ value: Int64) { sqlite3_bind_int64(statement, index, value) }

    /// Binds bytes without copying them; they must stay until the statement has run.
    func bind(_ index: Int32, _ bytes: UnsafeRawBufferPointer) {
        // A null pointer would be NULL and not an empty blob.
        if let start = bytes.baseAddress {
            sqlite3_bind_blob64(statement, index, start, UInt64(bytes.count), nil)
        } else {
            sqlite3_bind_zeroblob(statement, index, 0)
        }
    }

    func run() throws {
        let code = sqlite3_step(statement)
        reset()
        guard code == SQLITE_DONE else { throw error(code) }
    }

    /// Counts for the connection's last statement that was run, which may be another one.
    var changesCount: Int { Int(sqlite3_changes(sqlite3_db_handle(statement))) }

    func row<Value>(_ read: (PreparedStatement) throws -> Value) throws -> Value? {
        defer { reset() }
        return try step() ? read(self) : nil
    }

    /// The connection cannot end its transaction before.
    func reset() { sqlite3_reset(statement) }

    /// The columns are valid until the next call; returns whether there is a row.
    func step() throws -> Bool {
        let code = sqlite3_step(statement)
        guard code == SQLITE_ROW || code == SQLITE_DONE else { throw error(code) }
        return code == SQLITE_ROW
    }

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

    func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        let start = sqlite3_column_blob(statement, column)
        return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))
    }

    private func error(_ code: Int32) -> DatabaseError {
        DatabaseError(
            resultCode: ResultCode(rawValue: code),
            message: String(cString: sqlite3_errmsg(sqlite3_db_handle(statement))))
    }
}
