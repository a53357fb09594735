internal import Dispatch
internal import FoundationEssentials
internal import GRDB
package import StateStore

/// The file has it an hour late at most while the server is used, and exactly after a stop; a loss makes keys live
/// longer, never shorter.
struct NotedHistoryTime: Sendable {
    /// Nil before ``SQLiteJournal/recover(at:)``.
    var latest: Timestamp?
    var written: Timestamp?

    var unwritten: Timestamp? { latest == written ? nil : latest }

    /// Returns whether the file should have it.
    mutating func take(_ time: Timestamp) -> Bool {
        latest = time
        guard let written, time < written.advanced(by: .seconds(3600)) else { return true }
        return false
    }
}

extension SQLiteJournal {
    package func note(historyTime: Timestamp) {
        guard withHistoryTime({ $0.take(historyTime) }), failure == nil else { return }
        background.async { [self] in
            // A later note tries again; until then, an end of the process makes keys live longer.
            _ = try? writeHistoryTime()
        }
    }

    func writeHistoryTime() throws {
        guard let time = withHistoryTime({ $0.unwritten }) else { return }
        try writing { db in
            try JournalSchema.set(db, "history_time", SegmentRows.encoded(time.milliseconds, epoch))
        }
        withHistoryTime { $0.written = time }
    }
}

extension SegmentRows {
    /// Nil where it is damaged: a wrong time could make a key expire early.
    func historyTime(_ db: Database) throws -> Timestamp? {
        let value: DatabaseValue? = try JournalSchema.value(db, "history_time")
        guard let data = value.flatMap(Data.fromDatabaseValue), data.count == 24 else { return nil }
        let milliseconds = Int64(bitPattern: data.prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
        return Self.encoded(milliseconds, epoch) == data ? Timestamp(milliseconds: milliseconds) : nil
    }

    /// 8 bytes, most significant first, and the hash of them in this history.
    fileprivate static func encoded(_ milliseconds: Int64, _ epoch: Epoch) -> Data {
        withUnsafeBytes(of: milliseconds.bigEndian) { number in
            let hash = SegmentHash(
                after: SegmentHash(beginning: epoch, version: 0), first: 0, last: 0, body: number.bytes)
            return Data(number) + hash.data
        }
    }
}
