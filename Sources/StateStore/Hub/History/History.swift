internal import DequeModule

/// The newest commits, bounded in number and in bytes.
struct History: Sendable {
    private var commits: Deque<Commit> = []
    private var versions: [String: Version] = [:]
    private var weight = 0
    /// Snapshots on the way, oldest first: a past state is the nearest one before it and the patches since.
    private var checkpoints: Deque<any AnySnapshot> = []
    /// So close that some are always within the commits that are kept.
    private let checkpointInterval: Version
    private var weightSinceCheckpoint = 0
    private let countMax: Int
    private let weightMax: Int
    /// The version after which the first kept commit comes.
    private(set) var base: Version

    init(beginningWith snapshot: any AnySnapshot, countMax: Int, weightMax: Int) {
        base = snapshot.cursor.version
        checkpoints = [snapshot]
        checkpointInterval = Version(min(1024, max(1, countMax / 4)))
        self.countMax = countMax
        self.weightMax = weightMax
    }

    mutating func append(_ commit: Commit) {
        commits.append(commit)
        weight += commit.weight
        weightSinceCheckpoint += commit.weight
        for id in commit.clientIDs { versions[id] = commit.version }
        while commits.count > countMax || (weight > weightMax && commits.count > 1) {
            let oldest = commits.removeFirst()
            weight -= oldest.weight
            base = oldest.version
            for id in oldest.clientIDs where versions[id] == oldest.version { versions[id] = nil }
        }
    }

    /// Notes a state on the way.
    mutating func note(_ snapshot: any AnySnapshot) {
        guard let last = checkpoints.last,
            snapshot.cursor.version >= last.cursor.version + checkpointInterval || weightSinceCheckpoint > weightMax / 4
        else { return }
        weightSinceCheckpoint = 0
        checkpoints.append(snapshot)
        // The commits between a checkpoint and the next one that can be reached are needed too.
        while checkpoints.count > 1, checkpoints[0].cursor.version < base { checkpoints.removeFirst() }
    }

    /// The oldest version that ``path(to:)`` reaches.
    var oldestState: Version {
        checkpoints.first { $0.cursor.version >= base }?.cursor.version ?? base + Version(commits.count)
    }

    /// The nearest state at or before a version and the commits from there to it, or nil where they are gone.
    func path(to version: Version) -> (from: any AnySnapshot, commits: [Commit])? {
        guard let start = checkpoints.last(where: { $0.cursor.version <= version }),
            let commits = commits(after: start.cursor.version)
        else { return nil }
        return (start, Array(commits.prefix(Int(version - start.cursor.version))))
    }

    /// The commits after a version, or nil when some of them are no longer here.
    func commits(after version: Version) -> Deque<Commit>.SubSequence? {
        guard version >= base else { return nil }
        return commits.dropFirst(Int(min(version - base, Version(commits.count))))
    }

    /// The commit that made a version.
    func commit(_ version: Version) -> Commit? {
        version > base ? commits(after: version - 1)?.first : nil
    }

    /// The commit of a client's own ID; the newest where the ID was used again.
    func commit(id: String) -> Commit? { versions[id].flatMap { commit($0) } }
}
