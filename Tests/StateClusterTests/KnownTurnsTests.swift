import StateJournal
import StateStore
import TestSupport
import Testing

@testable import StateCluster

@Suite("Turns in etcd")
struct KnownTurnsTests {
    let epoch = Epoch("aaaaaaaaaaaaaaaa") ?? .random()

    private var beginning: KnownTurns {
        KnownTurns(epoch: epoch, tip: ChainLink(beginning: epoch, version: 0), key: 0)
    }

    /// The segments of commits, in the transactions that append them.
    private func groups(
        _ commits: [Commit], after tip: ChainLink? = nil, writer: UInt64 = 1
    ) -> [[ClusterTurns.Segment]] {
        var encoder = SegmentEncoder(epoch: epoch, fence: writer)
        return ClusterTurns.groups(commits, after: tip ?? ChainLink(beginning: epoch, version: 0), with: &encoder)
    }

    @Test("a node that takes the turns of another has its commits, in order and once", arguments: 1...10)
    func follow(seed: UInt64) throws {
        var maker = CommitMaker(seed: seed, epoch: epoch)
        let commits = maker.commits(1...700)
        var known = beginning
        for segment in groups(commits).joined() {
            #expect(try known.take(segment.first, segment.value))
            #expect(try !known.take(segment.first, segment.value))
        }

        let found = try #require(known.commits(after: 0, limit: .max))
        #expect(found.map(Content.init) == commits.map(Content.init))
        #expect(known.tip.version == 700)
        #expect(known.commits(after: 690, limit: 3)?.map(\.version) == [691, 692, 693])
        #expect(known.commits(after: 700, limit: 3)?.isEmpty == true)
    }

    @Test("a turn that does not follow is refused: after a gap, damaged, or of another chain")
    func refusals() throws {
        let segments = Array(groups((1...600).map { .setting($0) }).joined())
        var known = beginning
        #expect(throws: ClusterFault.self) { try known.take(segments[1].first, segments[1].value) }
        _ = try known.take(segments[0].first, segments[0].value)
        for index in [0, 16, segments[1].value.count - 1] {
            var damaged = segments[1].value
            damaged[index] ^= 1
            #expect(throws: ClusterFault.self) { try known.take(segments[1].first, damaged) }
        }
        #expect(throws: ClusterFault.self) { try known.take(segments[1].first, []) }
        // The newest turn cannot become another one.
        let other = Array(groups((1...600).map { .setting($0) }, writer: 2).joined())
        #expect(throws: ClusterFault.self) { try known.take(other[0].first, other[0].value) }
        #expect(throws: ClusterFault.self) { try known.take(other[1].first, other[1].value) }
        #expect(known.tip == segments[0].link)
        _ = try known.take(segments[1].first, segments[1].value)
    }

    @Test("a turn of this node counts once, whether its append or the watch tells of it first")
    func own() throws {
        let segment = groups([.setting(1), .setting(2)])[0][0]
        var first = beginning
        first.land(Array(segment.commits), first: segment.first, segment.link)
        #expect(try !first.take(segment.first, segment.value))
        var second = beginning
        #expect(try second.take(segment.first, segment.value))
        second.land(Array(segment.commits), first: segment.first, segment.link)
        for known in [first, second] {
            #expect(known.tip == segment.link)
            #expect(known.commits(after: 0, limit: 10)?.map(\.version) == [1, 2])
        }
    }

    @Test("expired keys are dropped without a snapshot, up to the first that has not expired")
    func expiredKeys() throws {
        var known = beginning
        let commits = [10, 20, 15, 30].enumerated().map { index, expiry in
            Commit.setting(
                Version(index + 1),
                key: KeyRecord(
                    key: IdempotencyKey("\(expiry)"), fingerprint: "f", version: Version(index + 1), id: "i",
                    isChange: true, expiry: Timestamp(milliseconds: Int64(expiry))))
        }
        for segment in groups(commits).joined() { _ = try known.take(segment.first, segment.value) }

        var kept: [[Int64]] = []
        for time in [Int64(9), 10, 19, 20] {
            known.dropKeys(expiredAt: Timestamp(milliseconds: time))
            kept.append(known.keys.map(\.expiry.milliseconds))
        }
        #expect(kept == [[10, 20, 15, 30], [20, 15, 30], [20, 15, 30], [30]])
    }

    @Test("equal commits of two nodes are different turns")
    func writers() {
        let (one, other) = (groups([.setting(1)], writer: 1), groups([.setting(1)], writer: 2))
        #expect(one[0][0].value != other[0][0].value)
    }

    @Test("a long turn is several transactions, none above etcd's limits, and the chain goes through them")
    func split() {
        let large = (1...40).map { version in
            Commit(
                version: version, time: Timestamp(milliseconds: 0), id: "x", types: ["t"],
                action: (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* Int(version) &* 31) }, patch: [])
        }
        let many = groups((1...60_000).map { .setting($0) })
        for group in groups(large) + many {
            #expect(group.count <= ClusterTurns.segmentsMax)
            #expect(group.reduce(0) { $0 + $1.value.count } <= ClusterTurns.bytesMax)
        }
        let segments = many.joined().map { ($0.first, $0.link.version) }
        #expect(zip(segments, segments.dropFirst()).allSatisfy { $0.1 + 1 == $1.0 })
        #expect(segments.last?.1 == 60_000)
    }

    @Test("keys have the order of the versions, and name them")
    func keys() {
        let keys = ClusterKeys(name: "shops/one")
        let versions: [Version] = [0, 1, 9, 10, 99, 100, 12_345, Version(Int64.max)]
        #expect(versions.map { keys.version(ofTurn: Array(keys.turn($0).utf8)) } == versions)
        #expect(versions.map(keys.turn) == versions.map(keys.turn).sorted())
        #expect(keys.version(ofTurn: Array(keys.snapshot(1).utf8)) == nil)
        #expect(keys.version(ofTurn: Array(keys.turn(Version(Int64.max) + 1).utf8)) == nil)
        #expect(keys.turn(.max) < ClusterKeys.end(of: keys.turns))
    }

    @Test(
        "an address has a scheme, hosts with ports and a name",
        arguments: [
            ("etcd://a:1,b:65535/shop", ["http://a:1", "http://b:65535"]),
            ("etcds://10.0.0.1:2379/a/b-c_d.e", ["https://10.0.0.1:2379"]),
            ("etcd://[::1]:2379/x", ["http://[::1]:2379"]),
            ("etcd://a:1", nil), ("etcd://a:1/", nil), ("etcd://a/x", nil), ("etcd://:1/x", nil),
            ("etcd://a:1,/x", nil),
            ("etcd://a:70000/x", nil), ("etcd://a:1/x y", nil), ("etcd://u@a:1/x", nil), ("http://a:1/x", nil),
            ("etcd://a:1/x/", nil), ("./data", nil),
        ] as [(String, [String]?)])
    func address(text: String, endpoints: [String]?) {
        #expect(ClusterAddress(text)?.endpoints == endpoints)
    }
}
