internal import GRDB
package import StateStore

package enum StartCheck {
    struct Extent: Sendable {
        /// Counts from the newest segment back.
        var segmentBytesMax: Int
        var fileBytesMax: Int

        /// Takes up to about a second.
        static let afterKill = Extent(segmentBytesMax: 64 << 20, fileBytesMax: 64 << 20)
        /// Only a disk or an operator can have changed anything then.
        static let afterClose = Extent(segmentBytesMax: 0, fileBytesMax: 16 << 20)
        static let whole = Extent(segmentBytesMax: .max, fileBytesMax: .max)
    }

    package struct Report: Sendable {
        package var start: Version
        package var end: Version
        package var snapshot: Version
        package var segmentBytes: Int
        package var isFileVerified: Bool
        package var duration: Duration

        package var beginning: String { "\(start == snapshot ? "the snapshot of version" : "version") \(start)" }
    }

    static func run(_ rows: SegmentRows, _ db: Database, _ extent: Extent) throws -> Report {
        let began = ContinuousClock.now
        let base = try rows.base(db)
        let tip = try rows.tip(db)
        // The part that the recovery will read is verified in any case, so that a start that is refused has changed nothing.
        let snapshot = try rows.newestSnapshot(db)
        _ = try rows.keys(db)
        var (start, bytes) = (base.version, 0)
        if extent.segmentBytesMax < .max {
            let sizes = try Row.fetchCursor(db, sql: "SELECT first, length(body) FROM segments ORDER BY first DESC")
            start = tip.version
            while bytes < extent.segmentBytesMax, let row = try sizes.next() {
                guard let first = Version(value: row["first"]), first > 0, first <= start else { break }
                start = first - 1
                bytes += Int.fromDatabaseValue(row[1]) ?? 0
            }
            start = min(start, snapshot)
        }
        var verified = 0
        try rows.readSegments(db, after: start, through: tip.version) { decoder, _ in
            verified += decoder.bytesCount
            return true
        }
        let isFileVerified = try fileBytes(db) <= extent.fileBytesMax
        if isFileVerified { try verifyTables(db, rows.path, by: "quick_check") }
        return Report(
            start: start, end: tip.version, snapshot: snapshot, segmentBytes: verified, isFileVerified: isFileVerified,
            duration: began.duration(to: .now))
    }

    static func fileBytes(_ db: Database) throws -> Int {
        let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
        return try pages * (Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0)
    }

    static func verifyTables(_ db: Database, _ path: String, by check: String) throws {
        let found = try String.fetchAll(db, sql: "PRAGMA \(check)(1)")
        guard found == ["ok"] else {
            throw JournalError(
                damaged: path,
                "SQLite says: \(found.first ?? "nothing")".split(whereSeparator: \.isNewline).joined(separator: " "))
        }
    }
}
