internal import GRDB
internal import GRDBSQLite
internal import StateStore

/// The rows of the segments that have the commits of some versions, in order.
///
/// GRDB prepares and caches the statement; the columns are read from SQLite in place, because a row of GRDB costs as much as
/// the decoding of a commit. A connection has one cursor at a time.
struct SegmentCursor {
    /// A row, whose bytes are valid until the next one is read.
    struct Row {
        let first: Version?
        let last: Version?
        let hash: UnsafeRawBufferPointer
        let body: UnsafeRawBufferPointer
    }

    private let statement: Statement

    init(_ db: Database, from version: Version, through last: Version) throws {
        statement = try db.cachedStatement(
            sql: """
                SELECT first, last, hash, body FROM segments
                WHERE first >= ifnull((SELECT max(first) FROM segments WHERE first <= ?1), ?1) AND first <= ?2
                ORDER BY first
                """)
        reset()
        sqlite3_bind_int64(statement.sqliteStatement, 1, Int64(clamping: version))
        sqlite3_bind_int64(statement.sqliteStatement, 2, Int64(clamping: last))
    }

    /// Ends the reading, so that the connection can end its transaction.
    func reset() { sqlite3_reset(statement.sqliteStatement) }

    func next() throws -> Row? {
        let code = sqlite3_step(statement.sqliteStatement)
        guard code != SQLITE_DONE else { return nil }
        guard code == SQLITE_ROW else {
            throw DatabaseError(
                resultCode: ResultCode(rawValue: code),
                message: String(cString: sqlite3_errmsg(sqlite3_db_handle(statement.sqliteStatement))))
        }
        return Row(first: version(0), last: version(1), hash: bytes(2), body: bytes(3))
    }

    private func version(_ column: Int32) -> Version? {
        Version(recorded: sqlite3_column_int64(statement.sqliteStatement, column))
    }

    private func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        let start = sqlite3_column_blob(statement.sqliteStatement, column)
        return UnsafeRawBufferPointer(
            start: start, count: Int(sqlite3_column_bytes(statement.sqliteStatement, column)))
    }
}
