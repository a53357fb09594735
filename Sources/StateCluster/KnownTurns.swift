internal import DequeModule
internal import StateJournal
internal import StateStore

/// The newest turns of a history that a node knows: the tip of their chain, and the newest commits.
struct KnownTurns: Sendable {
    enum Fault: Error, Equatable {
        case gap
        case broken(String)
    }

    let epoch: Epoch
    private(set) var tip: ChainLink
    private(set) var tipKey: Version
    private var commits: Deque<Commit> = []
    private var commitsBytes = 0
    /// The idempotency keys that have not expired, and some that have, oldest first.
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

    static func value(_ hash: SegmentHash, _ body: [UInt8]) -> [UInt8] { hash.bytes + body }

    struct Verified {
        fileprivate let first: Version
        fileprivate let before: ChainLink
        let link: ChainLink
        let commits: [Commit]
    }

    /// Nil for a known turn.
    func tip(before first: Version, _ value: [UInt8]) throws(Fault) -> ChainLink? {
        guard first <= tip.version else {
            guard first == tip.version + 1 else { throw .gap }
            return tip
        }
        let hash = try Self.hash(value)
        guard first != tipKey || hash == tip.hash else {
            throw .broken("its hash has changed")
        }
        return nil
    }

    /// False where the tip has moved meanwhile: the turn was verified outside the caller's lock.
    mutating func take(_ turn: Verified) -> Bool {
        guard turn.before == tip else { return false }
        note(turn.commits, turn.first, turn.link)
        return true
    }

    mutating func take(_ first: Version, _ value: [UInt8]) throws(Fault) -> Bool {
        guard let tip = try tip(before: first, value) else { return false }
        return take(try Self.verify(first, value, after: tip, epoch))
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

    /// Reads a turn, and verifies that it follows a tip; the cost is that of its bytes.
    static func verify(
        _ first: Version, _ value: [UInt8], after tip: ChainLink, _ epoch: Epoch
    ) throws(Fault) -> Verified {
        let hash = try hash(value)
        do {
            return try value.withUnsafeBytes { bytes in
                let body = UnsafeRawBufferPointer(rebasing: bytes[16...])
                var decoder = try SegmentDecoder(body, first: first, epoch: epoch)
                let link = ChainLink(version: first + Version(decoder.count) - 1, hash: hash)
                guard SegmentHash(after: tip.hash, first: first, last: link.version, body: body.bytes) == hash else {
                    throw SegmentFault("its hash is wrong, or it does not follow version \(tip.version)")
                }
                let commits = try (0..<decoder.count).map { try decoder.commit(at: $0) }
                return Verified(first: first, before: tip, link: link, commits: commits)
            }
        } catch let fault as SegmentFault {
            throw .broken(fault.detail)
        } catch {
            throw .broken("\(error)")
        }
    }

    private static func hash(_ value: [UInt8]) throws(Fault) -> SegmentHash {
        guard let hash = SegmentHash(value.prefix(16)) else { throw .broken("it has \(value.count) bytes") }
        return hash
    }

    /// Whether this is the value of the key at which a history begins, which has no commits.
    static func isBeginning(_ value: some Swift.Collection) -> Bool { value.count == 16 }

    /// Reads a turn alone, for the past: only its own bytes are looked at, not the chain.
    static func commits(
        _ first: Version, _ value: [UInt8], _ epoch: Epoch, needsIDs: Bool = false
    ) throws(Fault) -> [Commit] {
        guard !isBeginning(value) else { return [] }
        do {
            return try value.dropFirst(16).withUnsafeBytes { body in
                var decoder = try SegmentDecoder(body, first: first, epoch: epoch)
                guard !needsIDs || decoder.hasClientIDs else { return [] }
                return try (0..<decoder.count).map { try decoder.commit(at: $0) }
            }
        } catch let fault as SegmentFault {
            throw .broken(fault.detail)
        } catch {
            throw .broken("\(error)")
        }
    }
}
