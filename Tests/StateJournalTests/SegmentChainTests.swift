import Foundation
import GRDB
import StateStore
import TestSupport
import Testing

@testable import StateJournal

@Suite("The chain of segments")
struct SegmentChainTests {
    let scratch = Scratch()

    /// A journal with ten segments of ten commits each and a snapshot in the middle.
    private func journal() throws -> SQLiteJournal {
        let journal = try scratch.open()
        for turn in 0..<10 {
            try journal.record((1...10).map { .setting(Version(turn * 10 + $0), ids: ["id\(turn * 10 + $0)"]) })
        }
        _ = try journal.saveSnapshot(Array(#"{"value":45,"list":[]}"#.utf8), version: 45)
        return journal
    }

    private func edit(_ journal: SQLiteJournal, _ sql: String) throws {
        try journal.database.write { db in
            try db.execute(sql: sql)
            #expect(db.changesCount > 0, "\(sql)")
        }
    }

    static let damages: [(sql: String, says: String)] = [
        ("DELETE FROM segments WHERE first = 71", "lacks the commit of version 71"),
        (
            "UPDATE segments SET body = (SELECT body FROM segments WHERE first = 61) WHERE first = 71",
            "one of the commits of versions 71 to 80 is not what was recorded"
        ),
        ("UPDATE segments SET hash = zeroblob(16) WHERE first = 71", "versions 71 to 80"),
        ("UPDATE segments SET hash = zeroblob(16) WHERE first = 61", "versions 61 to 70"),
        ("UPDATE segments SET last = 79 WHERE first = 71", "versions 71 to 79"),
        ("UPDATE segments SET body = x'' WHERE first = 71", "versions 71 to 80"),
        ("UPDATE segments SET last = -1 WHERE first = 71", "the segment after version 70"),
        ("UPDATE segments SET body = body || x'00' WHERE first = 71", "versions 71 to 80"),
        (
            """
            UPDATE segments SET body = CAST(replace(hex(body), hex('/value'), hex('/valuf')) AS BLOB)
            WHERE first = 71
            """, "versions 71 to 80"
        ),
    ]

    @Test(
        "a recovery, a reader and every read refuse a damaged segment, and name version and file",
        arguments: damages.indices)
    func damaged(index: Int) throws {
        let journal = try journal()
        let damage = Self.damages[index]
        try edit(journal, damage.sql)

        let errors = [
            #expect(throws: JournalError.self) { try journal.recover(at: start) },
            #expect(throws: JournalError.self) { try journal.commits(after: 0, through: 100, limit: 1000) },
            #expect(throws: JournalError.self) { try journal.state(at: 100) },
            #expect(throws: JournalError.self) {
                try JournalReader(directory: scratch.path).forEachCommit(after: 0) { _ in }
            },
        ]

        for error in errors {
            #expect(error?.description.contains(damage.says) == true, "\(error?.description ?? "none")")
            #expect(error?.description.contains(journal.path) == true)
        }
        #expect(try journal.commits(after: 0, through: 60, limit: 1000).count == 60)
        #expect(throws: JournalError.self) {
            try journal.page(ChangesQuery(since: 75), latest: Cursor(journal.epoch, 100))
        }
        let page = try journal.page(ChangesQuery(since: 40), latest: Cursor(journal.epoch, 100))
        #expect(page?.isMore == true && (60...70).contains(page?.next ?? 0))
        #expect(page?.commits.last?.version == page?.next)
        #expect(try journal.state(at: 60).map { text($0.state) } == #"{"value":60,"list":[]}"#)
    }

    @Test("a commit that is read alone is verified with the hash before it")
    func alone() throws {
        let journal = try journal()
        try edit(journal, "UPDATE segments SET hash = zeroblob(16) WHERE first = 61")

        #expect(try journal.commit(version: 60)?.version == 60)
        #expect(throws: JournalError.self) { try journal.commit(version: 65) }
        // The hash before it is not the one that it builds on.
        #expect(throws: JournalError.self) { try journal.commit(version: 71) }
        #expect(throws: JournalError.self) { try journal.commit(id: "id75") }
        #expect(try journal.commit(id: "id85")?.version == 85)
    }

    @Test("two segments that have changed places are found")
    func swapped() throws {
        let journal = try journal()
        try edit(
            journal,
            """
            CREATE TEMP TABLE copy AS SELECT * FROM segments WHERE first IN (61, 71);
            UPDATE segments SET body = (SELECT body FROM copy WHERE first = 132 - segments.first),
                hash = (SELECT hash FROM copy WHERE first = 132 - segments.first) WHERE first IN (61, 71);
            """)

        #expect(throws: JournalError.self) { try journal.recover(at: start) }
        #expect(throws: JournalError.self) { try journal.commit(version: 61) }
    }

    @Test("a segment of another history is refused, although its own hash is right")
    func otherHistory() throws {
        let journal = try journal()
        let other = Scratch()
        do {
            let theirs = try other.open()
            for turn in 0..<10 { try theirs.record((1...10).map { .setting(Version(turn * 10 + $0)) }) }
            #expect(try theirs.recover(at: start).version == 100)
            try theirs.close(Array("{}".utf8), version: 100)
        }
        try journal.database.writeWithoutTransaction { db in
            try db.execute(sql: "ATTACH '\(DataDirectory(path: other.path).journal)' AS other")
            try db.execute(sql: "INSERT OR REPLACE INTO main.segments SELECT * FROM other.segments WHERE first >= 71")
        }

        let error = #expect(throws: JournalError.self) { try journal.recover(at: start) }

        #expect(error?.description.contains("versions 71 to 80") == true)
    }

    @Test("damage before the newest snapshot is not seen by a start, and by every reader of those commits")
    func before() throws {
        let journal = try journal()
        try edit(journal, "DELETE FROM segments WHERE first = 21")

        #expect(try journal.recover(at: start).version == 100)
        #expect(throws: JournalError.self) { try journal.commits(after: 5, through: 100, limit: 1000) }
        #expect(throws: JournalError.self) { try journal.state(at: 30) }
        #expect(throws: JournalError.self) { try journal.commit(version: 25) }
        #expect(throws: JournalError.self) { try journal.commit(version: 31) }
        #expect(try journal.commits(after: 40, through: 100, limit: 1000).count == 60)
        let reader = try JournalReader(directory: scratch.path)
        let gap = #expect(throws: JournalError.self) { try reader.beginning() }
        #expect(gap?.description.contains("lacks commits before version 31: with --since 30") == true)
        #expect(throws: JournalError.self) { try reader.verify(.plain, at: Timestamp(milliseconds: 0)) }
        #expect(try reader.beginning(at: 45).version == 45)
    }

    @Test("a snapshot that names another segment than the chain has is refused")
    func snapshot() throws {
        let journal = try journal()
        // The snapshot at 45 was made from another history: its own hash is right.
        try journal.database.write { db in
            let state = Array(#"{"value":45,"list":[]}"#.utf8)
            try db.execute(sql: "UPDATE segments SET hash = zeroblob(16) WHERE first = 41")
            try journal.rows.insertSnapshot(db, version: 45, state: state)
        }

        let error = #expect(throws: JournalError.self) { try journal.recover(at: start) }

        #expect(error?.description.contains("versions 41 to 50") == true)
    }

    @Test("a snapshot after commits that are gone is refused, and names the first of them")
    func tail() throws {
        let journal = try journal()
        _ = try journal.saveSnapshot(Array(#"{"value":100,"list":[]}"#.utf8), version: 100)
        try edit(journal, "DELETE FROM segments WHERE first > 80")

        let error = #expect(throws: JournalError.self) { try journal.recover(at: start) }

        #expect(error?.description.contains("lacks the commit of version 81") == true)
    }

    @Test("retention keeps the hash on which the oldest segment builds")
    func pruned() throws {
        let journal = try scratch.open(retention: .init(commitsMax: 25, snapshotsMax: 2))
        for turn in 0..<10 {
            try journal.record((1...10).map { .setting(Version(turn * 10 + $0)) })
            let end = Version(turn * 10 + 10)
            _ = try journal.saveSnapshot(Array(#"{"value":\#(end),"list":[]}"#.utf8), version: end)
        }
        let oldest = try journal.recover(at: start).oldest

        // 75 is in a segment that has commits to keep.
        #expect(oldest == 70)
        #expect(try journal.commits(after: 70, through: 100, limit: 100).count == 30)
        #expect(try journal.commits(after: 69, through: 100, limit: 100).isEmpty)
        #expect(try journal.page(ChangesQuery(since: 3), latest: Cursor(journal.epoch, 100)) == nil)
        #expect(try journal.commit(version: 70) == nil)
        #expect(try JournalReader(directory: scratch.path).beginning().version == 90)
        try edit(journal, "UPDATE meta SET value = zeroblob(16) WHERE name = 'base_hash'")
        #expect(throws: JournalError.self) { try journal.commits(after: 70, through: 100, limit: 100) }
        #expect(try journal.commits(after: 80, through: 100, limit: 100).count == 20)
    }

    @Test("damaged keys are refused at the start")
    func keys() throws {
        let journal = try scratch.open()
        let key = KeyRecord(
            key: "k", fingerprint: "f", version: 1, id: "i", isChange: true, expiry: Timestamp(milliseconds: 1000))
        try journal.record([.setting(1, key: key)])
        try edit(journal, "UPDATE keys SET body = CAST(replace(CAST(body AS TEXT), 'f', 'g') AS BLOB)")

        let error = #expect(throws: JournalError.self) { try journal.recover(at: start) }

        #expect(error?.description.contains("the idempotency keys from version 1 on") == true)
    }
}
