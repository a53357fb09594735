internal import FoundationEssentials
internal import GRDB
internal import StateJSON
package import StateStore

package struct Loss: Sendable {
    package var reason: String
    package var epoch: Epoch
    /// Nil if nothing could be read, and the history begins empty.
    package var version: Version?
    package var start: Version
    package var acknowledged: Version?
    /// A retry with such a key may commit again.
    package var unreadableKeys: Int
    package var aside: [String]
}

/// Copies what can be read of a damaged journal into a new one, under a new epoch.
struct DamageRecovery {
    private let directory: DataDirectory
    private var unreadableKeys = 0

    private struct Run {
        var start: Version
        var end: Version
    }

    static func replace(
        _ directory: DataDirectory, _ lock: DirectoryLock, because reason: String, initial: () throws -> [UInt8]
    ) throws -> Loss {
        var recovery = DamageRecovery(directory: directory)
        let fence: FenceRecord? = if case .record(let record, _) = try Fence.read(directory) { record } else { nil }
        let draft = try JournalDraft(in: directory, lock)
        let run: Run?
        do {
            run = try recovery.copy(to: draft, fence)
        } catch { throw JournalError("copy", directory.journal, error) }
        if run == nil {
            let state = try initial()
            try draft.begin(version: 0, keys: [])
            try draft.save(state)
            try draft.finishReplacement()
        }
        let aside = try Replacement.complete(directory)
        return Loss(
            reason: reason, epoch: draft.epoch, version: run?.end, start: run?.start ?? 0,
            acknowledged: fence.flatMap { $0.stage == .beginning ? nil : $0.link.version },
            unreadableKeys: recovery.unreadableKeys, aside: aside)
    }

    private init(directory: DataDirectory) { self.directory = directory }

    private mutating func copy(to draft: JournalDraft, _ fence: FenceRecord?) throws -> Run? {
        guard directory.size(directory.journal) ?? 0 > 0 else { return nil }
        let database: DatabaseQueue
        do {
            database = try Inspection.open(directory.journal)
        } catch let error as DatabaseError
            where [.SQLITE_NOTADB, .SQLITE_CORRUPT, .SQLITE_ERROR].contains(error.resultCode)
        {
            return nil
        }
        // The file is set aside with its WAL, which an open connection would keep busy.
        defer { try? database.close() }
        // Without a transaction, whose end reads pages that may be damaged; no other process writes.
        return try database.unsafeRead { db in
            // An epoch that cannot be read is that of the fence.
            guard let epoch = (try? SegmentRows(db, directory.journal))?.epoch ?? fence?.epoch else { return nil }
            let rows = SegmentRows(path: directory.journal, epoch: epoch)
            guard var run = newestRun(rows, db), var (last, _) = try rows.snapshot(db, run.start) else { return nil }
            let change = EpochChange(from: epoch, to: draft.epoch)
            // A record that cannot be read is made anew at the next start.
            draft.domain = try? JournalSchema.domain(db)
            try draft.begin(version: run.start, keys: keys(rows, db, before: run).map(change.key))
            try draft.save(change.saved(last.bytes()))
            // Reads as the search for the run does: a query with another end can look at damaged pages that the search has
            // not met.
            var (end, failure) = (run.start, (any Error)?.none)
            do {
                try rows.read(db, after: run.start, through: run.end > run.start ? .max : run.start) { commit in
                    do {
                        _ = try last.take(commit)
                        try draft.append(change.commit(commit))
                    } catch {
                        failure = error
                        throw error
                    }
                    end = commit.version
                    return end < run.end
                }
            } catch {
                if let failure { throw failure }
            }
            run.end = end
            try draft.save(change.saved(last.bytes()))
            try draft.finishReplacement()
            return run
        }
    }

    /// Begins with the oldest snapshot from which the newest version can be read.
    private func newestRun(_ rows: SegmentRows, _ db: Database) -> Run? {
        // Whatever cannot be read ends a run, so each error is an answer here.
        guard let versions = try? rows.snapshotVersions(db, through: .max) else { return nil }
        var newest: Run?
        for start in versions where start > newest?.end ?? 0 || newest == nil {
            guard let found = try? rows.snapshot(db, start) else { continue }
            var run = Run(start: start, end: start)
            var state = found.state
            if (try? rows.verify(db, start, found.chain)) != nil {
                try? rows.read(db, after: start, through: .max) { commit in
                    _ = try state.take(commit)
                    run.end = commit.version
                    return true
                }
            }
            newest = run
        }
        return newest
    }

    private mutating func keys(_ rows: SegmentRows, _ db: Database, before run: Run) -> [KeyRecord] {
        var old: [KeyRecord] = []
        do {
            try rows.readKeys(db) { _, keys in
                guard let keys else {
                    unreadableKeys += 1
                    return
                }
                old += keys.filter { $0.version <= run.start }
            }
        } catch {
            // The table itself is damaged: the rows behind the damage cannot be counted.
            unreadableKeys += 1
        }
        return old
    }
}

/// The next start goes on where a process was killed.
enum Replacement {
    /// The damaged files stay as `damaged-1.sqlite`, with the next free number.
    @discardableResult
    static func complete(_ directory: DataDirectory) throws -> [String] {
        guard directory.size(directory.replacement) != nil else { return [] }
        let fence: FenceRecord
        do {
            fence = try Inspection.open(directory.replacement).read { db in
                let rows = try SegmentRows(db, directory.replacement)
                return FenceRecord(epoch: rows.epoch, term: 0, link: try rows.tip(db), stage: .closed)
            }
        } catch {
            throw JournalError("open", directory.replacement, error)
        }
        var number = 1
        while directory.size("\(directory.path)/damaged-\(number).sqlite") != nil { number += 1 }
        let name = "damaged-\(number)"
        // The file itself goes last: while it is there, the next start finds the same name.
        var moved: [String] = []
        for (file, suffix) in DataDirectory.companions.map({ (directory.journal + $0, ".sqlite" + $0) })
            + [(directory.fence, ".fence"), (directory.journal, ".sqlite")]
        where directory.size(file) != nil {
            try directory.rename(file, to: directory.path + "/" + name + suffix)
            moved.append(name + suffix)
        }
        _ = try Fence(directory, fence)
        try directory.rename(directory.replacement, to: directory.journal)
        try directory.sync(directory.path)
        return moved
    }
}
