import Foundation
import GRDB
import StateJSON
import StateStore
import TestSupport
import Testing

@testable import StateJournal

@Suite("Operating a journal")
struct OperatingTests {
    let scratch = Scratch()
    let other = Scratch()

    /// A journal with IDs, keys, and snapshots of versions 0, 20 and 40; its state at version n has the value n.
    func filled(_ retention: JournalRetention = .init()) throws -> SQLiteJournal {
        let journal = try scratch.open(retention: retention)
        for turn in 0..<20 {
            try journal.record([
                .setting(Version(turn * 3 + 1), ids: ["id \(turn)"]), .setting(Version(turn * 3 + 2)),
                .setting(Version(turn * 3 + 3), key: key(Version(turn * 3 + 3))),
            ])
            if turn == 6 { _ = try journal.saveSnapshot(state(20), version: 20) }
            if turn == 13 { _ = try journal.saveSnapshot(state(40), version: 40) }
        }
        return journal
    }

    func state(_ version: Version) -> [UInt8] { Array(#"{"value":\#(version),"list":[]}"#.utf8) }

    func key(_ version: Version) -> KeyRecord {
        KeyRecord(
            key: "key \(version)", fingerprint: "f", version: version, id: "cursor", isChange: true,
            expiry: Timestamp(milliseconds: 1 << 50))
    }

    /// Copies the journal, under its own epoch or another one.
    func copy(under epoch: Epoch? = nil) throws -> JournalSpan {
        let reader = try JournalReader(directory: scratch.path)
        return try reader.copy(to: JournalDraft(directory: other.path, epoch: epoch ?? reader.epoch))
    }

    @Test("a backup of an open journal has its commits, states, keys and epoch, and is closed in good order")
    func backup() throws {
        let journal = try filled()

        let copy = try copy()

        #expect(copy.epoch == journal.epoch)
        #expect(copy.end == 60)
        let facts = try JournalFacts(directory: other.path, at: start)
        #expect((facts.fence?.stage, facts.fence?.version) == ("closed", 60))
        #expect(facts.snapshots?.map(\.version) == [0, 20, 40, 60])
        #expect(facts.keys == 20)
        #expect(facts.files?.keys.sorted() == ["fence", "journal.sqlite"])
        #expect(facts.isInUse == false)
        #expect(try JournalFacts(directory: scratch.path, at: start).isInUse == true)
        try JournalReader(directory: other.path).verify(.deep, at: start)
        let opened = try other.open()
        #expect(opened.epoch == journal.epoch)
        #expect(try opened.state(at: 33)?.bytes == journal.state(at: 33)?.bytes)
        #expect(try opened.recover(at: start).keys == journal.recover(at: start).keys)
    }

    @Test("a backup of a damaged journal fails and leaves no journal")
    func damagedBackup() throws {
        let journal = try filled()
        try journal.database.write { db in
            try db.execute(sql: "UPDATE segments SET body = zeroblob(length(body)) WHERE first = 31")
        }

        let error = #expect(throws: JournalError.self) { try copy() }

        #expect(error?.description.contains("the commits of versions 31 to 33 is not what was recorded") == true)
        #expect(!FileManager.default.fileExists(atPath: other.path))
    }

    @Test("a copy that fails leaves a directory that was there before")
    func keptDirectory() throws {
        let journal = try filled()
        try journal.database.write { db in try db.execute(sql: "DELETE FROM segments WHERE first = 58") }
        try FileManager.default.createDirectory(atPath: other.path, withIntermediateDirectories: true)

        #expect(throws: JournalError.self) { try copy() }

        let files = try FileManager.default.contentsOfDirectory(atPath: other.path)
        #expect(files == ["lock"])
    }

    @Test("a backup of a journal that is shorter than its fence fails")
    func cutBackup() throws {
        let journal = try filled()
        try journal.database.write { db in try db.execute(sql: "DELETE FROM segments WHERE first = 58") }

        let error = #expect(throws: JournalError.self) { try copy() }

        #expect(error?.description.contains("version 60 was acknowledged: the end is lost") == true)
    }

    @Test("a backup takes the place of nothing, but of what a killed one has left")
    func occupied() throws {
        _ = try filled()
        try FileManager.default.createDirectory(atPath: other.path, withIntermediateDirectories: true)
        for name in ["draft.sqlite", "draft.sqlite-journal", "draft.sqlite-wal"] {
            try Data("half".utf8).write(to: URL(fileURLWithPath: other.path + "/" + name))
        }

        _ = try copy()

        #expect(throws: JournalError.self) { try copy() }
        #expect(try JournalReader(directory: other.path).latest == 60)
    }

    @Test("a restored journal has the states, commits, IDs and keys of the backup under a new epoch")
    func renew() throws {
        let journal = try filled()

        let copy = try copy(under: .random())

        #expect(copy.epoch != journal.epoch)
        try JournalReader(directory: other.path).verify(.deep, at: start)
        let opened = try other.open()
        #expect(opened.epoch == copy.epoch)
        for version in Version(0)...60 {
            #expect(try opened.state(at: version)?.bytes == journal.state(at: version)?.bytes)
        }
        let facts = try JournalFacts(directory: other.path, at: start)
        #expect(facts.snapshots?.map(\.version) == [0, 20, 40, 60])
        #expect(try opened.commit(id: "id 7")?.version == 22)
        #expect(try opened.recover(at: start).keys.map(\.key) == journal.recover(at: start).keys.map(\.key))
        #expect(try opened.commit(version: 2)?.patch == journal.commit(version: 2)?.patch)
    }

    @Test("a restored journal begins where the retention of the backup has left it, with the keys of dropped commits")
    func renewPruned() throws {
        let journal = try filled(.init(commitsMax: 10, snapshotsMax: 2))
        _ = try journal.saveSnapshot(state(60), version: 60)
        let base = try journal.recover(at: start).oldest
        #expect(base > 20)

        let copy = try copy(under: .random())

        #expect(copy.start == base)
        let recovery = try other.open().recover(at: start)
        #expect(recovery.oldest == base)
        #expect(recovery.keys.count == 20)
        #expect(recovery.state == state(60))
        try JournalReader(directory: other.path).verify(.deep, at: start)
    }

    @Test("the age drops what is older, and keeps what comes after the second-newest snapshot")
    func age() throws {
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        func commit(_ version: Version, age: Int64) -> Commit {
            let plain = Commit.setting(version)
            return Commit(
                version: version, time: Timestamp(milliseconds: now - age * 1000), id: plain.id, types: plain.types,
                action: plain.action, patch: plain.patch, changedPointers: plain.changedPointers)
        }
        let journal = try scratch.open(retention: .init(secondsMax: 3600))
        for version in Version(1)...30 { try journal.record([commit(version, age: version <= 25 ? 4000 : 10)]) }

        #expect(try journal.saveSnapshot(state(10), version: 10) == 0)
        // The newest two snapshots stay, so nothing after version 10 is dropped.
        #expect(try journal.saveSnapshot(state(30), version: 30) == 10)
        try journal.record([commit(31, age: 5)])
        #expect(try journal.saveSnapshot(state(31), version: 31) == 25)
        #expect(try journal.commit(version: 26) != nil)
    }

    @Test("a snapshot is due after a quarter of the time for which commits are kept")
    func ageSchedule() {
        func commit(at second: Int64) -> Commit {
            Commit(
                version: 1, time: Timestamp(milliseconds: second * 1000), id: "", types: ["set"], action: [], patch: [])
        }
        var limited = SnapshotSchedule(JournalRetention(bytesMax: 1 << 30, secondsMax: 400))
        var unlimited = SnapshotSchedule(JournalRetention(bytesMax: 1 << 30))
        limited.count([commit(at: 50), commit(at: 149)])
        unlimited.count([commit(at: 50), commit(at: 15_000)])

        let early = [limited.claim(), unlimited.claim()]
        limited.count([commit(at: 150)])
        let late = limited.claim()

        #expect(early == [false, false])
        #expect(late)
    }

    @Test("a compaction drops what the retention allows and makes the file smaller; the journal stays whole")
    func compact() throws {
        do {
            let journal = try scratch.open()
            for turn in Version(0)..<300 {
                try journal.record(
                    (turn * 10 + 1...turn * 10 + 10).map { version in
                        .setting(
                            version, type: String(repeating: "t", count: 200 + Int(version) % 97), ids: ["\(version)"])
                    })
            }
            _ = try journal.saveSnapshot(state(2000), version: 2000)
            _ = try journal.saveSnapshot(state(2990), version: 2990)
            try journal.close(state(3000), version: 3000)
        }

        let done = try SQLiteJournal.compact(
            directory: scratch.path, retention: .init(commitsMax: 100, snapshotsMax: 2), at: start)

        #expect(done.oldestBefore == 0)
        #expect(done.oldestAfter == 2900)
        #expect(done.bytesAfter < done.bytesBefore / 4)
        try JournalReader(directory: scratch.path).verify(.deep, at: start)
        #expect(try scratch.open().recover(at: start).state == state(3000))
    }

    @Test(
        "a compaction drops damaged snapshots and nothing else",
        arguments: [[20], [0], [40, 60], [0, 20, 40]] as [[Version]])
    func compactDamaged(versions: [Version]) throws {
        do {
            let journal = try filled()
            try journal.close(state(60), version: 60)
        }
        let database = try DatabaseQueue(path: scratch.path + "/journal.sqlite")
        for version in versions {
            try database.write { db in
                try db.execute(
                    sql:
                        "UPDATE snapshots SET state = CAST(replace(state, 'value', 'walue') AS BLOB) WHERE version = ?",
                    arguments: [Int64(version)])
            }
        }
        try database.close()
        let error = #expect(throws: JournalError.self) {
            try JournalReader(directory: scratch.path).verify(.deep, at: start)
        }

        let done = try SQLiteJournal.compact(directory: scratch.path, retention: .init(), at: start)

        #expect(error?.kind == .other)
        #expect(error?.description.contains("no commit is lost") == true)
        // The one of the newest version is saved anew.
        #expect(done.damagedSnapshots == versions.filter { $0 < 60 })
        let reader = try JournalReader(directory: scratch.path)
        try reader.verify(.deep, at: start)
        #expect(try reader.snapshots() == Set([0, 20, 40, 60]).subtracting(versions).union([60]).sorted())
        #expect(try reader.oldest() == 0)
        #expect(try scratch.open().recover(at: start).state == state(60))
    }

    @Test("a compaction is refused beside a server, without a journal, and on a damaged one")
    func refusedCompaction() throws {
        #expect(throws: JournalError.self) {
            try SQLiteJournal.compact(directory: other.path, retention: .init(), at: start)
        }
        var journal: SQLiteJournal? = try filled()
        let used = #expect(throws: JournalError.self) {
            try SQLiteJournal.compact(directory: scratch.path, retention: .init(), at: start)
        }
        #expect(used?.description.contains("another process is using") == true)
        try journal?.database.write { db in
            try db.execute(sql: "UPDATE segments SET hash = zeroblob(16) WHERE first = 4")
        }
        journal = nil

        let damaged = #expect(throws: JournalError.self) {
            try SQLiteJournal.compact(directory: scratch.path, retention: .init(), at: start)
        }

        #expect(damaged?.kind == .damage)
    }

    @Test(
        "a deep verification names what a plain one passes over",
        arguments: [
            (
                "UPDATE snapshots SET hash = zeroblob(16) WHERE version = 20",
                "the snapshot of version 20 is damaged; no commit"
            ),
            ("DELETE FROM ids WHERE version = 4", "the index lacks an ID of version 4"),
            ("INSERT INTO ids VALUES (77, 5)", "the index has 21 IDs, and the commits have 20"),
            ("DELETE FROM keys WHERE first = 7", "the keys of the segment from version 7 on are not in the table"),
        ])
    func deep(damage: String, sentence: String) throws {
        let journal = try filled()
        try journal.database.write { db in
            let ids = (0..<20).map {
                IDVersions.Entry(hash: IDVersions.hash(of: "id \($0)"), version: Version($0 * 3 + 1))
            }
            try IDTable.insert(ids, db)
            try IDTable.setIndexed(db, through: 60)
        }
        try JournalReader(directory: scratch.path).verify(.deep, at: start)
        try journal.database.write { db in try db.execute(sql: damage) }

        try JournalReader(directory: scratch.path).verify(.plain, at: start)
        let error = #expect(throws: JournalError.self) {
            try JournalReader(directory: scratch.path).verify(.deep, at: start)
        }

        #expect(error?.description.contains(sentence) == true, "\(error?.description ?? "nothing")")
    }

    @Test("a deep verification names a snapshot that is whole and not what the commits make")
    func wrongSnapshot() throws {
        let journal = try filled()
        try journal.database.write { db in
            try journal.rows.insertSnapshot(db, version: 40, state: state(39))
        }

        let error = #expect(throws: JournalError.self) {
            try JournalReader(directory: scratch.path).verify(.deep, at: start)
        }

        #expect(
            error?.description.contains("the snapshot of version 40 is not the state that the commits make") == true)
    }
}
