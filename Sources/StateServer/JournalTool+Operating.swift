internal import StateJournal
internal import StateStore

/// What an operator does with a journal.
extension JournalTool {
    /// What a journal has, for people and programs.
    struct Facts: Sendable, Encodable {
        /// The versions between which the journal has something.
        struct Versions: Sendable, Encodable {
            /// The oldest version whose state can be read.
            var oldestState: Version
            /// The version of the oldest commit; one above `latest` where there is none.
            var oldestCommit: Version
            /// The version of the last commit.
            var latest: Version
        }

        /// A saved state.
        struct Snapshot: Sendable, Encodable {
            /// Its version.
            var version: Version
            /// The size of its JSON.
            var bytes: Int
        }

        /// What the fence beside the journal says.
        struct Fence: Sendable, Encodable {
            /// `open`, `closed`, `missing` or `damaged`; open is also the fence of a server that was killed.
            var stage: String
            /// The newest version that was acknowledged.
            var version: Version?
            /// How often the journal has been opened for writing.
            var term: UInt64?
        }

        /// The number of the file's format; of an older one only the files and the fence are known.
        var format: Int
        /// The epoch of the history.
        var epoch: String?
        /// The versions.
        var versions: Versions?
        /// How many commits the journal has.
        var commits: Int?
        /// The snapshots, oldest first.
        var snapshots: [Snapshot]?
        /// How many idempotency keys have not expired.
        var keys: Int?
        /// The fence.
        var fence: Fence
        /// The bytes of each file.
        var files: [String: Int]
        /// Whether a server, or another process that writes, has the journal open.
        var isInUse: Bool
    }

    /// Reads what the journal has, and verifies nothing; O(n) in the number of keys.
    ///
    /// - Throws: `JournalError` where there is no journal, or it cannot be read.
    func facts() throws -> Facts {
        let facts = try JournalFacts(directory: directory, at: .now())
        let history = facts.history
        return Facts(
            format: facts.format, epoch: history?.epoch.text,
            versions: history.map {
                .init(
                    oldestState: $0.snapshots.first?.version ?? $0.latest, oldestCommit: $0.oldest + 1,
                    latest: $0.latest)
            },
            commits: history.map { Int($0.latest - min($0.oldest, $0.latest)) },
            snapshots: history.map { $0.snapshots.map { .init(version: $0.version, bytes: $0.bytes) } },
            keys: history?.keysCount, fence: .init(facts.fence),
            files: Dictionary(uniqueKeysWithValues: facts.files.map { ($0.name, $0.bytes) }), isInUse: facts.isInUse)
    }

    /// Copies the journal into a directory without one, in the same epoch, and verifies the copy.
    ///
    /// The copy is of one instant, and has every commit that was acknowledged before. It is there whole or not at all.
    ///
    /// - Throws: `JournalError`.
    func backup(to destination: String) throws -> Span {
        Span(try JournalCopy.make(of: directory, in: destination))
    }

    /// Which epoch a restored journal has.
    enum RestoredEpoch: Sendable {
        /// A new one: clients find out that versions after the backup are gone.
        case new
        /// That of the backup: only right where no client has seen a later version.
        case same
    }

    /// Makes the journal of a backup.
    ///
    /// The states are byte by byte those of the backup. The journal is there whole or not at all.
    ///
    /// - Throws: `JournalError` where the backup is damaged or has no fence, the directory has a journal, or a server runs
    ///   on the backup that is to keep its epoch.
    func restore(from backup: String, _ epoch: RestoredEpoch = .new) throws -> Span {
        switch epoch {
        case .new: return Span(try JournalCopy.renew(backup, in: directory))
        case .same:
            try JournalCopy.refuseInUse(backup)
            return Span(try JournalCopy.make(of: backup, in: directory))
        }
    }

    /// What a compaction has done.
    struct Compaction: Sendable {
        /// The bytes of the file before and after.
        var bytes: (before: Int, after: Int)
        /// The number of commits that were dropped.
        var commitsDropped: Int
    }

    /// Drops what the settings of retention allow, and gives the space back to the file system.
    ///
    /// - Throws: `JournalError` where a server runs, or the journal is damaged; the journal is then as before.
    func compact() throws -> Compaction {
        let done = try SQLiteJournal.compact(directory: directory, retention: settings.retention, at: .now())
        return Compaction(
            bytes: (done.bytesBefore, done.bytesAfter), commitsDropped: Int(done.oldestAfter - done.oldestBefore))
    }
}

extension JournalTool.Span {
    fileprivate init(_ copy: JournalCopy) {
        self.init(epoch: copy.epoch.text, start: copy.oldest, end: copy.latest)
    }
}

extension JournalTool.Facts.Fence {
    fileprivate init(_ facts: JournalFacts.FenceFacts) {
        switch facts {
        case .missing: self.init(stage: "missing")
        case .damaged: self.init(stage: "damaged")
        case .whole(let version, let term, let isClosed, _):
            self.init(stage: isClosed ? "closed" : "open", version: version, term: term)
        }
    }
}
