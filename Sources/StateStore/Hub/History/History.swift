internal import DequeModule

struct History: Sendable {
    private var commits: Deque<Commit> = []
    private var versions: [CommitName: Version] = [:]
    private(set) var weight = 0
    /// Snapshots, oldest first: a past state is made from the nearest snapshot before it and the patches since.
    private var checkpoints: Deque<Snapshot> = []
    /// About how many bytes of memory each snapshot has that the one behind it does not share.
    private var ownBytes: Deque<Int> = [0]
    /// A long patch may be of short values, and take so many times its bytes in memory.
    private static let memoryFactor = 8
    /// How many versions lie between two snapshots: so few that the kept commits always span a snapshot.
    private let checkpointInterval: Version
    private var weightSinceCheckpoint = 0
    private let countMax: Int
    private let weightMax: Int
    private(set) var base: Version

    init(beginningWith snapshot: Snapshot, countMax: Int, weightMax: Int) {
        base = snapshot.cursor.version
        checkpoints = [snapshot]
        checkpointInterval = Version(min(1024, max(1, countMax / 4)))
        self.countMax = countMax
        self.weightMax = weightMax
    }

    mutating func append(_ commit: Commit, dropping dropped: inout [Commit]) {
        commits.append(commit)
        weight += commit.weight
        weightSinceCheckpoint += commit.weight
        if !commit.clientIDs.isEmpty { for name in commit.names { versions[name] = commit.version } }
        while commits.count > countMax || (weight > weightMax && commits.count > 1) {
            let oldest = commits.removeFirst()
            weight -= oldest.weight
            base = oldest.version
            for name in oldest.names where versions[name] == oldest.version { versions[name] = nil }
            dropped.append(oldest)
        }
    }

    private var isHeavy: Bool { weightSinceCheckpoint > weightMax / 4 }

    private var lastCheckpoint: Version { checkpoints.last?.cursor.version ?? base }

    func isDue(at version: Version) -> Bool { isHeavy || version >= lastCheckpoint + checkpointInterval }

    mutating func note(_ snapshot: Snapshot) -> [Snapshot] {
        guard isDue(at: snapshot.cursor.version), let last = checkpoints.last else { return [] }
        if isHeavy {
            ownBytes[ownBytes.count - 1] = min(last.memoryBytes, weightSinceCheckpoint * Fork.treeFactor)
        }
        weightSinceCheckpoint = 0
        checkpoints.append(snapshot)
        ownBytes.append(0)
        // A snapshot before the first kept commit is of no use: commits after it are missing.
        var dropped: [Snapshot] = []
        while checkpoints.count > 1,
            checkpoints[0].cursor.version < base || ownBytes.reduce(0, +) / Self.memoryFactor > weightMax
        {
            dropped.append(checkpoints.removeFirst())
            ownBytes.removeFirst()
        }
        return dropped
    }

    var count: Int { commits.count }

    var oldestState: Version {
        checkpoints.first { $0.cursor.version >= base }?.cursor.version ?? base + Version(commits.count)
    }

    /// The commits run from the nearest snapshot at or before the version; nil if they are dropped.
    func path(to version: Version) -> (from: Snapshot, commits: [Commit])? {
        guard let start = checkpoints.last(where: { $0.cursor.version <= version }),
            let commits = commits(after: start.cursor.version)
        else { return nil }
        return (start, Array(commits.prefix(Int(version - start.cursor.version))))
    }

    func commits(after version: Version) -> Deque<Commit>.SubSequence? {
        guard version >= base else { return nil }
        return commits.dropFirst(Int(min(version - base, Version(commits.count))))
    }

    func commit(_ version: Version) -> Commit? {
        version > base ? commits(after: version - 1)?.first : nil
    }

    func commit(id: String, by subject: String? = nil) -> Commit? {
        versions[CommitName(id, by: subject)].flatMap { commit($0) }
    }
}
