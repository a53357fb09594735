import Foundation
import GRDB
import StateJSON
import StateStore
import TestSupport
import Testing

@testable import StateJournal

/// A directory for one test, removed afterwards.
final class Scratch {
    let path = FileManager.default.temporaryDirectory.appending(path: "journal-\(UUID().uuidString)").path

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    func open(retention: JournalRetention = .init()) throws -> SQLiteJournal {
        try SQLiteJournal(directory: path, retention: retention) { Array(#"{"value":0,"list":[]}"#.utf8) }
    }
}

extension SQLiteJournal {
    /// Records all of the commits or none.
    func record(_ commits: [Commit]) throws {
        guard case .landed = append(commits, after: 0) else { throw JournalError(failure ?? "no reason") }
    }
}

func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
let start = Timestamp(milliseconds: 0)

@Suite("The journal")
struct JournalTests {
    let scratch = Scratch()

    @Test("recorded commits are there after the journal is opened again, under the same epoch")
    func recover() throws {
        var journal: SQLiteJournal? = try scratch.open()
        let epoch = journal?.epoch
        try journal?.record([.setting(1), .setting(2)])
        try journal?.record([.setting(3)])
        journal = nil

        let again = try scratch.open()
        let recovery = try again.recover(at: start)

        #expect(again.epoch == epoch)
        #expect(text(recovery.state) == #"{"value":3,"list":[]}"#)
        #expect(recovery.version == 3)
        #expect(recovery.patchesCount == 3)
    }

    @Test("a new journal begins with the given state, at version 0")
    func new() throws {
        let recovery = try scratch.open().recover(at: start)

        #expect(recovery.version == 0)
        #expect(recovery.oldest == 0)
        #expect(text(recovery.state) == #"{"value":0,"list":[]}"#)
    }

    @Test("a recovery applies only the patches after the newest snapshot")
    func snapshot() throws {
        let journal = try scratch.open()
        try journal.record((1...10).map { .setting($0) })
        _ = try journal.saveSnapshot(Array(#"{"value":8,"list":[]}"#.utf8), version: 8)

        let recovery = try journal.recover(at: start)

        #expect(recovery.patchesCount == 2)
        #expect(text(recovery.state) == #"{"value":10,"list":[]}"#)
    }

    @Test("an older snapshot replaces a damaged one, with a warning", arguments: ["hash", "text"])
    func damagedSnapshot(kind: String) throws {
        let journal = try scratch.open()
        try journal.record((1...10).map { .setting($0) })
        _ = try journal.saveSnapshot(Array(#"{"value":8,"list":[]}"#.utf8), version: 8)
        try journal.database.write { db in
            try db.execute(
                sql: kind == "hash"
                    ? "UPDATE snapshots SET hash = zeroblob(16) WHERE version = 8"
                    : "UPDATE snapshots SET state = x'7b' WHERE version = 8")
        }

        let recovery = try journal.recover(at: start)

        #expect(recovery.patchesCount == 10)
        #expect(recovery.warnings == ["the snapshot of version 8 is damaged; an older one is used"])
        #expect(text(recovery.state) == #"{"value":10,"list":[]}"#)
    }

    @Test("a recovery does not need the action types of the domain")
    func unknownType() throws {
        let journal = try scratch.open()
        try journal.record([.setting(1, type: "long/gone")])

        #expect(try journal.recover(at: start).version == 1)
        #expect(try journal.commits(after: 0, through: 10, limit: 10).map(\.types) == [["long/gone"]])
    }

    @Test("a second journal on the same directory is refused, and accepted after the first has ended")
    func lock() throws {
        var first: SQLiteJournal? = try scratch.open()
        _ = first

        let error = #expect(throws: JournalError.self) { _ = try scratch.open() }
        first = nil

        #expect(error?.description.contains("another process is using the data directory") == true)
        #expect(throws: Never.self) { _ = try scratch.open() }
    }

    @Test("every commit is synced: the journal overrides the setting that GRDB chooses")
    func synchronous() throws {
        let journal = try scratch.open()

        let level = try journal.database.writeWithoutTransaction { try Int.fetchOne($0, sql: "PRAGMA synchronous") }
        let mode = try journal.database.read { try String.fetchOne($0, sql: "PRAGMA journal_mode") }

        #expect(level == 2)
        #expect(mode == "wal")
    }

    @Test("on a full disk the whole turn is refused, and the next turn that fits gets its versions")
    func full() throws {
        let journal = try scratch.open()
        try journal.record([.setting(1)])
        try journal.database.writeWithoutTransaction { db in
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            try db.execute(sql: "PRAGMA max_page_count = \(pages)")
        }

        let error = #expect(throws: JournalError.self) { try journal.record((2...2000).map { .setting($0) }) }
        let failure = journal.failure
        try journal.database.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = 1000000") }
        journal.probe()
        let afterProbe = journal.failure
        try journal.record([.setting(2, to: 77)])

        #expect(error?.description.hasSuffix("the disk is full") == true)
        #expect(failure != nil)
        #expect(afterProbe == nil)
        #expect(text(try journal.recover(at: start).state) == #"{"value":77,"list":[]}"#)
    }

    @Test("a commit is found by its version and by a client's own ID, the newest first")
    func find() throws {
        let journal = try scratch.open()
        try journal.record([.setting(1, ids: ["a", "b"]), .setting(2, ids: ["a"]), .setting(3)])

        #expect(try journal.commit(id: "a")?.version == 2)
        #expect(try journal.commit(id: "b")?.version == 1)
        #expect(try journal.commit(version: 3)?.id == "\(journal.epoch).3")
        #expect(try journal.commit(version: 4) == nil)
        #expect(try journal.commit(version: .max) == nil)
    }

    @Test("commits are read up to the published version only")
    func unpublished() throws {
        let journal = try scratch.open()
        try journal.record((1...5).map { .setting($0) })

        #expect(try journal.commits(after: 1, through: 3, limit: 10).map(\.version) == [2, 3])
    }

    @Test("a commit is read as it was recorded")
    func roundTrip() throws {
        let journal = try scratch.open()
        let commit = Commit.setting(1, ids: ["x"])
        try journal.record([commit])

        let read = try #require(try journal.commits(after: 0, through: 10, limit: 1).first)

        #expect(read.time == commit.time)
        #expect(read.action == commit.action)
        #expect(read.patch == commit.patch)
        #expect(read.changedPointers == commit.changedPointers)
        #expect(read.id == "x")
    }

    @Test(
        "idempotency keys are recovered until they expire by the time of the history, whatever the wall clock says",
        arguments: [(999, 1), (1000, 0)])
    func keys(time: Int64, count: Int) throws {
        var journal: SQLiteJournal? = try scratch.open()
        let record = KeyRecord(
            key: "k", fingerprint: "f", version: 1, id: "i", isChange: true, expiry: Timestamp(milliseconds: 1000))
        try journal?.record([.setting(1, key: record)])
        journal?.note(historyTime: Timestamp(milliseconds: time))
        try journal?.close(Array("{}".utf8), version: 1)
        journal = nil

        for now in [0, Int64.max / 2] {
            let again = try scratch.open()
            let recovery = try again.recover(at: Timestamp(milliseconds: now))
            #expect(recovery.keys == Array(repeating: record, count: count))
            #expect(recovery.historyTime?.milliseconds == time)
            try again.close(Array("{}".utf8), version: 1)
        }
    }

    @Test("without a time of the history, or with a damaged one, no key expires at a start")
    func lostHistoryTime() throws {
        var journal: SQLiteJournal? = try scratch.open()
        let record = KeyRecord(
            key: "k", fingerprint: "f", version: 1, id: "i", isChange: true, expiry: Timestamp(milliseconds: 1000))
        try journal?.record([.setting(1, key: record)])
        let without = try journal?.recover(at: Timestamp(milliseconds: 5000))
        journal?.note(historyTime: Timestamp(milliseconds: 2000))
        try journal?.writeHistoryTime()
        let with = try journal?.recover(at: Timestamp(milliseconds: 5000))
        try journal?.database.write {
            try $0.execute(sql: "UPDATE meta SET value = zeroblob(8) || substr(value, 9) WHERE name = 'history_time'")
        }
        let damaged = try journal?.recover(at: Timestamp(milliseconds: 5000))
        journal = nil

        #expect(without?.keys == [record] && without?.historyTime?.milliseconds == 999)
        #expect(with?.keys == [] && with?.historyTime?.milliseconds == 2000)
        #expect(damaged?.keys == [record] && damaged?.historyTime?.milliseconds == 999)
    }

    @Test("pruning deletes the keys that have expired by the time of the history")
    func prunedKeys() throws {
        let journal = try scratch.open()
        _ = try journal.recover(at: Timestamp(milliseconds: 0))
        let record = KeyRecord(
            key: "k", fingerprint: "f", version: 1, id: "i", isChange: true, expiry: Timestamp(milliseconds: 1000))
        try journal.record([.setting(1, key: record)])
        func count() throws -> Int? {
            try journal.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM keys") }
        }

        journal.note(historyTime: Timestamp(milliseconds: 1000))
        _ = try journal.saveSnapshot(Array("{}".utf8), version: 1)
        #expect(try count() == 1)
        journal.note(historyTime: Timestamp(milliseconds: 1001))
        _ = try journal.saveSnapshot(Array("{}".utf8), version: 1)
        #expect(try count() == 0)
    }

    @Test("the journal keeps the configured number of commits, and all after its oldest snapshot")
    func retention() throws {
        let journal = try scratch.open(retention: .init(commitsMax: 5, snapshotsMax: 2))
        for version in stride(from: Version(1), through: 40, by: 10) {
            try journal.record((version..<version + 10).map { .setting($0) })
            let end = version + 9
            _ = try journal.saveSnapshot(Array(#"{"value":\#(end),"list":[]}"#.utf8), version: end)
        }

        let recovery = try journal.recover(at: start)

        #expect(recovery.oldest == 30)
        #expect(recovery.version == 40)
        #expect(try journal.oldestState() == 30)
        #expect(try journal.state(at: 35).map { text($0.state) } == #"{"value":35,"list":[]}"#)
        #expect(try journal.state(at: 29) == nil)
    }

    @Test("a snapshot is due after ten thousand commits and not before")
    func due() throws {
        let journal = try scratch.open()
        _ = try journal.recover(at: start)
        try journal.record((1...9999).map { .setting($0) })
        let before = journal.claimSnapshot()
        try journal.record([.setting(10_000)])

        #expect(!before)
        #expect(journal.claimSnapshot())
        #expect(!journal.claimSnapshot())
    }

    @Test(
        "a journal of another format is refused, with both numbers",
        arguments: [(1, "the program that wrote it"), (99, "a newer program")])
    func otherFormat(_ format: Int, _ program: String) throws {
        var journal: SQLiteJournal? = try scratch.open()
        try journal?.database.write { try $0.execute(sql: "PRAGMA user_version = \(format)") }
        journal = nil

        let error = #expect(throws: JournalError.self) { _ = try scratch.open() }

        #expect(
            error?.description.hasSuffix("is of format \(format), this program reads format 2: use \(program)") == true)
    }

    @Test("a file that is no journal is refused as damaged")
    func noJournal() throws {
        try FileManager.default.createDirectory(atPath: scratch.path, withIntermediateDirectories: true)
        try Data(repeating: 7, count: 8192).write(to: URL(fileURLWithPath: scratch.path + "/journal.sqlite"))

        let error = #expect(throws: JournalError.self) { _ = try scratch.open() }

        #expect(error?.description.contains("damaged or is not a journal") == true)
    }
}
