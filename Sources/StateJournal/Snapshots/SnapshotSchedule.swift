internal import StateStore

/// Decides when a snapshot is due: after 10,000 commits whose patches have as many bytes as the last snapshot, after
/// commits with a quarter of the bytes that the journal keeps, or of a quarter of the time for which it keeps commits.
///
/// That bounds the time of a start, and the bytes of snapshots stay below those of the commits.
struct SnapshotSchedule: Sendable {
    let bytesMax: Int
    /// For how many seconds the journal keeps a commit; 0 for no limit.
    let secondsMax: Int
    private var commits = 0
    private var patchBytes = 0
    private var bytes = 0
    private var snapshotBytes = 0
    private var isSaving = false
    /// The times of the first and the last commit since the newest snapshot.
    private var times: (first: Timestamp, last: Timestamp)?

    init(bytesMax: Int, secondsMax: Int = 0) {
        self.bytesMax = bytesMax
        self.secondsMax = secondsMax
    }

    /// Begins to count at what a recovery has found after the newest snapshot.
    mutating func begin(commits: Int, patchBytes: Int, bytes: Int, snapshotBytes: Int) {
        (self.commits, self.patchBytes, self.bytes) = (commits, patchBytes, bytes)
        self.snapshotBytes = snapshotBytes
    }

    mutating func count(_ commits: [Commit]) {
        self.commits += commits.count
        if secondsMax > 0, let first = commits.first, let last = commits.last {
            times = (times?.first ?? first.time, last.time)
        }
        for commit in commits {
            patchBytes += commit.patch.count
            bytes += commit.action.count + commit.patch.count
        }
    }

    var isBehind: Bool { commits > 0 }

    /// Returns whether a snapshot is due, and if so claims the right to save it.
    mutating func claim() -> Bool {
        let isMany = commits >= 10_000 && patchBytes >= snapshotBytes
        let isOld = times.map { $0.last.milliseconds - $0.first.milliseconds >= secondsMax * 250 } ?? false
        guard !isSaving, isMany || isOld || bytes >= max(bytesMax / 4, snapshotBytes) else { return false }
        isSaving = true
        commits = 0
        patchBytes = 0
        bytes = 0
        times = nil
        return true
    }

    /// Ends a claim with the size of the snapshot.
    mutating func finish(snapshotBytes: Int) {
        isSaving = false
        self.snapshotBytes = snapshotBytes
    }
}
