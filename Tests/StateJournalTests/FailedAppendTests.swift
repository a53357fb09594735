import Foundation
import GRDB
import GRDBSQLite
import StateStore
import Synchronization
import TestSupport
import Testing

@testable import StateJournal

@Suite("Failed appends")
struct FailedAppendTests {
    let scratch = Scratch()

    /// How many of the next transactions of a connection fail at their end; SQLite calls the hook on the writer's queue.
    private static let failures = Mutex<[UInt: Int]>([:])

    /// Makes the ends of the next transactions of a journal fail, so that their outcome is open.
    private func failCommits(_ count: Int, of journal: SQLiteJournal) throws {
        try journal.database.writeWithoutTransaction { db in
            let connection = UnsafeMutableRawPointer(try #require(db.sqliteConnection))
            let name = UInt(bitPattern: connection)
            Self.failures.withLock { $0[name] = count }
            sqlite3_commit_hook(
                db.sqliteConnection,
                { connection in
                    let name = UInt(bitPattern: connection)
                    return FailedAppendTests.failures.withLock { failures -> Int32 in
                        guard let left = failures[name], left > 0 else { return 0 }
                        failures[name] = left - 1
                        return 1
                    }
                }, connection)
        }
    }

    /// Makes a turn fail behind its first segment, when all of its rows but the last are written.
    private func fail(_ turn: [Commit], in journal: SQLiteJournal) throws {
        let last = (turn.count - 1) / SegmentBody.commitsMax * SegmentBody.commitsMax
        try journal.database.writeWithoutTransaction { db in
            try db.execute(
                sql: """
                    CREATE TEMP TRIGGER failing AFTER INSERT ON segments WHEN new.first = \(turn[last].version)
                    BEGIN SELECT RAISE(ABORT, 'failing'); END
                    """)
        }
        #expect(throws: JournalError.self) { try journal.record(turn) }
        try journal.database.writeWithoutTransaction { try $0.execute(sql: "DROP TRIGGER failing") }
    }

    /// Writes commits behind the tip without the journal, as a failed sync or another process does.
    private func write(_ commits: [Commit], _ journal: SQLiteJournal) throws {
        let other = try DatabaseQueue(path: journal.path)
        try other.write { db in
            let writer = SegmentWriter(epoch: journal.epoch, path: journal.path, term: 1)
            _ = try writer.insert(commits, after: journal.rows.tip(db), db)
            writer.finish()
        }
    }

    private func firsts(_ journal: SQLiteJournal, _ table: String = "segments") throws -> [Int64] {
        try journal.database.read { try Int64.fetchAll($0, sql: "SELECT first FROM \(table) ORDER BY first") }
    }

    @Test("the next turn deletes what a failed sync has left", arguments: [3, 600])
    func ambiguous(count: Int) throws {
        let journal = try scratch.open()
        let key = KeyRecord(
            key: "k", fingerprint: "f", version: 2, id: "mine", isChange: true, expiry: Timestamp(milliseconds: 9))
        let turn = [.setting(2, ids: ["mine"], key: key)] + (3...Version(count)).map { Commit.setting($0) }
        try journal.record([.setting(1)])
        try failCommits(2, of: journal)
        let result = journal.append(turn, after: 1)
        let wasOpen = journal.isOutcomeOpen
        // The state after a sync that failed although the disk had the commits.
        try write(turn, journal)

        try journal.record([.setting(2, to: 22)])

        guard case .unknown = result else { Issue.record("\(result)"); return }
        #expect(wasOpen)
        #expect(!journal.isOutcomeOpen)
        let recovery = try journal.recover(at: start)
        #expect(recovery.version == 2)
        #expect(text(recovery.state) == #"{"value":22,"list":[]}"#)
        #expect(recovery.keys.isEmpty)
        #expect(try firsts(journal) == [1, 2])
        #expect(try firsts(journal, "keys") == [])
        #expect(try journal.commit(id: "mine") == nil)
        #expect(journal.failure == nil)
    }

    @Test("an append that fails before its end is not in the journal, and neither is one that was written over")
    func resolved() throws {
        let journal = try scratch.open()
        try journal.record([.setting(1)])
        try fail([.setting(2)], in: journal)
        let wasOpen = journal.isOutcomeOpen
        try failCommits(1, of: journal)

        let result = journal.append([.setting(2)], after: 1)

        guard case .failed = result else { Issue.record("\(result)"); return }
        #expect(!wasOpen)
        #expect(!journal.isOutcomeOpen)
        #expect(journal.failure != nil)
        #expect(try firsts(journal) == [1])
    }

    @Test("the end of a failure is reported once, by an append or by a probe")
    func again() throws {
        let events = Mutex<[String]>([])
        let journal = try SQLiteJournal(directory: scratch.path) { event in
            switch event {
            case .appendFailed: events.withLock { $0.append("failed") }
            case .appendsAgain: events.withLock { $0.append("again") }
            default: break
            }
        } initial: {
            Array(#"{"value":0,"list":[]}"#.utf8)
        }

        for version in [1, 3] as [Version] {
            try journal.record([.setting(version)])
            try failCommits(2, of: journal)
            _ = journal.append([.setting(version + 1)], after: version)
            if version == 1 { for _ in 0..<2 { journal.probe() } }
            _ = journal.append([.setting(version + 1)], after: version)
        }

        #expect(events.withLock(\.self) == ["failed", "again", "failed", "again"])
    }

    @Test("a probe settles an open outcome, and takes back what has come into the file")
    func probed() throws {
        let journal = try scratch.open()
        try journal.record([.setting(1)])
        try failCommits(3, of: journal)
        let result = journal.append([.setting(2)], after: 1)
        try write([.setting(2)], journal)
        journal.probe()
        let isStillOpen = journal.isOutcomeOpen

        journal.probe()

        guard case .unknown = result else { Issue.record("\(result)"); return }
        #expect(isStillOpen)
        #expect(!journal.isOutcomeOpen)
        #expect(journal.failure == nil)
        #expect(try firsts(journal) == [1])
    }

    @Test("a probe writes as much as the append that failed, so that it does not find room that the next one lacks")
    func largeProbe() throws {
        let journal = try scratch.open()
        let large = Commit.setting(1, type: String(repeating: "x", count: 100_000))
        try journal.database.writeWithoutTransaction { db in
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            try db.execute(sql: "PRAGMA max_page_count = \(pages + 2)")
        }
        #expect(throws: JournalError.self) { try journal.record([large]) }

        journal.probe()
        let whileFull = journal.failure
        try journal.database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
        journal.probe()

        #expect(whileFull?.hasSuffix("the disk is full") == true)
        #expect(journal.failure == nil)
        #expect(throws: Never.self) { try journal.record([large]) }
    }

    @Test("a second writer takes the next term, and the first one writes nothing more, for good")
    func superseded() throws {
        let first = try scratch.open()
        try first.record([.setting(1), .setting(2)])
        // Without the file, another process gets the lock.
        try FileManager.default.removeItem(atPath: DataDirectory(path: scratch.path).lock)
        let second = try scratch.open()
        try second.record([.setting(3, to: 33)])

        let results = [first.append([.setting(3)], after: 2), first.append([.setting(3)], after: 2)]
        first.probe()
        _ = try? first.close(Array(#"{"value":2,"list":[]}"#.utf8), version: 2)
        try second.record([.setting(4)])
        try second.close(Array(#"{"value":4,"list":[]}"#.utf8), version: 4)

        for result in results { guard case .failed = result else { Issue.record("\(result)"); return } }
        #expect(first.failure?.contains("another process has opened it for writing after this one (term 2") == true)
        let again = try scratch.open()
        #expect(
            try again.commits(after: 0, through: 9, limit: 9).map(\.patch) == [
                Commit.setting(1).patch, Commit.setting(2).patch, Commit.setting(3, to: 33).patch,
                Commit.setting(4).patch,
            ])
    }

    @Test("a segment has the term of its writer")
    func terms() throws {
        for version: Version in 1...3 { try scratch.open().record([.setting(version)]) }

        let journal = try scratch.open()
        var terms: [UInt64] = []
        try journal.database.read { db in
            try journal.rows.readSegments(db, after: 0, through: 3) { decoder, _ in
                terms.append(decoder.fence)
                return true
            }
        }

        #expect(terms == [1, 2, 3])
    }

    @Test("a commit that a failed sync has left is part of the history after a new start, and found by its ID")
    func restarted() throws {
        var journal: SQLiteJournal? = try scratch.open()
        try journal?.record([.setting(1)])
        try fail([.setting(2, ids: ["mine"])], in: #require(journal))
        try write([.setting(2, ids: ["mine"])], #require(journal))
        journal = nil

        let again = try scratch.open()

        #expect(try again.recover(at: start).version == 2)
        #expect(try again.commit(id: "mine")?.version == 2)
    }

    @Test("the segments of another process are never deleted: the turn is refused", arguments: [false, true])
    func foreign(isBehindRemains: Bool) throws {
        let journal = try scratch.open()
        let turn: [Commit] = [.setting(2, ids: ["mine"]), .setting(3)]
        try journal.record([.setting(1)])
        try fail(turn, in: journal)
        if isBehindRemains { try write(turn, journal) }
        let foreign = (isBehindRemains ? 4...5 : 2...4).map { Commit.setting($0, to: 70, ids: ["theirs\($0)"]) }
        try write(foreign, journal)
        let before = try firsts(journal)

        for _ in 0..<2 {
            #expect(throws: JournalError.self) { try journal.record([.setting(2, to: 22), .setting(3, to: 33)]) }
        }

        #expect(journal.failure?.contains("another process has changed it after version 1") == true)
        #expect(try firsts(journal) == before)
        let read = try journal.commits(after: 0, through: .max, limit: 10)
        #expect(read.suffix(foreign.count).map(\.patch) == foreign.map(\.patch))
        #expect(read.suffix(foreign.count).map(\.clientIDs) == foreign.map(\.clientIDs))
    }

    @Test("a segment of another process with the same versions and other content is found before it is replaced")
    func sameVersions() throws {
        let journal = try scratch.open()
        try journal.record([.setting(1)])
        try write([.setting(2, to: 70)], journal)

        let error = #expect(throws: JournalError.self) { try journal.record([.setting(2)]) }

        #expect(error?.description.contains("another process has changed it") == true)
        #expect(try journal.commit(version: 2)?.patch == Commit.setting(2, to: 70).patch)
    }

    @Test("an append to a journal whose segments another process has deleted is refused")
    func emptied() throws {
        let journal = try scratch.open()
        try journal.record([.setting(1)])
        try journal.database.write { try $0.execute(sql: "DELETE FROM segments") }

        let error = #expect(throws: JournalError.self) { try journal.record([.setting(2)]) }

        #expect(error?.description.contains("another process has changed it after version 1") == true)
        #expect(try firsts(journal) == [])
    }

    @Test("a turn whose end fails several times leaves its own segments only to look for")
    func repeated() throws {
        let journal = try scratch.open()
        let turn = (1...300).map { Commit.setting($0) }
        try failCommits(6, of: journal)
        for _ in 0..<3 { #expect(throws: JournalError.self) { try journal.record(turn) } }

        #expect(journal.remainsCount == 2)
        try journal.record([.setting(1)])
        #expect(journal.remainsCount == 0)
    }

    @Test("commits that do not follow the newest one are refused, and nothing is written", arguments: [1, 3])
    func order(version: Version) throws {
        let journal = try scratch.open()
        try journal.record([.setting(1)])

        #expect(throws: JournalError.self) { try journal.record([.setting(version)]) }
        #expect(throws: JournalError.self) { try journal.record([.setting(2), .setting(4)]) }
        try journal.record([.setting(2)])

        #expect(try firsts(journal) == [1, 2])
    }
}
