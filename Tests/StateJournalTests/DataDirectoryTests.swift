import Foundation
import GRDB
import StateStore
import TestSupport
import Testing

@testable import StateJournal

@Suite("The data directory")
struct DataDirectoryTests {
    let scratch = Scratch()

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

    @Test("a value of another type is as none: the epoch is missing with a sentence, the domain has no schema")
    func otherTypes() throws {
        do {
            let journal = try scratch.open()
            try journal.setDomain(HistoryDomain(name: "counter", since: 0, isHeldToSchema: true))
            try journal.database.write {
                try $0.execute(sql: "UPDATE meta SET value = 'x' WHERE name = 'domain_schema'")
            }
        }
        do {
            let journal = try scratch.open()
            #expect(try journal.domain()?.isHeldToSchema == nil)
            try journal.database.write { try $0.execute(sql: "UPDATE meta SET value = 5 WHERE name = 'epoch'") }
        }
        let error = #expect(throws: JournalError.self) { try scratch.open() }
        #expect(error?.description.contains("it has no epoch") == true)
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
