internal import GRDB
internal import Segments
internal import StateJSON
package import StateStore

/// The commits that an operation on a journal has read or made.
package struct JournalSpan: Sendable {
    package let epoch: Epoch
    /// The version of the first state, before the first commit.
    package let start: Version
    /// The version of the last commit.
    package let end: Version

    package init(epoch: Epoch, start: Version, end: Version) {
        (self.epoch, self.start, self.end) = (epoch, start, end)
    }

    /// The number of commits.
    package var commitsCount: Int { Int(end - start) }
}

/// A copy of a journal in another directory: a backup, or what is made of one.
///
/// It appears in the directory whole or not at all, after it has been verified, with a fence of its own.
package enum JournalCopy {
    /// Copies a journal as it is, in the same epoch; a server may be writing to it.
    ///
    /// The copy has every commit that was acknowledged before this call. SQLite copies all pages in one read transaction, so
    /// that appends go on and the copy is of one instant; the WAL of the journal grows meanwhile. O(n) in the size of the file.
    ///
    /// - Throws: ``JournalError`` where there is no journal, it is damaged or shorter than its fence says, or the
    ///   destination has a journal already. There is no copy then, and no directory that was made for it.
    package static func make(of path: String, in destination: String) throws -> JournalSpan {
        let reader = try JournalReader(directory: path)
        let place = try NewDirectory(destination)
        var isMade = false
        // This runs behind the removal of the draft: a directory that was made for the copy goes with it.
        defer { if isMade { place.lock.release() } else { place.lock.undo() } }
        let directory = place.directory
        try directory.removeDraft()
        try directory.touch(directory.draft)
        // If a file cannot be removed, the next copy removes it.
        defer { try? directory.removeDraft() }
        do {
            let draft = try DatabaseQueue(path: directory.draft)
            let (base, tip, term) = try reader.copy(to: draft)
            try draft.close()
            try directory.sync(directory.draft)
            try NewDirectory.publish(directory, reader.epoch, term: term, tip)
            isMade = true
            return JournalSpan(epoch: reader.epoch, start: base.version, end: tip.version)
        } catch {
            throw JournalError("make the copy", directory.journal, error)
        }
    }

    /// Copies a journal as a new history: the same states, commits and keys under a new epoch.
    ///
    /// A cursor in an ID becomes the cursor of the new epoch. O(n) in the size of the journal; about a second for a million
    /// small commits.
    ///
    /// - Throws: ``JournalError``, as ``make(of:in:)``.
    package static func renew(_ path: String, in destination: String) throws -> JournalSpan {
        let reader = try JournalReader(directory: path)
        let draft = try JournalDraft(directory: destination)
        try reader.verify()
        let base = try reader.write(to: draft)
        return JournalSpan(epoch: draft.epoch, start: base, end: reader.latest)
    }

    /// Throws where another process serves or changes the journal in a directory.
    ///
    /// - Throws: ``JournalError``.
    package static func refuseInUse(_ path: String) throws(JournalError) {
        guard DirectoryLock.isTaken(DataDirectory(path: path)) else { return }
        throw JournalError(
            "another process is using the data directory \(path): a second server in the same epoch would make another history of it; stop that server, or leave out --same-epoch"
        )
    }
}

extension JournalReader {
    /// Copies the pages of the journal, and verifies the copy.
    ///
    /// - Returns: what the oldest segment of the copy builds on, the end of its newest one, and the term of its newest writer.
    fileprivate func copy(to draft: DatabaseQueue) throws -> (base: ChainLink, tip: ChainLink, term: UInt64) {
        try draft.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        }
        // The fence is read first: a server that is running raises it after the journal.
        let fence = try Fence.read(directory)
        try database.backup(to: draft)
        // The copy is one file, which can be read where nothing can be written.
        try draft.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA journal_mode = DELETE") }
        return try draft.read { db in
            try compare(with: fence, db)
            try rows.verifyBase(db)
            _ = try StartCheck.run(rows, db, .whole)
            return (try rows.base(db), try rows.tip(db), try JournalSchema.term(db) ?? 0)
        }
    }

    /// Writes everything to a draft and finishes it.
    ///
    /// - Returns: the oldest version after which the draft has every commit.
    fileprivate func write(to draft: JournalDraft) throws -> Version {
        let change = EpochChange(from: epoch, to: draft.epoch)
        return try reading { db in
            let base = try rows.base(db).version
            try draft.begin(version: base)
            try rows.readKeys(db) { first, keys in
                // The other ones come with their commits.
                let old = (keys ?? []).filter { $0.version <= base }.map(change.key)
                if !old.isEmpty { try draft.append(keys: old, from: first) }
            }
            try rows.read(db, after: base, through: latest) { commit in
                try draft.append(change.commit(commit))
                return true
            }
            for version in try rows.snapshotVersions(db, through: latest) {
                // A damaged snapshot is left out: an older one and the commits after it make the same state.
                guard let (state, _) = try rows.snapshotBytes(db, version) else { continue }
                try draft.save([UInt8](state), version: version)
            }
            var warnings: [String] = []
            try draft.finish(rows.state(db, upTo: latest, warnings: &warnings).state.text, version: latest)
            return base
        }
    }
}
