internal import StateStore

/// Decides when a snapshot is due: after 10,000 commits whose patches have as many bytes as the last snapshot.
///
/// That bounds the time of a start, and the bytes of snapshots stay below those of the commits.
struct SnapshotSchedule: Sendable {
    private var commits = 0
    private var bytes = 0
    private var snapshotBytes = 0
    private var isSaving = false

    /// Begins to count at what a recovery has found after the newest snapshot.
    mutating func begin(commits: Int, bytes: Int, snapshotBytes: Int) {
        (self.commits, self.bytes, self.snapshotBytes) = (commits, bytes, snapshotBytes)
    }

    /// Counts recorded commits.
    mutating func count(_ commits: [Commit]) {
        self.commits += commits.count
        for commit in commits { bytes += commit.patch.count }
    }

    /// Whether there are commits after the newest snapshot.
    var isBehind: Bool { commits > 0 }

    /// Returns whether a snapshot is due, and if so claims the right to save it.
    mutating func claim() -> Bool {
        guard !isSaving, commits >= 10_000, bytes >= snapshotBytes else { return false }
        isSaving = true
        commits = 0
        bytes = 0
        return true
    }

    /// Ends a claim with the size of the snapshot.
    mutating func finish(snapshotBytes: Int) {
        isSaving = false
        self.snapshotBytes = snapshotBytes
    }
}
