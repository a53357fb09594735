internal import Segments
internal import StateStore

/// The chain of the turns that are read one after the other: each is verified to follow the one before.
///
/// The first one is where a history begins, or a turn whose predecessor is deleted: of that one only the form is verified,
/// and by the turn behind it that its hash is the recorded one.
struct TurnChain {
    private let epoch: Epoch
    private(set) var tip: ChainLink?

    init(_ epoch: Epoch) { self.epoch = epoch }

    /// Takes the value of the next turn's key, and returns its commits.
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
