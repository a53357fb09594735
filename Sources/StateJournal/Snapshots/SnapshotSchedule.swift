internal import Dispatch
internal import FoundationEssentials
internal import GRDB
package import StateStore
internal import Synchronization

/// Due after 10,000 commits whose patches have the bytes of the last snapshot, or a quarter of the bytes or time that
/// the journal keeps: that bounds the time of a start, and keeps snapshots below the commits.
struct SnapshotSchedule: Sendable {
    private let retention: JournalRetention
    private var commits = 0
    private var patchBytes = 0
    private var bytes = 0
    private var snapshotBytes = 0
    private var isSaving = false
    private var times: (first: Timestamp, last: Timestamp)?

    init(_ retention: JournalRetention) { self.retention = retention }

    mutating func begin(commits: Int, patchBytes: Int, bytes: Int, snapshotBytes: Int) {
        (self.commits, self.patchBytes, self.bytes, self.snapshotBytes) = (commits, patchBytes, bytes, snapshotBytes)
    }

    mutating func count(_ commits: [Commit]) {
        self.commits += commits.count
        if retention.secondsMax > 0, let first = commits.first, let last = commits.last {
            times = (times?.first ?? first.time, last.time)
        }
        for commit in commits {
            patchBytes += commit.patch.count
            bytes += commit.action.count + commit.patch.count
        }
    }

    var isBehind: Bool { commits > 0 }

    mutating func claim() -> Bool {
        let isMany = commits >= 10_000 && patchBytes >= snapshotBytes
        let isOld = times.map { $0.last.milliseconds &- $0.first.milliseconds >= retention.secondsMax * 250 } ?? false
        guard !isSaving, isMany || isOld || bytes >= max(retention.bytesMax / 4, snapshotBytes) else { return false }
        (isSaving, commits, patchBytes, bytes, times) = (true, 0, 0, 0, nil)
        return true
    }

    mutating func finish(snapshotBytes: Int) {
        isSaving = false
        self.snapshotBytes = snapshotBytes
    }
}

/// The oldest snapshot that all kept commits follow stays, so that past versions, exports and verifications begin
/// there, and between it and the two newest ones, those that divide the history most evenly.
struct SnapshotRetention {
    var countMax: Int
    /// The commits up to here exceed their number.
    var surplus: Version
    /// The commits up to here exceed their bytes; only the two newest snapshots may be older.
    var heavy: Version

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

extension SQLiteJournal {
    package func offer(_ snapshot: Snapshot, saved: @escaping @Sendable (Version) -> Void) {
        guard claimSnapshot() else { return }
        background.async { [self] in
            do {
                saved(try saveSnapshot(snapshot.saved(), version: snapshot.cursor.version))
            } catch {
                report(.snapshotNotSaved(reason: "\(error)"))
            }
        }
    }

    func claimSnapshot() -> Bool { snapshots.withLock { $0.claim() } }

    /// Follows ``claimSnapshot()``, and returns the oldest version after which all commits stay; an error loses none,
    /// and the next start takes longer.
    package func saveSnapshot(_ state: [UInt8], version: Version) throws -> Version {
        defer { snapshots.withLock { $0.finish(snapshotBytes: state.count) } }
        do {
            // Retention deletes no segment that the fence on the disk is behind.
            try fence.sync()
            return try writing { db in
                try rows.insertSnapshot(db, version: version, state: state)
                try noteSize(db, at: version)
                return try prune(db, latest: version)
            }
        } catch { throw JournalError("write a snapshot to", path, error) }
    }

    private func noteSize(_ db: Database, at version: Version) throws {
        let last = try Version(db, "SELECT max(version) FROM sizes")
        let bytes = try rows.segmentsBytes(db, after: last ?? rows.oldest(db))
        try db.execute(sql: "INSERT OR REPLACE INTO sizes VALUES (?, ?)", arguments: [Int64(version), bytes])
    }

    func prune(_ db: Database, latest: Version) throws -> Version {
        let unkept = max(try versionBeyondBytesMax(db), try versionBeyondSecondsMax(db, at: .now()))
        let surplus = latest > Version(retention.commitsMax) ? latest - Version(retention.commitsMax) : 0
        let snapshots = SnapshotRetention(countMax: retention.snapshotsMax, surplus: surplus, heavy: unkept)
        for version in snapshots.dropped(of: try rows.snapshotVersions(db, through: .max)) {
            try rows.deleteSnapshot(db, version)
        }
        if let time = withHistoryTime({ $0.latest }) {
            try db.execute(sql: "DELETE FROM keys WHERE expiry < ?", arguments: [time.milliseconds])
        }
        // The commits after the oldest snapshot stay, so that a start can use it when the newer ones are damaged.
        let kept = try rows.oldestState(db)
        let base = try rows.base(db)
        guard let link = try rows.link(db, endingAtOrBefore: min(kept, max(surplus, unkept))),
            link.version > base.version
        else { return base.version }
        try db.execute(sql: "DELETE FROM segments WHERE first <= ?", arguments: [Int64(link.version)])
        try db.execute(sql: "DELETE FROM sizes WHERE version <= ?", arguments: [Int64(link.version)])
        try JournalSchema.setBase(db, link)
        return link.version
    }

    /// 0 for none.
    private func versionBeyondBytesMax(_ db: Database) throws -> Version {
        // More than the file has is damage, which must not delete anything.
        let most = try StartCheck.fileBytes(db)
        var bytes = 0
        for row in try Row.fetchAll(db, sql: "SELECT version, bytes FROM sizes ORDER BY version DESC") {
            guard let version = Version(value: row["version"]), let part = Int.fromDatabaseValue(row["bytes"]),
                0...most ~= part
            else { continue }
            bytes += part
            if bytes > retention.bytesMax { return version }
        }
        return 0
    }
    /// 0 for none; reads O(log n) commits, as if their times were in order: where a clock was set back, it may find an
    /// older version.
    private func versionBeyondSecondsMax(_ db: Database, at now: Timestamp) throws -> Version {
        guard retention.secondsMax > 0 else { return 0 }
        let limit = now.advanced(by: .seconds(-retention.secondsMax))
        var (low, high) = (try rows.oldest(db), try rows.tip(db).version)
        while low < high {
            let middle = high - (high - low) / 2
            // A damaged commit must neither delete anything nor keep a snapshot from being saved.
            guard let commit = try? rows.commit(db, middle) else { return 0 }
            if commit.time < limit { low = middle } else { high = middle - 1 }
        }
        return low
    }
}
