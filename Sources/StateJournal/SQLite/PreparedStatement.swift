internal import GRDB
internal import GRDBSQLite

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
