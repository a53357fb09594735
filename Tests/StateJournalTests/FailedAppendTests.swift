import Foundation
import GRDB
import StateStore
import Testing

@testable import StateJournal

@Suite("Failed appends")
struct FailedAppendTests {
    let scratch = Scratch()

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
            let writer = SegmentWriter(epoch: journal.epoch, path: journal.path)
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
        try fail(turn, in: journal)
        // The state after a sync that failed although the disk had the commits.
        try write(turn, journal)

        try journal.record([.setting(2, to: 22)])

        let recovery = try journal.recover(at: start)
        #expect(recovery.version == 2)
        #expect(text(recovery.state) == #"{"value":22,"list":[]}"#)
        #expect(recovery.keys.isEmpty)
        #expect(try firsts(journal) == [1, 2])
        #expect(try firsts(journal, "keys") == [])
        #expect(try journal.commit(id: "mine") == nil)
        #expect(journal.failure == nil)
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

    @Test("a turn that fails several times leaves its own segments only to look for")
    func repeated() throws {
        let journal = try scratch.open()
        let turn = (1...300).map { Commit.setting($0) }
        for _ in 0..<3 { try fail(turn, in: journal) }

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
