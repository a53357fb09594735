internal import FoundationEssentials
internal import GRDB
internal import StateStore

extension SegmentRows {
    /// The hash of the keys of a segment: it names the history and the segment, and stays valid when the segment is pruned.
    static func hash(ofKeys body: UnsafeRawBufferPointer, _ first: Version, _ epoch: Epoch) -> SegmentHash {
        SegmentHash(
            after: SegmentHash(beginning: epoch, version: 0), first: first, last: first, body: body)
    }

    /// Returns the keys that have not expired, oldest first.
    ///
    /// - Throws: ``JournalError`` when the keys of a segment are damaged.
    func keys(_ db: Database, at time: Timestamp) throws -> [KeyRecord] {
        var keys: [KeyRecord] = []
        let rows = try Row.fetchCursor(
            db, sql: "SELECT first, hash, body FROM keys WHERE expiry > ? ORDER BY first",
            arguments: [time.milliseconds])
        while let row = try rows.next() {
            guard let first = Version(row, "first"), let hash = SegmentHash(row, "hash"),
                let body = Data.fromDatabaseValue(row["body"]),
                body.withUnsafeBytes({ Self.hash(ofKeys: $0, first, epoch) }) == hash
            else {
                let first = Version(row, "first").map { "from version \($0) on" } ?? "of an unknown version"
                throw JournalError(damaged: path, "the idempotency keys \(first) are not what was recorded")
            }
            do {
                keys += try body.withUnsafeBytes { try KeyTable.read($0, epoch) }.filter { $0.expiry > time }
            } catch let fault as SegmentFault {
                throw JournalError(
                    "cannot read the idempotency keys from version \(first) on in the journal \(path): \(fault.detail)")
            }
        }
        return keys
    }
}
