import StateStore
import TestSupport
import Testing

@Suite("A copy of a history")
struct HistoryCopyTests {
    /// A history in memory whose state at version n has the value n.
    struct Recorded: RecordedHistory {
        var epoch = Epoch.random()
        var start: Version = 3
        var latest: Version = 9
        var domain: HistoryDomain? = HistoryDomain(name: "numbers", since: 4)
        /// The versions of the saved states, and whether each is undamaged.
        var saved: [Version: Bool] = [3: true, 6: true, 9: true]

        func oldest() -> Version { start }
        func holding<Value>(_ body: () throws -> Value) throws -> Value { try body() }
        func verify(_ depth: HistoryDepth, at time: Timestamp) {}
        func beginning() -> HistoryBeginning { beginning(at: start) }
        func beginning(at version: Version) -> HistoryBeginning {
            (version, Array("made \(version)".utf8))
        }
        func forEachCommit(after start: Version, _ body: (Commit) throws -> Void) throws {
            for version in start + 1...latest {
                let key = key(version, id: Cursor(epoch, version).description)
                try body(.setting(version, ids: ["id \(version)"], key: key))
            }
        }
        func snapshots() -> [Version] { saved.keys.sorted() }
        func snapshot(_ version: Version) -> [UInt8]? {
            saved[version] == true ? Array("saved \(version)".utf8) : nil
        }
        func keys(through version: Version) -> [KeyRecord] { [key(2, id: Cursor(epoch, 2).description)] }

        func key(_ version: Version, id: String) -> KeyRecord {
            KeyRecord(
                key: "key", fingerprint: "f", version: version, id: id, isChange: true,
                expiry: Timestamp(milliseconds: 1))
        }
    }

    /// A draft that writes down what it is told.
    final class Draft: HistoryDraft {
        let epoch: Epoch
        var domain: HistoryDomain?
        var events: [String] = []
        var keys: [KeyRecord] = []

        init(_ epoch: Epoch) { self.epoch = epoch }

        func begin(version: Version, keys: [KeyRecord]) {
            events.append("begin \(version) of \(domain?.name ?? "no domain")")
            self.keys += keys
        }
        func append(_ commit: Commit) {
            events.append("\(commit.version)")
            if let key = commit.idempotency { keys.append(key) }
        }
        func save(_ state: [UInt8]) { events.append(String(decoding: state, as: UTF8.self)) }
        func finish() { events.append("finish") }
    }

    @Test("a copy has the commits in order, each saved state behind its commit, and the keys")
    func whole() throws {
        let recorded = Recorded()
        let draft = Draft(recorded.epoch)

        let span = try recorded.copy(to: draft)

        #expect((span.epoch, span.start, span.end) == (recorded.epoch, 3, 9))
        #expect(
            draft.events == [
                "begin 3 of numbers", "saved 3", "4", "5", "6", "saved 6", "7", "8", "9", "saved 9", "finish",
            ])
        #expect(draft.keys.map(\.version) == [2, 4, 5, 6, 7, 8, 9])
    }

    @Test(
        "a copy ends with a state: that of the commits where none is saved there, or the saved one is damaged",
        arguments: [[1: true, 3: true, 6: false], [3: true, 9: false]] as [[Version: Bool]])
    func states(saved: [Version: Bool]) throws {
        let draft = Draft(.random())

        _ = try Recorded(saved: saved).copy(to: draft)

        #expect(draft.events == ["begin 3 of numbers", "saved 3", "4", "5", "6", "7", "8", "9", "made 9", "finish"])
    }

    @Test("under another epoch the cursors are those of the new history, and the keys keep their names")
    func renewed() throws {
        let draft = Draft(.random())

        _ = try Recorded().copy(to: draft)

        #expect(draft.keys.map(\.id) == draft.keys.map { Cursor(draft.epoch, $0.version).description })
        #expect(Set(draft.keys.map(\.key)) == ["key"])
    }
}
