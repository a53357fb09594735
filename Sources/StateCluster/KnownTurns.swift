internal import DequeModule
internal import StateJSON
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
        guard first <= tip.version else { return tip }
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

/// There is no index of IDs in etcd: each server makes its own of the turns that it takes, and of earlier ones where a
/// client asks; it has hashes, so the reader of a version compares the commit's ID.
struct KnownIDs: Sendable {
    private struct Generation {
        /// All IDs of commits behind this version are known, up to the next generation's.
        let since: Version
        var ids = IDVersions()
    }

    private var generations: [Generation]
    private let generationMax: Int
    private let generationsMax = 8
    /// Whether the history has no further IDs before ``since``, or they would be too many.
    private(set) var isWhole: Bool

    /// `countMax` is about how many names are known; each ID of a commit with a subject has two.
    init(since version: Version, countMax: Int = 1_000_000) {
        generations = [Generation(since: version)]
        generationMax = max(1, countMax / generationsMax)
        isWhole = version == 0
    }

    var since: Version { generations[0].since }

    mutating func insert(_ commit: Commit) {
        generations[generations.count - 1].ids.insert(commit)
        guard generations[generations.count - 1].ids.count >= generationMax else { return }
        generations.append(Generation(since: commit.version))
        trim()
    }

    mutating func insert(before past: KnownIDs, _ version: Version) {
        // Where IDs were forgotten meanwhile, what is older has to be, too.
        if since == version { generations = past.generations + generations }
        isWhole = true
        trim()
    }

    private mutating func trim() {
        guard generations.count > generationsMax else { return }
        generations.removeFirst(generations.count - generationsMax)
        isWhole = true
    }

    func versions(_ name: CommitName) -> [Version] {
        let hash = Int64(bitPattern: name.hash.low)
        return generations.reversed().flatMap { $0.ids.versions(hash) }
    }
}
