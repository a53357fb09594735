internal import StateJournal
internal import StateStore

/// The value of a turn's key: the hash of the turn, 16 bytes, and the body of its segment.
///
/// The key at which a history begins has a hash only, and no commits.
struct RecordedTurn {
    let first: Version
    let link: ChainLink
    let commits: [Commit]

    /// Reads a turn, and verifies that it follows a tip, or with nil only its form; the cost is that of its bytes.
    ///
    /// With `onlyWithIDs` it has no commits where no client has given an ID to any.
    init(
        _ first: Version, _ value: [UInt8], after tip: ChainLink?, _ epoch: Epoch, onlyWithIDs: Bool = false
    ) throws(ClusterFault) {
        self.first = first
        let hash = try Self.hash(first, value)
        if tip == nil, Self.isBeginning(value) {
            (link, commits) = (ChainLink(version: first, hash: hash), [])
            return
        }
        do {
            (link, commits) = try value.withUnsafeBytes { bytes in
                let body = UnsafeRawBufferPointer(rebasing: bytes[16...])
                var decoder = try SegmentDecoder(body, first: first, epoch: epoch)
                let link = ChainLink(version: first + Version(decoder.count) - 1, hash: hash)
                if let tip, SegmentHash(after: tip.hash, first: first, last: link.version, body: body.bytes) != hash {
                    throw SegmentFault("its hash is wrong, or it does not follow version \(tip.version)")
                }
                guard !onlyWithIDs || decoder.hasClientIDs else { return (link, []) }
                return (link, try (0..<decoder.count).map { try decoder.commit(at: $0) })
            }
        } catch {
            throw Self.fault(first, (error as? SegmentFault)?.detail ?? "\(error)")
        }
    }

    static func hash(_ first: Version, _ value: [UInt8]) throws(ClusterFault) -> SegmentHash {
        guard let hash = SegmentHash(value.prefix(16)) else { throw fault(first, "it has \(value.count) bytes") }
        return hash
    }

    static func isBeginning(_ value: [UInt8]) -> Bool { value.count == 16 }

    static func fault(_ first: Version, _ detail: String) -> ClusterFault {
        ClusterFault("the turn of version \(first) in etcd is not what was recorded: \(detail)")
    }

    static func missing(_ version: Version) -> ClusterFault {
        ClusterFault("the turn of version \(version) in etcd is missing")
    }
}

/// The chain of the turns that are read one after the other: each is verified to follow the one before.
///
/// The first one is where a history begins, or a turn whose predecessor is deleted: of that one only the form is verified,
/// and by the turn behind it that its hash is the recorded one.
struct TurnChain {
    private let epoch: Epoch
    private(set) var tip: ChainLink?

    init(_ epoch: Epoch) { self.epoch = epoch }

    mutating func take(_ first: Version, _ value: [UInt8]) throws(ClusterFault) -> [Commit] {
        if let tip, first != tip.version + 1 { throw RecordedTurn.missing(tip.version + 1) }
        let turn = try RecordedTurn(first, value, after: tip, epoch)
        tip = turn.link
        return turn.commits
    }
}
