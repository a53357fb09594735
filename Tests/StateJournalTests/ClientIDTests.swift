import Foundation
import GRDB
import StateStore
import Synchronization
import TestSupport
import Testing

@testable import StateJournal

@Suite("Commits by client ID")
struct ClientIDTests {
    let scratch = Scratch()

    private func rowsCount(_ journal: SQLiteJournal) throws -> Int {
        try journal.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM ids") ?? 0 }
    }

    @Test("IDs wait in memory, go to the table when they are many, and are found on the way")
    func indexed() throws {
        var journal: SQLiteJournal? = try scratch.open(retention: .init(commitsMax: 1000, snapshotsMax: 2))
        let limit = Version(RecentIDs.waitingMax)
        for start in stride(from: Version(1), through: limit - 999, by: 1000) {
            try journal?.record((start..<start + 1000).map { .setting($0, ids: ["id\($0)"]) })
        }
        let first = try #require(journal)
        #expect(try rowsCount(first) == 0)
        #expect(try first.commit(id: "id777")?.version == 777)

        try first.record((65_001...limit).map { .setting($0, ids: ["id\($0)"]) })
        first.background.sync {}

        #expect(try rowsCount(first) == Int(limit))
        #expect(first.ids.withLock { $0.waiting.versions(IDVersions.hash(of: "id777")) } == [])
        #expect(try first.commit(id: "id777")?.version == 777)
        try first.record([.setting(limit + 1, ids: ["id777"]), .setting(limit + 2, ids: ["new"])])
        #expect(try first.commit(id: "id777")?.version == limit + 1)
        journal = nil
    }

    @Test("a deep verification takes the table that the journal writes, with and without subjects")
    func verified() throws {
        let journal = try scratch.open()
        let subjects = [nil, "ann", "ben"]
        let limit = Version(RecentIDs.waitingMax / 2)
        try journal.record(
            (1...limit + 10).map { version in
                // Each ID comes twice, by one subject and by another, and some commits have two.
                let ids = ["id\(version / 2)"] + (version % 5 == 0 ? ["further\(version)", "further\(version)"] : [])
                return .setting(version, ids: ids, by: subjects[Int(version) % 3])
            })
        journal.background.sync {}
        #expect(try rowsCount(journal) > Int(limit))

        try JournalReader(directory: scratch.path).verify(.deep, at: Timestamp(milliseconds: 0))
        try journal.database.write { db in try db.execute(sql: "DELETE FROM ids WHERE version = 7") }

        #expect(throws: JournalError.self) {
            try JournalReader(directory: scratch.path).verify(.deep, at: Timestamp(milliseconds: 0))
        }
    }

    @Test("a start finds the IDs that the table does not have yet in the segments")
    func started() throws {
        var journal: SQLiteJournal? = try scratch.open()
        try journal?.record([.setting(1, ids: ["a"]), .setting(2), .setting(3, ids: ["b", "c"])])
        try journal?.database.write { db in
            try IDTable.insert([.init(hash: IDVersions.hash(of: "a"), version: 1)], db)
            try IDTable.setIndexed(db, through: 2)
        }
        journal = nil

        let again = try scratch.open()

        for (id, version) in [("a", 1), ("b", 3), ("c", 3)] as [(String, Version)] {
            #expect(try again.commit(id: id)?.version == version)
        }
        #expect(again.ids.withLock { $0.waiting.versions(IDVersions.hash(of: "a")) } == [])
        #expect(again.ids.withLock { $0.waiting.versions(IDVersions.hash(of: "c")) } == [3])
    }

    @Test("a table that says it has the IDs of commits behind the tip is not believed")
    func damaged() throws {
        var journal: SQLiteJournal? = try scratch.open()
        try journal?.record([.setting(1, ids: ["a"]), .setting(2)])
        try journal?.database.write { try IDTable.setIndexed($0, through: 1 << 40) }
        journal = nil

        let again = try scratch.open()
        try again.record([.setting(3, ids: ["b"])])

        #expect(!again.ids.withLock { $0.isDue })
        #expect(try again.commit(id: "a")?.version == 1)
        #expect(try again.commit(id: "b")?.version == 3)
    }

    @Test("a commit with the same hash and another ID is passed over", arguments: [false, true])
    func collision(isWritten: Bool) throws {
        let journal = try scratch.open()
        try journal.record([.setting(1, ids: ["mine"]), .setting(2, ids: ["other"]), .setting(3, ids: ["é"])])
        let wrong = IDVersions.Entry(hash: IDVersions.hash(of: "mine"), version: 2)
        if isWritten {
            try journal.database.write { try IDTable.insert([wrong, .init(hash: wrong.hash, version: 1)], $0) }
            journal.ids.withLock { $0 = RecentIDs(indexed: 3) }
        } else {
            journal.ids.withLock { ids in
                ids = RecentIDs(indexed: 0)
                for version in [1, 2] as [Version] { ids.insert([.setting(version, ids: ["mine"])]) }
            }
        }

        #expect(try journal.commit(id: "mine")?.version == 1)
        // Another spelling of the same letter is another ID.
        #expect(try journal.commit(id: "e\u{301}") == nil)
    }

    @Test("the rows of pruned commits find nothing, and are deleted when others are written")
    func pruned() throws {
        let journal = try scratch.open()
        try journal.record((1...600).map { .setting($0, ids: ["id\($0)"]) })
        let entries = (1...600).map { IDVersions.Entry(hash: IDVersions.hash(of: "id\($0)"), version: $0) }
        try IDTable.write(entries, through: 600, pruned: 0, to: journal.database)
        journal.ids.withLock { $0 = RecentIDs(indexed: 600) }
        try journal.database.write { db in
            let link = try journal.rows.link(db, before: 500)
            try db.execute(sql: "DELETE FROM segments WHERE last <= ?", arguments: [Int64(link.version)])
            try JournalSchema.setBase(db, link)
        }
        let kept = try journal.database.read { try journal.rows.oldest($0) }

        #expect(try journal.commit(id: "id600")?.version == 600)
        #expect(try journal.commit(id: "id3") == nil)
        #expect(try rowsCount(journal) == 600)
        try IDTable.write([], through: 600, pruned: kept, to: journal.database)
        #expect(try rowsCount(journal) == 600 - Int(kept))
        #expect(try journal.commit(id: "id600")?.version == 600)
    }

    @Test("entries are claimed once, stay until they are written, and come back after a failure")
    func claims() {
        var ids = RecentIDs(indexed: 0)
        let count = Version(RecentIDs.waitingMax)
        ids.insert((1..<count).map { .setting($0, ids: ["id\($0)"]) })
        #expect(ids.claim() == nil)
        ids.insert([.setting(count, ids: ["id1"])])

        let claim = ids.claim()
        #expect(claim?.through == count)
        #expect(claim?.entries.count == Int(count))
        #expect(ids.claim() == nil)
        ids.abandon()
        // A failing disk is not asked again at each commit.
        #expect(ids.claim() == nil)
        ids.insert((count + 1..<count * 2).map { .setting($0) })
        #expect(ids.claim() == nil)
        ids.insert([.setting(count * 2, ids: ["late"])])
        #expect(ids.claim()?.entries.count == Int(count) + 1)
        ids.insert([.setting(count * 2 + 1, ids: ["id2"])])
        #expect(ids.waiting.versions(IDVersions.hash(of: "id1")) == [count, 1])
        ids.finish(through: count * 2)
        #expect(ids.waiting.versions(IDVersions.hash(of: "id1")) == [])
        #expect(ids.waiting.versions(IDVersions.hash(of: "id2")) == [count * 2 + 1])
        #expect(!ids.isDue)
    }

    @Test("commits without IDs move the mark, so that a start reads only the newest segments")
    func withoutIDs() throws {
        let journal = try scratch.open()
        try journal.record((1...Version(RecentIDs.waitingMax)).map { .setting($0) })
        journal.background.sync {}

        #expect(try journal.database.read { try IDTable.indexed($0) } == Version(RecentIDs.waitingMax))
    }
}
