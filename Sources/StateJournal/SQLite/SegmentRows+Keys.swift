internal import FoundationEssentials
internal import GRDB
internal import Segments
internal import StateStore

extension SegmentRows {
    /// The hash of the keys of a segment: it names the history and the segment, and stays valid when the segment is pruned.
    static func hash(ofKeys body: UnsafeRawBufferPointer, _ first: Version, _ epoch: Epoch) -> SegmentHash {
        SegmentHash(
            after: SegmentHash(beginning: epoch, version: 0), first: first, last: first, body: body)
    }

    /// Returns all keys, oldest first, also expired ones: by the index a damaged expiry would hide keys.
    func keys(_ db: Database) throws -> [KeyRecord] {
        var all: [KeyRecord] = []
        try readKeys(db) { first, keys in
            guard let keys else {
                throw JournalError(
                    damaged: path, "the idempotency keys from version \(first) on are not what was recorded")
            }
            all += keys
        }
        return all
    }

    /// Calls `take` with the first version and the keys of each row, or nil for a row that is not what was recorded.
    func readKeys(_ db: Database, _ take: (_ first: Version, _ keys: [KeyRecord]?) throws -> Void) throws {
        let rows = try Row.fetchCursor(db, sql: "SELECT first, expiry, hash, body FROM keys NOT INDEXED ORDER BY first")
        while let row = try rows.next() {
            guard let first = Version(row, "first") else {
                try take(0, nil)
                continue
            }
            guard let expiry = Int64.fromDatabaseValue(row["expiry"] as DatabaseValue),
                let hash = SegmentHash(row, "hash"), let body = Data.fromDatabaseValue(row["body"]),
                body.withUnsafeBytes({ Self.hash(ofKeys: $0, first, epoch) }) == hash
            else {
                try take(first, nil)
                continue
            }
            do {
                let keys = try body.withUnsafeBytes { try KeyTable.read($0, epoch) }
                // The hash does not cover the column, by which rows are deleted.
                try take(first, keys.map(\.expiry.milliseconds).max() == expiry ? keys : nil)
            } catch let fault as SegmentFault {
                throw JournalError(
                    "cannot read the idempotency keys from version \(first) on in the journal \(path): \(fault.detail)")
            }
        }
    }
}
