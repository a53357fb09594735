internal import GRDB
internal import Glibc
package import StateStore

/// Of a journal in a directory or in etcd; nil is what the other one has.
package struct JournalFacts: Sendable, Encodable {
    package struct FenceFacts: Sendable, Encodable {
        /// `open`, `closed`, `missing` or `damaged`; open is also the fence of a server that was killed.
        package var stage: String
        package var version: Version?
        package var term: UInt64?
    }

    package struct Turns: Sendable, Encodable {
        package var count = 0
        package var bytes = 0

        package init() {}
    }

    /// Of an older format only the files and the fence are known.
    package var format = 0
    package var epoch: String?
    package var domain: String?
    package var versions: HistoryVersions?
    package var commits: Int?
    package var snapshots: [SnapshotSize]?
    package var keys: Int?
    package var fence: FenceFacts?
    package var files: [String: Int]?
    package var isInUse: Bool?
    package var turns: Turns?
    package var revision: UInt64?
    package var etcds: EtcdCount?

    package init() {}

    /// Verifies and changes nothing, also while a server writes; O(n) in the keys, which may have expired at `time`.
    package init(directory path: String, at time: Timestamp) throws {
        try JournalReader.check(path)
        let directory = DataDirectory(path: path)
        isInUse = DirectoryLock.holder(of: directory) != nil
        switch try Fence.read(directory) {
        case .missing: fence = FenceFacts(stage: "missing")
        case .damaged: fence = FenceFacts(stage: "damaged")
        case .record(let record, _):
            fence = FenceFacts(
                stage: record.stage == .closed ? "closed" : "open", version: record.link.version, term: record.term)
        }
        let names = ["journal.sqlite"] + DataDirectory.companions.map { "journal.sqlite" + $0 } + ["fence"]
        files = Dictionary(
            uniqueKeysWithValues: names.compactMap { name in directory.size(path + "/" + name).map { (name, $0) } })
        do {
            self = try Inspection.open(directory.journal).read { [self] db in
                var facts = self
                facts.format = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
                if facts.format == JournalSchema.version { try facts.readHistory(db, directory.journal, at: time) }
                return facts
            }
        } catch {
            throw JournalError("read", directory.journal, error)
        }
    }

    private mutating func readHistory(_ db: Database, _ path: String, at time: Timestamp) throws {
        let rows = try SegmentRows(db, path)
        epoch = rows.epoch.text
        domain = try JournalSchema.domain(db)?.name
        let (oldest, latest) = (try rows.oldest(db), try rows.latestVersion(db))
        let saved = try Row.fetchAll(
            db, sql: "SELECT version, length(state) AS bytes FROM snapshots ORDER BY version"
        ).compactMap { row in
            Version(value: row["version"]).map {
                SnapshotSize(version: $0, bytes: Int.fromDatabaseValue(row["bytes"]) ?? 0)
            }
        }
        snapshots = saved
        versions = HistoryVersions(
            oldestState: saved.first?.version ?? latest, oldestCommit: oldest + 1, latest: latest)
        commits = Int(latest - min(oldest, latest))
        var count = 0
        try rows.readKeys(db) { _, keys in count += (keys ?? []).count { $0.expiry > time } }
        keys = count
    }
}

package struct EtcdCount: Sendable, Encodable, CustomStringConvertible {
    package var answering = 0
    package let all: Int

    package init(all: Int) { self.all = all }

    package var description: String { "\(answering) of \(all) etcds answer" }
}

package struct DirectoryFigures: Sendable {
    /// Nil where the file system does not say.
    package let freeBytes: Int?
    /// Seconds since 1970; nil where no backup is known.
    package let backupTime: Int?

    package init(_ path: String) {
        freeBytes = DataDirectory(path: path).room
        var status = stat()
        backupTime = stat(Self.mark(in: path), &status) == 0 ? status.st_mtim.tv_sec : nil
    }

    /// Where the directory cannot be written, the time stays: the backup is none the worse.
    package static func noteBackup(of path: String) {
        let descriptor = open(mark(in: path), O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return }
        futimens(descriptor, nil)
        close(descriptor)
    }

    private static func mark(in path: String) -> String { path + "/backup" }
}
