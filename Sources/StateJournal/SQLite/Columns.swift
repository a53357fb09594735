internal import FoundationEssentials
internal import GRDB
internal import Segments
internal import StateStore

extension SegmentHash {
    var data: Data { Data(bytes) }

    /// Reads a column; nil for anything but 16 bytes.
    init?(_ row: Row, _ column: String) {
        guard let data = Data.fromDatabaseValue(row[column] as DatabaseValue) else { return nil }
        self.init(data)
    }
}

extension Version {
    /// Reads a column; nil for anything but a whole number that is not negative.
    init?(_ row: Row, _ column: String) {
        guard let number = Int64.fromDatabaseValue(row[column] as DatabaseValue) else { return nil }
        self.init(exactly: number)
    }
}
