import Foundation
import StateStore
import Synchronization
import TestSupport
import Testing

@testable import StateJournal

/// A suite of tests on the data directory of a journal whose process has been killed.
protocol FenceSuite {
    /// The data directory.
    var scratch: Scratch { get }
}

extension FenceSuite {
    var directory: DataDirectory { DataDirectory(path: scratch.path) }

    var initial: [UInt8] { Array(#"{"value":0,"list":[]}"#.utf8) }

    /// A journal with five commits, whose process has been killed.
    func make() throws -> Epoch {
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

    func record() throws -> FenceRecord {
        guard case .record(let record, _) = try Fence.read(directory) else { throw CocoaError(.fileReadUnknown) }
        return record
    }

    /// What a start without consent says; the files are then as they were.
    func refusal() throws -> String {
        let before = try contents()
        let error = #expect(throws: JournalError.self) { try scratch.open().recover(at: start) }
        #expect(try contents() == before, "the start has changed files")
        #expect(error?.kind == .damage)
        return error?.description ?? ""
    }

    func contents() throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: scratch.path)
        where !name.hasSuffix("-shm") && name != "lock" {
            let data = try Data(contentsOf: URL(fileURLWithPath: scratch.path + "/" + name))
            // A reader of SQLite may leave an empty WAL.
            if !data.isEmpty { contents[name] = data }
        }
        return contents
    }

    func accept(events: inout [JournalEvent]) throws -> (SQLiteJournal, JournalRecovery) {
        let collected = Collected()
        defer { events = collected.events }
        return try SQLiteJournal.open(
            directory: scratch.path, acceptsLoss: true, at: start, report: { collected.append($0) },
            initial: { initial })
    }

    func loss(in events: [JournalEvent]) -> Loss? {
        for case .lossAccepted(let loss) in events { return loss }
        return nil
    }
}

/// The events that a journal reports.
final class Collected: Sendable {
    private let collected = Mutex<[JournalEvent]>([])
    var events: [JournalEvent] { collected.withLock { $0 } }
    func append(_ event: JournalEvent) { collected.withLock { $0.append(event) } }
}
