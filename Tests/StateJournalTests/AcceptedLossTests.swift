import Foundation
import GRDB
import StateStore
import TestSupport
import Testing

@testable import StateJournal

@Suite("Starts that accept a loss")
struct AcceptedLossTests: FenceSuite {
    let scratch = Scratch()

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
        try JournalReader(directory: scratch.path).verify(.plain, at: Timestamp(milliseconds: 0))
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
        try draft.begin(version: 3, keys: [])
        try draft.save(initial)
        try draft.finishReplacement()
        try FileManager.default.moveItem(
            atPath: directory.journal + "-wal", toPath: scratch.path + "/damaged-1.sqlite-wal")

        let journal = try scratch.open()

        #expect(journal.epoch == draft.epoch && journal.epoch != epoch)
        #expect(try journal.recover(at: start).version == 3)
        #expect(try contents().keys.contains("damaged-1.sqlite"))
    }
}
