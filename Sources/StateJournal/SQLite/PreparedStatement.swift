internal import GRDB
internal import GRDBSQLite

/// A statement of SQLite's own, prepared once for a connection.
///
/// GRDB's statements cost about a microsecond for each row and argument, which is as much as the rest of an append. Only
/// the queue of the connection's database may use it.
final class PreparedStatement {
    private let statement: OpaquePointer
    private let connection: OpaquePointer

    init(_ db: Database, _ sql: String) throws {
        var prepared: OpaquePointer?
        guard let connection = db.sqliteConnection else { throw DatabaseError(resultCode: .SQLITE_MISUSE) }
        let code = sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
        guard code == SQLITE_OK, let prepared else { throw Self.error(code, connection) }
        statement = prepared
        self.connection = connection
    }

    deinit {
        sqlite3_finalize(statement)
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

    @discardableResult
    func run() throws -> Int {
        let code = sqlite3_step(statement)
        sqlite3_reset(statement)
        guard code == SQLITE_DONE else { throw Self.error(code, connection) }
        return Int(sqlite3_changes(connection))
    }

    func row<Value>(_ read: (Int64, UnsafeRawBufferPointer) throws -> Value) throws -> Value? {
        defer { sqlite3_reset(statement) }
        let code = sqlite3_step(statement)
        guard code != SQLITE_DONE else { return nil }
        guard code == SQLITE_ROW else { throw Self.error(code, connection) }
        let number = sqlite3_column_int64(statement, 0)
        let bytes = sqlite3_column_blob(statement, 1)
        return try read(
            number,
            UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(statement, 1))))
    }

    private static func error(_ code: Int32, _ connection: OpaquePointer) -> DatabaseError {
        DatabaseError(
            resultCode: ResultCode(rawValue: code), message: String(cString: sqlite3_errmsg(connection)))
    }
}
