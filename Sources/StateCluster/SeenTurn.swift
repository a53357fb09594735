internal import FoundationEssentials
internal import StateJSON
internal import StateJournal
internal import StateStore

/// By its file, which may be deleted at any time, a later start finds out that etcd was restored from an older backup
/// while no server ran, but for the two seconds before a kill.
struct SeenTurn: Codable, Equatable {
    private var epoch: String
    private(set) var key: Version
    private var hash: [UInt8]
    /// Hash of the history's secret, which a copy with the same epoch has not; nil in a file of an earlier program.
    private var origin: String?

    private static let name = "seen-turn.json"

    init(_ epoch: Epoch, secret: String?, _ key: Version, _ hash: SegmentHash) {
        (self.epoch, origin, self.key, self.hash) = (epoch.text, Self.origin(secret), key, hash.bytes)
    }

    /// A restored etcd has the secret that it had; a copy has another one, and other turns with the same commits.
    init?(in directory: String, of epoch: Epoch, secret: String?) {
        guard let bytes = try? Data(contentsOf: URL(fileURLWithPath: "\(directory)/\(Self.name)")),
            let seen = try? Etcd.decode(Self.self, from: bytes), seen.epoch == epoch.text,
            seen.origin == nil || seen.origin == Self.origin(secret)
        else { return nil }
        self = seen
    }

    /// A failure is ignored: a later start then notices less.
    func note(in directory: String) {
        try? FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try? Data(JSON.encode(self)).write(to: URL(fileURLWithPath: "\(directory)/\(Self.name)"), options: .atomic)
    }

    private static func origin(_ secret: String?) -> String? {
        secret.map { StoredHistory.hash(Array($0.utf8)) }
    }

    func isTurn(_ value: [UInt8]) -> Bool { value.prefix(16).elementsEqual(hash) }
}
