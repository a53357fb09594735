internal import FoundationEssentials
internal import Segments
internal import StateJSON
internal import StateStore

/// The newest turn that a server knows, in its own directory: a later start then finds out that etcd was restored from an older
/// backup while no server ran.
///
/// The file may be deleted at any time; then, and for what is written in the two seconds before a kill, nothing is noticed.
struct SeenTurn: Codable, Equatable {
    private var epoch: String
    private(set) var key: Version
    private var hash: [UInt8]

    private static let name = "seen-turn.json"

    init(_ epoch: Epoch, _ key: Version, _ hash: SegmentHash) {
        (self.epoch, self.key, self.hash) = (epoch.text, key, hash.bytes)
    }

    /// Reads the turn of an epoch that was noted in a directory, if there is one.
    init?(in directory: String, of epoch: Epoch) {
        guard let bytes = try? Data(contentsOf: URL(fileURLWithPath: "\(directory)/\(Self.name)")),
            let seen = try? Etcd.decode(Self.self, from: bytes), seen.epoch == epoch.text
        else { return nil }
        self = seen
    }

    /// Notes the turn in a directory; where that fails, a later start notices less.
    func note(in directory: String) {
        try? FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try? Data(JSON.encode(self)).write(to: URL(fileURLWithPath: "\(directory)/\(Self.name)"), options: .atomic)
    }

    /// Whether a turn that etcd has under this key is this one.
    func isTurn(_ value: Data) -> Bool { value.prefix(16).elementsEqual(hash) }
}
