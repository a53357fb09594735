internal import FoundationEssentials
internal import StateJournal
internal import StateStore

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
