internal import FoundationEssentials
internal import StateJournal
internal import StateStore

/// A range request bounds the number of its turns, each up to a megabyte, not their bytes, so a page is as long as the
/// largest turn of the page before lets it be, and shorter where no etcd answered in time.
extension StoredHistory {
    private static let pageBytesMax = 4 << 20
    /// So many of the largest turns are, in Base64, still an answer that the client takes.
    private static let pageTurnsMax = 128

    @discardableResult
    func forEachTurn(
        from first: Version, through last: Version = .max, _ take: (Version, [UInt8]) throws -> Bool
    ) throws -> UInt64 {
        var (next, limit) = (first, 4)
        while true {
            let page: Etcd.RangeResponse
            do {
                var range = keys.turnRange(from: next, through: last, limit: limit)
                range.revision = revision.map { "\($0)" }
                // A long page that fails becomes a shorter one at once.
                page = try limit > 1 ? client.call("/v3/kv/range", range) : client.range(range)
            } catch {
                guard limit > 1, error.isPassing else { throw error }
                limit = max(1, limit / 8)
                continue
            }
            var largest = 1
            for pair in page.kvs ?? [] {
                let (version, value) = try turn(pair)
                guard try take(version, value) else { return 0 }
                largest = max(largest, value.count)
                next = version + 1
            }
            guard page.more == true else { return page.header.number }
            limit = max(1, min(Self.pageTurnsMax, Self.pageBytesMax / largest))
        }
    }

    func firstTurn(of range: Etcd.Range) throws(ClusterFault) -> (key: Version, value: [UInt8])? {
        guard let pair = try pairs(range).first else { return nil }
        return try turn(pair)
    }

    /// The commit's own version where no turn is so old.
    func turnKey(of version: Version) throws(ClusterFault) -> Version {
        try firstTurn(of: keys.turnRange(through: version, limit: 1, keysOnly: true, isNewestFirst: true))?.key
            ?? version
    }

    /// Nil without a turn.
    func oldestVersion() throws(ClusterFault) -> Version? {
        guard let (key, value) = try firstTurn(of: keys.turnRange(limit: 1)) else { return nil }
        return RecordedTurn.isBeginning(value) ? key : key - min(1, key)
    }

    private func turn(_ pair: Etcd.Pair) throws(ClusterFault) -> (Version, [UInt8]) {
        guard let version = keys.version(ofTurn: pair.key) else {
            throw ClusterFault("a key below \(keys.turns) in etcd is not that of a turn")
        }
        return (version, pair.bytes)
    }
}

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

struct ClusterTurns {
    struct Segment {
        var first: Version
        var link: ChainLink
        var value: [UInt8]
        var commits: ArraySlice<Commit>
    }

    /// etcd takes requests of 1.5 MiB by default.
    static let bytesMax = 1 << 20
    /// etcd takes 128 operations by default.
    static let segmentsMax = 100

    /// Each group is of one transaction; the cost is O(n) in the bytes of the commits.
    static func groups(_ commits: [Commit], after tip: ChainLink, with encoder: inout SegmentEncoder) -> [[Segment]] {
        var groups: [[Segment]] = []
        var (link, start, bytes) = (tip, 0, 0)
        while start < commits.count {
            let end = SegmentBody.end(of: commits, from: start)
            encoder.encode(commits, from: start, to: end)
            let (first, last) = (commits[start].version, commits[end - 1].version)
            let body = encoder.body.bytes
            link = ChainLink(
                version: last,
                hash: SegmentHash(after: link.hash, first: first, last: last, body: body.span.bytes))
            let segment = Segment(
                first: first, link: link, value: link.hash.bytes + body, commits: commits[start..<end])
            if groups.isEmpty || bytes + segment.value.count > bytesMax
                || groups[groups.count - 1].count == segmentsMax
            {
                groups.append([])
                bytes = 0
            }
            groups[groups.count - 1].append(segment)
            bytes += segment.value.count
            start = end
        }
        return groups
    }
}
