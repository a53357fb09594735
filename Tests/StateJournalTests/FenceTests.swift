import Foundation
import GRDB
import StateStore
import Synchronization
import Testing

@testable import StateJournal

@Suite("The fence")
struct FenceTests {
    let scratch = Scratch()
    private var directory: DataDirectory { DataDirectory(path: scratch.path) }

    private let initial = Array(#"{"value":0,"list":[]}"#.utf8)

    /// A journal with five commits, whose process has been killed.
    private func make() throws -> Epoch {
        let live = Scratch()
        let journal = try live.open()
        for version: Version in 1...5 { try journal.record([.setting(version, ids: ["id\(version)"])]) }
        try directory.make()
        // A journal that is released closes its database; a killed process leaves the files as they are now.
        for name in ["journal.sqlite", "journal.sqlite-wal", "fence"] {
            try FileManager.default.copyItem(atPath: live.path + "/" + name, toPath: scratch.path + "/" + name)
        }
        return journal.epoch
    }

    private func record() throws -> FenceRecord {
        guard case .record(let record, _) = try Fence.read(directory) else { throw CocoaError(.fileReadUnknown) }
        return record
    }

    /// What a start without consent says; the files are then as they were.
    private func refusal() throws -> String {
        let before = try contents()
        let error = #expect(throws: JournalError.self) { try scratch.open().recover(at: start) }
        #expect(try contents() == before, "the start has changed files")
        #expect(error?.kind == .damage)
        return error?.description ?? ""
    }

    private func contents() throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: scratch.path) where !name.hasSuffix("-shm") {
            let data = try Data(contentsOf: URL(fileURLWithPath: scratch.path + "/" + name))
            // A reader of SQLite may leave an empty WAL.
            if !data.isEmpty { contents[name] = data }
        }
        return contents
    }

    private func accept(events: inout [JournalEvent]) throws -> (SQLiteJournal, SQLiteJournal.Recovery) {
        let collected = Collected()
        defer { events = collected.events }
        return try SQLiteJournal.open(
            directory: scratch.path, onDamage: .acceptLoss, at: start, report: { collected.append($0) },
            initial: { initial })
    }

    private func loss(in events: [JournalEvent]) -> Loss? {
        for case .lossAccepted(let loss) in events { return loss }
        return nil
    }

    @Test("a record is read as it was written, and no byte of it can change unseen")
    func roundTrip() throws {
        let link = ChainLink(version: 77, hash: SegmentHash(beginning: .random(), version: 3))
        let record = FenceRecord(epoch: .random(), term: 12, link: link, stage: .closed, sequence: 1 << 40)
        let bytes = record.withBytes { Array($0) }

        #expect(bytes.count == FenceRecord.size)
        #expect(bytes.withUnsafeBytes { FenceRecord($0) } == record)
        for index in bytes.indices {
            var other = bytes
            other[index] ^= 4
            #expect(other.withUnsafeBytes { FenceRecord($0) } == nil, "byte \(index)")
        }
        #expect(bytes.dropLast().withUnsafeBytes { FenceRecord($0) } == nil)
    }

    @Test("the fence has the newest version that was recorded, and says whether the journal was closed")
    func raised() throws {
        let journal = try scratch.open()
        try journal.record([.setting(1), .setting(2)])
        let open = try record()
        try journal.close(Array(#"{"value":2,"list":[]}"#.utf8), version: 2)
        let closed = try record()

        #expect((open.epoch, open.link.version, open.stage, open.term) == (journal.epoch, 2, .open, 1))
        #expect((closed.link, closed.stage) == (open.link, .closed))
        _ = try scratch.open()
        #expect(try record().term == 2)
    }

    @Test("one damaged record leaves the other one, and two leave none")
    func slots() throws {
        _ = try make()
        let newest = try record()
        let whole = try Data(contentsOf: URL(fileURLWithPath: directory.fence))
        for slot in 0..<2 {
            var damaged = whole
            damaged[slot * 4096 + 30] ^= 1
            try damaged.write(to: URL(fileURLWithPath: directory.fence))
            guard case .record(let found, isPartial: true) = try Fence.read(directory) else {
                Issue.record("slot \(slot)")
                continue
            }
            #expect(newest.link.version - found.link.version <= 1)
        }
        try Data(count: 8192).write(to: URL(fileURLWithPath: directory.fence))
        #expect(try Fence.read(directory) == .damaged)
        #expect(try refusal().contains("neither of its two records is whole"))
    }

    @Test(
        "a journal whose end is lost is refused with both versions, the file and the command, and nothing is changed",
        arguments: ["cut", "flipped", "missing"])
    func lostEnd(kind: String) throws {
        _ = try make()
        let wal = URL(fileURLWithPath: directory.journal + "-wal")
        var data = try Data(contentsOf: wal)
        switch kind {
        case "cut": data.removeLast(4200)
        case "flipped": data[data.count - 2000] ^= 1
        default: data = Data()
        }
        try data.write(to: wal)

        let said = try refusal()

        #expect(said.contains(directory.journal))
        #expect(said.contains("although version 5 was acknowledged"))
        #expect(said.hasSuffix("with the option --accept-loss of serve"))
        guard kind != "missing" else { return }
        let reader = try JournalReader(directory: scratch.path)
        let short = #expect(throws: JournalError.self) { try reader.beginning() }
        #expect(short?.description.contains("the end is lost") == true)
        #expect(try text(reader.beginning(at: 2).state) == #"{"value":2,"list":[]}"#)
    }

    @Test(
        "a journal that is missing or empty is refused where a fence was raised",
        arguments: [(nil, "missing"), (Data(), "is empty"), (Data(count: 4096), "journal")] as [(Data?, String)])
    func gone(content: Data?, says: String) throws {
        _ = try make()
        try FileManager.default.removeItem(atPath: directory.journal)
        try content?.write(to: URL(fileURLWithPath: directory.journal))

        #expect(try refusal().contains(says))
    }

    @Test("a WAL without its journal is refused, also without a fence")
    func orphan() throws {
        _ = try make()
        try FileManager.default.removeItem(atPath: directory.journal)
        try FileManager.default.removeItem(atPath: directory.fence)

        #expect(try refusal().contains("is missing, although its WAL is there"))
    }

    @Test("a fence that is missing beside a journal that has one is refused")
    func noFence() throws {
        _ = try make()
        try FileManager.default.removeItem(atPath: directory.fence)

        #expect(try refusal().contains("the fence \(directory.fence) is missing"))
        #expect(throws: JournalError.self) { try JournalReader(directory: scratch.path).verify() }
    }

    @Test("a journal of another history, or with another commit of the acknowledged version, is refused")
    func other() throws {
        _ = try make()
        var fence = try record()
        fence.link.hash = SegmentHash(beginning: fence.epoch, version: 1)
        _ = try Fence(directory, fence)
        #expect(try refusal().contains("has another commit of version 5"))

        fence.epoch = .random()
        _ = try Fence(directory, fence)
        #expect(try refusal().contains("is of another history"))
    }

    @Test(
        "a journal with a damaged name in its tables is refused as damaged, and the loss can be accepted",
        arguments: [
            "ALTER TABLE segments RENAME COLUMN first TO forst", "ALTER TABLE meta RENAME TO meto",
            "ALTER TABLE snapshots RENAME COLUMN chain TO chbin",
        ])
    func damagedNames(statement: String) throws {
        _ = try make()
        let journal = try DatabaseQueue(path: directory.journal)
        try journal.write { try $0.execute(sql: statement) }
        try journal.close()

        #expect(try refusal().contains("its tables are not those of a journal"))
        #expect(throws: JournalError.self) { try JournalReader(directory: scratch.path).verify() }
        var events: [JournalEvent] = []
        _ = try accept(events: &events)
        #expect(loss(in: events) != nil)
    }

    @Test("a journal that is ahead of its fence is whole")
    func ahead() throws {
        let epoch = try make()
        var fence = try record()
        try scratch.open().database.read { db in
            fence.link = try SegmentRows(path: directory.journal, epoch: epoch).link(db, before: 4)
        }
        _ = try Fence(directory, fence)

        #expect(try scratch.open().recover(at: start).version == 5)
        #expect(try record().link.version == 5)
    }

    @Test("a journal of an earlier program gets its fence at the first start")
    func earlier() throws {
        let epoch = try make()
        let journal = try DatabaseQueue(path: directory.journal)
        try journal.write { try $0.execute(sql: "DELETE FROM meta WHERE name = 'term'; DROP TABLE sizes") }
        try journal.close()
        try FileManager.default.removeItem(atPath: directory.fence)

        let again = try scratch.open()

        #expect(again.epoch == epoch)
        #expect(try again.recover(at: start).version == 5)
        #expect(try record().link.version == 5)
        try FileManager.default.removeItem(atPath: directory.fence)
        #expect(throws: JournalError.self) { try Inspection(directory) }
    }

    @Test("a process that is killed while it makes a journal leaves a directory in which another one begins")
    func beginning() throws {
        let epoch = Epoch.random()
        try directory.make()
        _ = try Fence(
            directory,
            FenceRecord(epoch: epoch, term: 0, link: ChainLink(beginning: epoch, version: 0), stage: .beginning))
        try directory.touch(directory.journal)

        #expect(try scratch.open().recover(at: start).version == 0)
        #expect(try record().stage == .open)
    }

    @Test("writes in a row that fail in their middle leave the newest whole record", arguments: Version(0)...3)
    func tornWrites(whole: Version) throws {
        try directory.make()
        let epoch = Epoch.random()
        let link = { ChainLink(beginning: epoch, version: $0) }
        let isFailing = Mutex(false)
        let fence = try Fence(
            directory, FenceRecord(epoch: epoch, term: 1, link: link(0), stage: .open),
            by: { descriptor, bytes, count, offset in
                guard isFailing.withLock(\.self) else { return pwrite(descriptor, bytes, count, offset) }
                // A part is written; the next call, for the rest, fails.
                guard count > 50 else { return -1 }
                return pwrite(descriptor, bytes, 50, offset)
            })
        for version in 0..<whole { try fence.raise(to: link(version + 1)) }

        isFailing.withLock { $0 = true }
        for version in Version(1)...3 {
            #expect(throws: JournalError.self) { try fence.raise(to: link(whole + version)) }
        }
        #expect(try record().link.version == whole)

        isFailing.withLock { $0 = false }
        if whole.isMultiple(of: 2) { try fence.repair() } else { try fence.close() }
        #expect(try record().link.version == whole + 3)
    }

    @Test("with the loss accepted, the history goes on from the last good version under a new epoch")
    func accepted() throws {
        let epoch = try make()
        let wal = URL(fileURLWithPath: directory.journal + "-wal")
        let data = try Data(contentsOf: wal).dropLast(100)
        try data.write(to: wal)
        let damaged = try contents()
        var events: [JournalEvent] = []

        let (journal, recovery) = try accept(events: &events)

        let loss = try #require(self.loss(in: events))
        #expect(journal.epoch != epoch)
        #expect(loss.epoch == journal.epoch)
        #expect((loss.version, loss.acknowledged, loss.start) == (4, 5, 0))
        #expect(loss.reason.contains("although version 5 was acknowledged"))
        #expect(text(recovery.state) == #"{"value":4,"list":[]}"#)
        #expect(try journal.commit(id: "id3")?.version == 3)
        #expect(try journal.commit(version: 4)?.id == "id4")
        let kept = try contents()
        #expect(kept["damaged-1.sqlite"] == damaged["journal.sqlite"])
        #expect(kept["damaged-1.sqlite-wal"] == damaged["journal.sqlite-wal"])
        #expect(kept["damaged-1.fence"] == damaged["fence"])
        try journal.record([.setting(5, to: 55)])
        try JournalReader(directory: scratch.path).verify()
    }

    @Test("with the loss accepted, damage before a good snapshot costs history and no state, and keys stay")
    func acceptedGap() throws {
        let key = KeyRecord(
            key: "k", fingerprint: "f", version: 2, id: "cursor", isChange: true,
            expiry: Timestamp(milliseconds: 1 << 50))
        do {
            let journal = try scratch.open()
            for version: Version in 1...9 { try journal.record([.setting(version, key: version == 2 ? key : nil)]) }
            _ = try journal.saveSnapshot(Array(#"{"value":6,"list":[]}"#.utf8), version: 6)
            try journal.database.write { try $0.execute(sql: "DELETE FROM segments WHERE first = 4") }
        }
        var events: [JournalEvent] = []

        let (journal, recovery) = try accept(events: &events)

        let loss = try #require(self.loss(in: events))
        #expect((loss.version, loss.start, loss.unreadableKeys) == (9, 6, 0))
        #expect(text(recovery.state) == #"{"value":9,"list":[]}"#)
        #expect(recovery.keys.map(\.key) == ["k"])
        #expect(try journal.commits(after: 6, through: 9, limit: 9).map(\.version) == [7, 8, 9])
    }

    @Test("with the loss accepted, a journal of which nothing is left begins again, and a whole one goes on")
    func acceptedNothing() throws {
        let epoch = try make()
        var events: [JournalEvent] = []
        let whole = try accept(events: &events)
        #expect(whole.0.epoch == epoch)
        #expect(loss(in: events) == nil)
        try whole.0.close(whole.1.state, version: 5)
        try FileManager.default.removeItem(atPath: directory.journal)

        let (journal, recovery) = try accept(events: &events)

        #expect(loss(in: events)?.version == nil)
        #expect(journal.epoch != epoch)
        #expect(recovery.version == 0)
    }

    @Test("a replacement that a kill interrupts is completed by the next start")
    func replacement() throws {
        let epoch = try make()
        let elsewhere = Scratch()
        let draft = try JournalDraft(in: directory, DirectoryLock(DataDirectory(path: elsewhere.path)))
        try draft.begin(initial, version: 3)
        try draft.finishReplacement(initial, version: 3)
        try FileManager.default.moveItem(
            atPath: directory.journal + "-wal", toPath: scratch.path + "/damaged-1.sqlite-wal")

        let journal = try scratch.open()

        #expect(journal.epoch == draft.epoch && journal.epoch != epoch)
        #expect(try journal.recover(at: start).version == 3)
        #expect(try contents().keys.contains("damaged-1.sqlite"))
    }

    @Test("rows with negative versions are refused with a sentence")
    func negative() throws {
        for (table, sql) in [
            ("keys", "INSERT INTO keys VALUES (-1, 9, zeroblob(16), x'01')"),
            ("segments", "INSERT INTO segments VALUES (-5, -4, zeroblob(16), x'01')"),
            ("segments", "INSERT INTO segments VALUES (0, 0, zeroblob(16), x'01')"),
            ("meta", "UPDATE meta SET value = -3 WHERE name = 'base_version'"),
        ] {
            let scratch = Scratch()
            do {
                let journal = try scratch.open()
                try journal.record([.setting(1)])
                try journal.database.write { try $0.execute(sql: sql) }
            }
            let error = #expect(throws: JournalError.self, "\(table)") { try scratch.open().recover(at: start) }
            #expect(error?.kind == .damage, "\(table): \(error?.description ?? "")")
        }
        // A snapshot is a cache.
        do {
            let journal = try scratch.open()
            try journal.record([.setting(1)])
            try journal.database.write {
                try $0.execute(sql: "INSERT INTO snapshots VALUES (-1, zeroblob(16), zeroblob(16), x'7b')")
            }
        }
        #expect(try scratch.open().recover(at: start).version == 1)
    }

    @Test("what the server makes is for its user only, and a directory that exists keeps its permissions")
    func permissions() throws {
        let permissions = { (path: String) throws -> Int? in
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        let journal = try scratch.open()
        try journal.record([.setting(1)])
        #expect(try permissions(scratch.path) == 0o700)
        for name in ["journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm", "fence", "lock"] {
            #expect(try permissions(scratch.path + "/" + name) == 0o600, "\(name)")
        }

        let other = Scratch()
        try FileManager.default.createDirectory(
            atPath: other.path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        _ = try other.open()
        #expect(try permissions(other.path) == 0o755)
    }

    @Test("the journal keeps so many bytes of commits, and two snapshots")
    func bytes() throws {
        let journal = try scratch.open(retention: .init(bytesMax: 1 << 20))
        _ = try journal.recover(at: start)
        let type = String(repeating: "x", count: 60_000)
        var snapshots = 0
        for version: Version in 1...60 {
            try journal.record([.setting(version, type: type + "\(version)")])
            guard journal.claimSnapshot() else { continue }
            snapshots += 1
            _ = try journal.saveSnapshot(Array(#"{"value":\#(version),"list":[]}"#.utf8), version: version)
        }

        let kept = try journal.database.read { try journal.rows.segmentsBytes($0, after: 0) }
        #expect(snapshots > 5)
        #expect((512 << 10...(5 << 20) / 4).contains(kept), "\(kept)")
        #expect(try journal.recover(at: start).version == 60)
        let oldest = try journal.recover(at: start).oldest
        let oldestState = try journal.oldestState()
        #expect((31...oldestState).contains(oldest))
    }
}

@Suite("Writing the fence")
struct FenceWritingTests {
    /// Writes four bytes by calls that answer so, and returns what was written, by offset.
    private func write(_ answers: [(count: Int, code: Int32)]) -> (isWritten: Bool, pieces: [[Int]], code: Int32) {
        var (answers, pieces) = (answers[...], [[Int]]())
        let isWritten = [UInt8]([1, 2, 3, 4]).withUnsafeBytes { bytes in
            Fence.write(bytes, at: 100) { start, count, offset in
                guard let answer = answers.popFirst() else { return 0 }
                pieces.append([Int(offset), count])
                errno = answer.code
                return answer.count
            }
        }
        return (isWritten, pieces, errno)
    }

    @Test("a write that is cut short goes on behind what is written, and one that a signal ends begins again")
    func parts() {
        let result = write([(-1, EINTR), (1, 0), (-1, EINTR), (3, 0)])

        #expect(result.isWritten)
        #expect(result.pieces == [[100, 4], [100, 4], [101, 3], [101, 3]])
    }

    @Test("an error ends a write, and so does a file that takes nothing")
    func errors() {
        let (broken, full) = (write([(2, 0), (-1, EIO)]), write([(0, 0)]))

        #expect(!broken.isWritten && broken.code == EIO)
        #expect(broken.pieces == [[100, 4], [102, 2]])
        #expect(!full.isWritten && full.code == ENOSPC)
        #expect(full.pieces == [[100, 4]])
    }
}

/// The events that a journal reports.
private final class Collected: Sendable {
    private let collected = Mutex<[JournalEvent]>([])
    var events: [JournalEvent] { collected.withLock { $0 } }
    func append(_ event: JournalEvent) { collected.withLock { $0.append(event) } }
}
