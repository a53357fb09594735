import Foundation
import GRDB
import StateStore
import Synchronization
import TestSupport
import Testing

@testable import StateJournal

@Suite("The fence")
struct FenceTests: FenceSuite {
    let scratch = Scratch()

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

    @Test("a fence has the mode and the group of the one that it replaces", arguments: [0o660, 0o640, 0o600])
    func group(mode: Int) throws {
        _ = try make()
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: directory.fence)
        let group = getuid() == 0 ? 4321 : getgid()
        #expect(chown(directory.fence, uid_t.max, group) == 0)

        try scratch.open().close(Array("0".utf8), version: 0)

        let attributes = try FileManager.default.attributesOfItem(atPath: directory.fence)
        #expect(attributes[.posixPermissions] as? Int == mode)
        #expect(attributes[.groupOwnerAccountID] as? Int == Int(group))
    }

    @Test("a refusal names both users, where a file is of another one")
    func users() throws {
        errno = EACCES
        let own = DataDirectory.failure("open", "/proc/self/stat").description
        guard getuid() == 0 else { return }
        try directory.make()
        let file = scratch.path + "/other"
        try Data().write(to: URL(fileURLWithPath: file))
        #expect(chown(file, 1234, 1234) == 0)
        errno = EACCES

        let fault = DataDirectory.failure("open", file).description

        #expect(fault.hasSuffix("Permission denied; it belongs to the user 1234, and this process is of the user 0"))
        #expect(own.hasSuffix("Permission denied"))
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
        #expect(throws: JournalError.self) {
            try JournalReader(directory: scratch.path).verify(.plain, at: Timestamp(milliseconds: 0))
        }
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
        #expect(throws: JournalError.self) {
            try JournalReader(directory: scratch.path).verify(.plain, at: Timestamp(milliseconds: 0))
        }
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
        let unwritten = try #require(fence.unwritten)
        if whole.isMultiple(of: 2) { try fence.raise(to: unwritten) } else { try fence.close() }
        #expect(try record().link.version == whole + 3)
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
