import Foundation
import StateJSON
import StateStore
import Testing

@testable import StateJournal

/// A journal that 2487a34 wrote: it joins keys and IDs with subjects.
@Suite("Keys and IDs that were recorded as one text")
struct RecordedNamesTests {
    let scratch = Scratch()

    private func opened() throws -> SQLiteJournal {
        let folder = try #require(Bundle.module.url(forResource: "Format2", withExtension: nil))
        try FileManager.default.copyItem(atPath: folder.path, toPath: scratch.path)
        return try scratch.open()
    }

    @Test("each key has its subject and its line, and two spellings of a subject are two")
    func keys() throws {
        let recovery = try opened().recover(at: start)

        #expect(
            recovery.keys.map(\.key) == [
                IdempotencyKey("key-1", of: "ci"), IdempotencyKey("key-1", of: "a"),
                IdempotencyKey("key-2", of: "caf\u{E9}"), IdempotencyKey("load", of: "ci", line: 0),
                IdempotencyKey("load", of: "ci", line: 1),
            ])
        #expect(recovery.keys.map(\.version) == [1, 2, 4, 5, 6])
    }

    @Test("an ID is found by its own subject, whatever another subject has put into one")
    func ids() throws {
        let journal = try opened()

        for (id, subject, version) in [
            ("order-1", "ci", 1), ("order-1", "a", 2), ("a order-1", "ci", 3), ("order-2", "caf\u{E9}", 4),
        ] as [(String, String, Version)] {
            #expect(try journal.commit(id: id, by: subject)?.version == version, "\(id) of \(subject)")
        }
        for (id, subject) in [("order-2", "cafe\u{301}"), ("a order-1", "a"), ("order-1", "b")] {
            #expect(try journal.commit(id: id, by: subject) == nil, "\(id) of \(subject)")
        }
        #expect(try journal.commit(id: "a order-1")?.version == 3)
    }

    @Test("the index finds by the hash that it has of both texts with a NUL between them")
    func hashes() {
        let joined = Int64(bitPattern: ContentHash(Array("ci\0order-1".utf8)).low)

        #expect(IDVersions.hash(of: "order-1", by: "ci") == joined)
        #expect(IDVersions.hash(of: "ci\0order-1") == joined)
        #expect(IDVersions.hash(of: "order-1") == Int64(bitPattern: ContentHash(Array("order-1".utf8)).low))
    }
}
