import Foundation
import GRDB
import StateJSON
import StateStore
import Synchronization
import TestSupport
import Testing

@testable import StateJournal

/// A journal of format 1, made by the program that wrote that format, and its export by the same program.
@Suite("The upgrade of a journal of format 1")
struct FormatUpgradeTests {
    let scratch = Scratch()

    private static func resource(_ name: String) throws -> URL {
        try #require(Bundle.module.url(forResource: "Format1", withExtension: nil)).appending(path: name)
    }

    private func copyOldJournal() throws {
        try FileManager.default.createDirectory(atPath: scratch.path, withIntermediateDirectories: true)
        try FileManager.default.copyItem(
            atPath: Self.resource("journal.sqlite").path, toPath: DataDirectory(path: scratch.path).journal)
    }

    private func old<Value>(_ read: (Database) throws -> Value) throws -> Value {
        try DatabaseQueue(path: DataDirectory(path: scratch.path).journal).write(read)
    }

    private func exported(_ directory: String) throws -> [String] {
        let reader = try JournalReader(directory: directory)
        let beginning = try reader.beginning()
        var lines = [
            Recording.line(
                of: .init(
                    epoch: reader.epoch, version: beginning.version, latest: reader.latest, state: beginning.state))
        ]
        try reader.forEachCommit(after: beginning.version) { lines.append(Recording.line(of: $0)) }
        return lines.map { String(text($0).dropLast()) }
    }

    @Test("the upgraded journal exports what the old program exported, with all keys, IDs and snapshots")
    func upgraded() throws {
        try copyOldJournal()
        let (keys, ids, pointers) = try old { db in
            (
                try Row.fetchAll(db, sql: "SELECT * FROM keys ORDER BY version"),
                try Row.fetchAll(db, sql: "SELECT id, max(version) AS version FROM ids GROUP BY id"),
                try Row.fetchAll(db, sql: "SELECT version, changedPointers, id FROM commits")
            )
        }
        let snapshots = try old { try Int64.fetchAll($0, sql: "SELECT version FROM snapshots ORDER BY version") }
        let oldLines = try String(contentsOf: Self.resource("export.jsonl"), encoding: .utf8).split(separator: "\n")

        let journal = try scratch.open()
        let recovery = try journal.recover(at: start)

        #expect(try exported(scratch.path) == oldLines.map(String.init))
        #expect(oldLines.count == 168 && keys.count > 10 && ids.count > 40 && snapshots.count == 3)
        #expect(recovery.version == 167)
        #expect(recovery.warnings == [])
        #expect(
            recovery.keys
                == keys.map { row in
                    KeyRecord(
                        key: IdempotencyKey(recorded: row["key"]), fingerprint: row["fingerprint"],
                        version: Version(row["version"] as Int64),
                        id: row["id"], isChange: row["changed"], expiry: Timestamp(milliseconds: row["expiry"]))
                })
        for row in ids {
            #expect(try journal.commit(id: row["id"])?.version == Version(row["version"] as Int64))
        }
        for row in pointers {
            let commit = try #require(try journal.commit(version: Version(row["version"] as Int64)))
            var writer = JSONWriter()
            writer.array(commit.changedPointers) { $1.string($0.description) }
            #expect(writer.bytes == [UInt8](row["changedPointers"] as Data))
            #expect(commit.clientIDs.contains(commit.id) == (row["id"] != nil))
        }
        #expect(try journal.database.read { try journal.rows.snapshotVersions($0, through: .max) } == [0, 67, 147])
        #expect(try journal.state(at: 100) != nil)
        try journal.record([.setting(168)])
        #expect(try journal.commit(version: 168)?.version == 168)
    }

    @Test("a second start finds format 2, and the file has no table of format 1")
    func once() throws {
        try copyOldJournal()
        var journal: SQLiteJournal? = try scratch.open()
        let lines = try exported(scratch.path)
        journal = nil

        journal = try scratch.open()

        #expect(try exported(scratch.path) == lines)
        let tables = try journal?.database.read {
            try String.fetchAll($0, sql: "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        }
        #expect(tables == ["ids", "keys", "meta", "segments", "sizes", "snapshots"])
    }

    @Test("an upgrade that a kill interrupts begins again at the next start, as if there had been none")
    func killed() throws {
        try copyOldJournal()
        let killed = Scratch()
        let pool = try DatabasePool(path: DataDirectory(path: scratch.path).journal)
        // What is on the disk in the middle of the upgrade is what a kill would leave.
        try pool.write { db in
            try db.execute(sql: "PRAGMA cache_size = 2")
            try FormatUpgrade.run(db, "a path") { done, total in
                #expect((done, total) == (256, 167) || done <= total)
            }
            try FileManager.default.createDirectory(atPath: killed.path, withIntermediateDirectories: true)
            for suffix in ["", "-wal"] {
                try FileManager.default.copyItem(
                    atPath: DataDirectory(path: scratch.path).journal + suffix,
                    toPath: DataDirectory(path: killed.path).journal + suffix)
            }
        }
        let size = try FileManager.default.attributesOfItem(atPath: DataDirectory(path: killed.path).journal + "-wal")[
            .size]

        let journal = try killed.open()

        #expect((size as? Int ?? 0) > 0)
        #expect(try journal.recover(at: start).version == 167)
        #expect(
            try exported(killed.path)
                == String(contentsOf: Self.resource("export.jsonl"), encoding: .utf8).split(separator: "\n")
                .map(String.init))
    }

    @Test("an upgrade that fails leaves format 1, and succeeds when the cause is gone")
    func failed() throws {
        try copyOldJournal()
        try old { try $0.execute(sql: "UPDATE commits SET changedPointers = x'7b' WHERE version = 160") }

        #expect(throws: JournalError.self) { _ = try scratch.open() }
        let format = try old { try Int.fetchOne($0, sql: "PRAGMA user_version") }
        try old { try $0.execute(sql: "UPDATE commits SET changedPointers = x'5b5d' WHERE version = 160") }
        let journal = try scratch.open()

        #expect(format == 1)
        #expect(try journal.recover(at: start).version == 167)
    }

    @Test("a journal that lacks a commit is not upgraded, and the sentence names the version")
    func gap() throws {
        try copyOldJournal()
        try old { try $0.execute(sql: "DELETE FROM commits WHERE version = 30") }

        let error = #expect(throws: JournalError.self) { _ = try scratch.open() }

        #expect(error?.description.contains("lacks the commit of version 30") == true)
        #expect(try old { try Int.fetchOne($0, sql: "SELECT count(*) FROM commits") } == 166)
    }

    @Test("keys of pruned commits and damaged snapshots stay what they are")
    func pruned() throws {
        try copyOldJournal()
        try old { db in
            try db.execute(sql: "DELETE FROM commits WHERE version <= 66; DELETE FROM ids WHERE version <= 66")
            try db.execute(sql: "UPDATE snapshots SET hash = 'x' WHERE version = 147")
        }
        let count = try old { try Int.fetchOne($0, sql: "SELECT count(*) FROM keys") }

        let journal = try scratch.open()
        let recovery = try journal.recover(at: start)

        #expect(recovery.keys.count == count)
        #expect(recovery.oldest == 66)
        #expect(recovery.warnings == ["the snapshot of version 147 is damaged; an older one is used"])
        #expect(try journal.oldestState() == 67)
    }

    @Test("a reader does not upgrade, and says who does")
    func reader() throws {
        try copyOldJournal()

        let error = #expect(throws: JournalError.self) { _ = try JournalReader(directory: scratch.path) }

        #expect(
            error?.description.hasSuffix(
                "is of format 1, this program reads format 2: start the server once, which upgrades it") == true)
    }

    @Test("an upgrade of many commits writes whole segments, and reports none that takes less than a second")
    func many() throws {
        try copyOldJournal()
        try old { db in
            try db.execute(
                sql: """
                    WITH RECURSIVE number(version) AS (SELECT 168 UNION ALL SELECT version + 1 FROM number LIMIT 2000)
                    INSERT INTO commits SELECT number.version, time, NULL, NULL, NULL, types, action,
                        '[{"op":"replace","path":"/counter/value","value":' || number.version || '}]', changedPointers
                    FROM number JOIN commits ON commits.version = 150
                    """)
            try db.execute(sql: "INSERT INTO ids SELECT 'new' || version, version FROM commits WHERE version > 167")
        }
        let events = Mutex(0)

        let journal = try SQLiteJournal(
            directory: scratch.path, report: { _ in events.withLock { $0 += 1 } }, initial: { [] })

        let segments = try journal.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM segments") }
        #expect(segments == (167 + 2000) / 256 + 1)
        #expect(try journal.recover(at: start).version == 2167)
        #expect(try journal.commit(id: "new2000")?.version == 2000)
        #expect(events.withLock { $0 } == 0)
    }
}
