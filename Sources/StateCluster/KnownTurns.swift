internal import DequeModule
internal import StateJournal
internal import StateStore

struct KnownTurns: Sendable {
    let epoch: Epoch
    private(set) var tip: ChainLink
    private(set) var tipKey: Version
    private var commits: Deque<Commit> = []
    private var commitsBytes = 0
    /// Some may have expired; oldest first.
    private(set) var keys: Deque<KeyRecord>
    private(set) var sinceSnapshot = (commits: 0, bytes: 0)

    var ids: KnownIDs

    private static let commitsMax = 10_000
    private static let bytesMax = 16 << 20

    init(epoch: Epoch, tip: ChainLink, key: Version, keys: [KeyRecord] = []) {
        self.epoch = epoch
        self.tip = tip
        tipKey = key
        self.keys = Deque(keys)
        ids = KnownIDs(since: tip.version)
    }

    /// Nil for a known turn.
    func tip(before first: Version, _ value: [UInt8]) throws(ClusterFault) -> ChainLink? {
        guard first <= tip.version else {
            return tip
        }
        let hash = try RecordedTurn.hash(first, value)
        guard first != tipKey || hash == tip.hash else { throw RecordedTurn.fault(first, "its hash has changed") }
        return nil
    }

    /// False where the tip has moved meanwhile: the turn was verified outside the caller's lock.
    mutating func take(_ turn: RecordedTurn, after before: ChainLink) -> Bool {
        guard before == tip else { return false }
        note(turn.commits, turn.first, turn.link)
        return true
    }

    mutating func take(_ first: Version, _ value: [UInt8]) throws(ClusterFault) -> Bool {
        guard let tip = try tip(before: first, value) else { return false }
        return take(try RecordedTurn(first, value, after: tip, epoch), after: tip)
    }

    mutating func land(_ landed: [Commit], first: Version, _ link: ChainLink) {
        // The watch may have sent it first.
        if first > tip.version { note(landed, first, link) }
    }

    /// Nil if the first of the commits is not among the newest.
    func commits(after version: Version, limit: Int) -> [Commit]? {
        guard version < tip.version else { return [] }
        let start = tip.version - Version(commits.count)
        guard version >= start else { return nil }
        return Array(commits.dropFirst(Int(version - start)).prefix(limit))
    }

    mutating func noteSnapshot() { sinceSnapshot = (0, 0) }

    mutating func dropKeys(expiredAt time: Timestamp) {
        while let key = keys.first, key.expiry <= time { keys.removeFirst() }
    }

    private mutating func note(_ new: [Commit], _ first: Version, _ link: ChainLink) {
        (tip, tipKey) = (link, first)
        for commit in new {
            commits.append(commit)
            ids.insert(commit)
            commitsBytes += Self.bytes(commit)
            sinceSnapshot = (sinceSnapshot.commits + 1, sinceSnapshot.bytes + commit.patch.count)
            if let key = commit.idempotency { keys.append(key) }
        }
        while commits.count > Self.commitsMax || commitsBytes > Self.bytesMax, commits.count > 1 {
            commitsBytes -= Self.bytes(commits.removeFirst())
        }
    }

    private static func bytes(_ commit: Commit) -> Int { commit.action.count + commit.patch.count }
}
