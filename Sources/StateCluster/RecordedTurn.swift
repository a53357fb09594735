internal import StateJournal
internal import StateStore

/// A hash of 16 bytes and the body of the segment; the key at which a history begins has a hash only.
struct RecordedTurn {
    let first: Version
    let link: ChainLink
    let commits: [Commit]

    /// Verifies with a tip of nil only the form, and with `onlyWithIDs` has no commits where no client has given an ID;
    /// the cost is that of the bytes.
    init(
        _ first: Version, _ value: [UInt8], after tip: ChainLink?, _ epoch: Epoch, onlyWithIDs: Bool = false
    ) throws(ClusterFault) {
        self.first = first
        if let tip, first != tip.version + 1 { throw Self.missing(tip.version + 1) }
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
