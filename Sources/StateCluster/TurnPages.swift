internal import FoundationEssentials
internal import StateJournal
internal import StateStore

/// Reads turns from etcd in pages of a few megabytes, whatever size each turn has.
///
/// A range request bounds the number of its turns, not their bytes, and one turn has up to a megabyte. So a page is as long as
/// the largest turn of the page before lets it be, and shorter where that was wrong and no etcd answered in time.
struct TurnPages {
    private let client: EtcdClient
    private let keys: ClusterKeys
    /// The revision of etcd that is read; nil for the newest.
    private let revision: UInt64?
    private let patience: Duration

    private static let bytesMax = 4 << 20
    /// So many of the largest turns are, in Base64, still an answer that the client takes.
    private static let countMax = 128

    init(_ client: EtcdClient, _ keys: ClusterKeys, revision: UInt64? = nil, patience: Duration = .zero) {
        (self.client, self.keys, self.revision, self.patience) = (client, keys, revision, patience)
    }

    @discardableResult
    func forEach(
        from first: Version, through last: Version = .max, _ take: (Version, [UInt8]) throws -> Bool
    ) throws -> UInt64 {
        let end = last == .max ? ClusterKeys.end(of: keys.turns) : keys.turn(last + 1)
        var (next, limit) = (first, 4)
        while true {
            let range = Etcd.Range(keys.turn(next), upTo: end, limit: limit, revision: revision)
            let page: Etcd.RangeResponse
            do {
                page = try client.ask("/v3/kv/range", range, patience: limit > 1 ? .zero : patience)
            } catch {
                guard limit > 1, error.isPassing else { throw error }
                limit = max(1, limit / 8)
                continue
            }
            var largest = 1
            for pair in page.kvs ?? [] {
                guard let version = keys.version(ofTurn: pair.key) else {
                    throw ClusterFault("a key below \(keys.turns) in etcd is not that of a turn")
                }
                let value = Array(pair.value ?? Data())
                guard try take(version, value) else { return 0 }
                largest = max(largest, value.count)
                next = version + 1
            }
            guard page.more == true else { return page.header.revision.flatMap { UInt64($0) } ?? 0 }
            limit = max(1, min(Self.countMax, Self.bytesMax / largest))
        }
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
        guard let hash = SegmentHash(value.prefix(16)) else {
            throw fault(first, "it has \(value.count) bytes")
        }
        if KnownTurns.isBeginning(value) {
            guard tip == nil else { throw fault(first, "a history begins there, and there are turns before") }
            tip = ChainLink(version: first, hash: hash)
            return []
        }
        do throws(KnownTurns.Fault) {
            guard let before = tip else {
                let commits = try KnownTurns.commits(first, value, epoch)
                tip = ChainLink(version: first + Version(commits.count) - 1, hash: hash)
                return commits
            }
            guard first == before.version + 1 else { throw .gap }
            let turn = try KnownTurns.verify(first, value, after: before, epoch)
            tip = turn.link
            return turn.commits
        } catch {
            switch error {
            case .gap: throw ClusterFault("the turn of version \((tip?.version ?? 0) + 1) in etcd is missing")
            case .broken(let detail): throw fault(first, detail)
            }
        }
    }

    private func fault(_ first: Version, _ detail: String) -> ClusterFault {
        ClusterFault("the turn of version \(first) in etcd is not what was recorded: \(detail)")
    }
}
