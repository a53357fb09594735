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
        let isOld = times.map { $0.last.milliseconds &- $0.first.milliseconds >= secondsMax * 250 } ?? false
        guard !isSaving, isMany || isOld || bytes >= max(bytesMax / 4, snapshotBytes) else { return false }
        isSaving = true
        commits = 0
        patchBytes = 0
        bytes = 0
        times = nil
        return true
    }

    mutating func finish(snapshotBytes: Int) {
        isSaving = false
        self.snapshotBytes = snapshotBytes
    }
}

/// The choice of the snapshots that a journal drops when it has too many.
///
/// The oldest snapshot that all kept commits follow stays, so that past versions, exports and verifications begin
/// there, however often the server was stopped since. Between it and the two newest ones, the snapshots stay that
/// divide the history most evenly.
struct SnapshotRetention {
    var countMax: Int
    /// The version up to which the commits exceed their number.
    var surplus: Version
    /// The version up to which the commits exceed their bytes; only the two newest snapshots may be older.
    var heavy: Version

    /// The snapshots to drop.
    func dropped(of versions: [Version]) -> [Version] {
        var kept = versions.dropLast(2).filter { $0 >= heavy } + versions.suffix(2)
        while kept.count > max(countMax, 2) { kept.remove(at: leastUseful(of: kept)) }
        return versions.filter { !kept.contains($0) }
    }

    private func leastUseful(of kept: [Version]) -> Int {
        let middle = kept.indices.dropFirst().dropLast(2)
        guard kept[0] >= surplus,
            let index = middle.min(by: { kept[$0 + 1] - kept[$0 - 1] < kept[$1 + 1] - kept[$1 - 1] })
        else { return 0 }
        return index
    }
}
