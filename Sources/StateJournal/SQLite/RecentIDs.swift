internal import StateJSON
internal import StateStore

/// The clients' IDs of the newest commits, which the table of IDs does not have yet.
///
/// A row of that table costs more than the rest of a commit when it is written alone, because each goes to another page.
/// The IDs therefore wait here, and are written in the order of their hashes when they are many. They are not lost with the
/// process, because the segments have them.
struct RecentIDs {
    /// An ID's hash and the version of its commit, in the order of the table.
    struct Entry: Hashable, Comparable {
        var hash: Int64
        var version: Version

        static func < (left: Entry, right: Entry) -> Bool {
            left.hash != right.hash ? left.hash < right.hash : left.version < right.version
        }
    }

    /// How many IDs, or commits, wait at most before the table takes them: it bounds memory, and the time of a start.
    static let waitingMax = 65_536

    private(set) var indexed: Version
    private var latest: Version
    private var newest: [Int64: Version] = [:]
    /// Entries whose hash a newer commit has, too: a client has used an ID again, or two IDs have one hash.
    private var older: [Entry] = []
    private var isWriting = false
    /// The newest version when the table could not be written.
    private var failed: Version?

    init(indexed: Version) {
        self.indexed = indexed
        latest = indexed
    }

    static func hash(of id: String, by subject: String? = nil) -> Int64 {
        Int64(bitPattern: CommitName(id, by: subject).hash.low)
    }

    static func entries(of commit: Commit) -> [Entry] {
        commit.names.map { Entry(hash: Int64(bitPattern: $0.hash.low), version: commit.version) }
    }

    mutating func insert(_ commits: [Commit]) {
        for commit in commits {
            latest = commit.version
            for entry in Self.entries(of: commit) { insert(entry) }
        }
    }

    private mutating func insert(_ entry: Entry) {
        guard let before = newest.updateValue(entry.version, forKey: entry.hash), before != entry.version else {
            return
        }
        older.append(Entry(hash: entry.hash, version: before))
    }

    mutating func skip(to version: Version) { latest = version }

    /// Whether the table shall take the entries now; after a failure, when as many commits have come again.
    var isDue: Bool {
        guard !isWriting else { return false }
        if let failed, latest - failed < Version(Self.waitingMax) { return false }
        return newest.count + older.count >= Self.waitingMax || latest - indexed >= Version(Self.waitingMax)
    }

    /// The versions whose commits may have an ID, newest first.
    func versions(_ hash: Int64) -> [Version] {
        guard let version = newest[hash] else { return [] }
        guard !older.isEmpty else { return [version] }
        return [version] + older.filter { $0.hash == hash }.map(\.version).sorted(by: >)
    }

    /// Takes the right to write all entries to the table if that is due; they stay here meanwhile.
    mutating func claim() -> (entries: [Entry], through: Version)? {
        guard isDue else { return nil }
        isWriting = true
        return (newest.map { Entry(hash: $0.key, version: $0.value) } + older, latest)
    }

    mutating func finish(through version: Version) {
        isWriting = false
        failed = nil
        indexed = version
        newest = newest.filter { $0.value > version }
        older.removeAll { $0.version <= version }
    }

    /// Gives the right back after a failure; the entries stay.
    mutating func abandon() {
        isWriting = false
        failed = latest
    }
}
