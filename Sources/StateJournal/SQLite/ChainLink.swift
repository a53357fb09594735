internal import FoundationEssentials
internal import GRDB
internal import StateStore

/// The end of a segment, or the beginning of a history: what the next segment builds on.
struct ChainLink: Hashable, Sendable {
    var version: Version
    var hash: SegmentHash

    init(version: Version, hash: SegmentHash) {
        self.version = version
        self.hash = hash
    }

    /// The link on which the first segment of a history builds.
    init(beginning epoch: Epoch, version: Version) {
        self.init(version: version, hash: SegmentHash(beginning: epoch, version: version))
    }
}

extension SegmentHash {
    /// The 16 bytes, for a column.
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
