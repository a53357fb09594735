import Foundation
import GRDB
import StateStore
import TestSupport
import Testing

@testable import StateJournal

/// Random use of a journal beside an array of commits, which is what the journal promises to be.
@Suite("The journal against a model")
struct JournalModelTests {
    let scratch = Scratch()

    @Test("appends, failures, snapshots, retention and new starts leave what an array has", arguments: 1...6)
    func random(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        let retention = JournalRetention(commitsMax: 700, snapshotsMax: 3)
        var journal = try scratch.open(retention: retention)
        var maker = CommitMaker(seed: seed, epoch: journal.epoch)
        var model: [Commit] = []
        var oldest: Version = 0
        var ids: [[UInt8]: Version] = [:]

        for step in 0..<40 {
            let latest = Version(model.count)
            let counts = [1, 1, 2, 17, 64, 255, 256, 257, 700]
            let count = Version(counts[Int.random(in: 0..<counts.count, using: &generator)])
            let turn = maker.commits(latest + 1...latest + count).map { $0.writing(value: $0.version) }
            switch Int.random(in: 0..<10, using: &generator) {
            case 0:
                try journal.database.writeWithoutTransaction { db in
                    try db.execute(
                        sql: """
                            CREATE TEMP TRIGGER failing BEFORE INSERT ON segments WHEN new.last = \(latest + count)
                            BEGIN SELECT RAISE(ABORT, 'failing'); END
                            """)
                }
                #expect(throws: JournalError.self) { try journal.record(turn) }
                try journal.database.writeWithoutTransaction { try $0.execute(sql: "DROP TRIGGER failing") }
            case 1:
                if Bool.random(using: &generator) {
                    try journal.close(Array(#"{"value":\#(latest),"list":[]}"#.utf8), version: latest)
                }
                let epoch = journal.epoch
                journal = try reopened(&journal, retention)
                #expect(journal.epoch == epoch)
                let recovery = try journal.recover(at: Timestamp(milliseconds: .min))
                #expect(recovery.version == latest, "seed \(seed)")
                // A journal that is closed prunes.
                #expect(recovery.oldest >= oldest, "seed \(seed)")
                oldest = recovery.oldest
            case 2:
                let version = latest > 0 ? latest - Version.random(in: 0...min(5, latest), using: &generator) : 0
                oldest = try journal.saveSnapshot(Array(#"{"value":\#(version),"list":[]}"#.utf8), version: version)
                #expect(latest < 701 || oldest <= latest - 700, "seed \(seed)")
            default:
                try journal.record(turn)
                model += turn
                for commit in turn { for id in commit.clientIDs { ids[Array(id.utf8)] = commit.version } }
            }
            try check(journal, model, oldest: oldest, ids, &generator, "seed \(seed), step \(step)")
        }
    }

    /// Releases the journal before another one is opened.
    private func reopened(
        _ journal: inout SQLiteJournal, _ retention: JournalRetention
    ) throws -> SQLiteJournal {
        let other = Scratch()
        journal = try other.open()
        return try scratch.open(retention: retention)
    }

    private func check(
        _ journal: SQLiteJournal, _ model: [Commit], oldest: Version, _ ids: [[UInt8]: Version],
        _ generator: inout SplitMix, _ comment: Comment
    ) throws {
        let latest = Version(model.count)
        let start = Version.random(in: oldest...latest, using: &generator)
        let read = try journal.commits(after: start, through: latest, limit: 300)
        let expected = model[Int(start)...].prefix(300)
        let isSame = read.map(Content.init) == expected.map(Content.init)
        #expect(isSame, comment)
        guard latest > 0 else { return }
        let version = Version.random(in: 1...latest, using: &generator)
        let one = try journal.commit(version: version)
        #expect(one.map(Content.init) == (version > oldest ? Content(model[Int(version) - 1]) : nil), comment)
        for (id, version) in ids.shuffled(using: &generator).prefix(5) where version > oldest {
            #expect(try journal.commit(id: text(id)).map(Content.init) == Content(model[Int(version) - 1]), comment)
        }
        #expect(try journal.commit(id: "unknown") == nil)
        let state = try journal.oldestState()
        let asked = Version.random(in: max(state, oldest)...latest, using: &generator)
        #expect(try journal.state(at: asked).map { text($0.state) } == #"{"value":\#(asked),"list":[]}"#, comment)
    }
}

extension Commit {
    /// The same commit with a patch that sets the value, so that its version can be seen in the state.
    fileprivate func writing(value: Version) -> Commit {
        Commit(
            version: version, time: time, id: id, cause: cause, root: root, by: by, trace: trace, types: types,
            action: action,
            patch: Array(#"[{"op":"add","path":"/value","value":\#(value)}]"#.utf8), changedPointers: changedPointers,
            clientIDs: clientIDs, idempotency: idempotency)
    }
}
