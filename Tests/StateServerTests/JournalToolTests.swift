import Foundation
import StateJSON
import StateJournal
import StateStore
import Testing

@testable import StateServer

@Suite("The journal tool")
struct JournalToolTests {
    /// A domain whose reducer can be replaced by another one.
    struct Sums: Domain {
        struct State: StateType {
            var value = 0
            var notes = EntityTable<String, Note>()
        }
        struct Note: Codable { var size: Double; var text: String }
        struct Add: Action { static let type = "sums/add"; var amount: Int }
        struct Put: Action { static let type = "sums/put"; var id: String; var size: Double }

        var factor = 1

        var reducer: some Reducer<State> {
            Field("value", \.value)
            Entities("notes", ids: "order", \.notes)
            On(Add.self) { state, action in state.value += factor * action.amount }
            On(Put.self) { state, action in state.notes[action.id] = Note(size: action.size, text: "é\u{1}\"/~\u{2028}")
            }
        }
    }

    /// A new directory for a test, which is removed afterwards.
    final class Scratch {
        let path = FileManager.default.temporaryDirectory.appending(path: "tool-\(UUID().uuidString)").path
        deinit { try? FileManager.default.removeItem(atPath: path) }

        func tool(_ name: String) throws -> JournalPlace {
            var settings = Settings()
            settings.data = path + "/" + name
            return try settings.journalPlace
        }

        func journal(_ name: String) throws -> SQLiteJournal {
            try SQLiteJournal.open(directory: path + "/" + name, at: Timestamp(milliseconds: 0)) {
                try CompiledDomain(Sums()).bytes(of: .of(Sums.State()))
            }.journal
        }

    }

    /// The state that a server on this journal begins with.
    func state(_ journal: SQLiteJournal) throws -> String {
        let model = try CompiledDomain(Sums())
        let recovered = try journal.recover(at: Timestamp(milliseconds: 0)).state
        return String(decoding: try model.bytes(of: model.state(from: recovered)), as: UTF8.self)
    }

    let scratch = Scratch()

    /// Records the commits of random actions; returns the journal, still open.
    func record(count: Int, seed: UInt64 = 1) throws -> SQLiteJournal {
        var generator = Numbers(state: seed)
        let journal = try scratch.journal("recorded")
        let store = UntypedStore(
            domain: try CompiledDomain(Sums()),
            origin: .init(state: .of(Sums.State()), cursor: Cursor(journal.epoch, 0)),
            now: { Timestamp(milliseconds: 77) }, journal: journal)
        for index in 0..<count {
            var items: [Transaction.Item] = []
            for part in 0..<Int.random(in: 1...3, using: &generator) {
                let number = Int.random(in: -3...9, using: &generator)
                let action: any Action =
                    number < 3 ? Sums.Add(amount: number) : Sums.Put(id: "\(number)/é", size: Double(number) / 7)
                items.append(.init(action, id: number > 0 ? "id-\(index)-\(part)" : nil))
            }
            _ = store.submitNow(Transaction(items, form: items.count > 1 ? .batch : .single))
        }
        return journal
    }

    struct Numbers: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ (state >> 29)
        }
    }

    func exported(since: Version? = nil) throws -> [[UInt8]] {
        var lines: [[UInt8]] = []
        try scratch.tool("recorded").export(since: since) { lines.append($0.dropLast()) }
        return lines
    }

    func feed(_ lines: [[UInt8]]) -> () -> [UInt8]? {
        var rest = lines[...]
        return { rest.popFirst() }
    }

    @Test("an export leads to the same state by its patches and by its actions", arguments: 1...5)
    func same(seed: UInt64) throws {
        let journal = try record(count: 200, seed: seed)
        let lines = try exported()
        let recordedState = try state(journal)

        let loaded = try scratch.tool("loaded").load(feed(lines))
        let replayed = try scratch.tool("replayed").replay(Sums(), feed(lines))

        #expect(lines.count == 201)
        #expect(loaded.commitsCount == 200)
        #expect(try state(scratch.journal("loaded")) == recordedState, "seed \(seed)")
        #expect(try state(scratch.journal("replayed")) == recordedState, "seed \(seed)")
        #expect(Set([journal.epoch, loaded.epoch, replayed.epoch]).count == 3)
        for name in ["loaded", "replayed"] {
            let copy = try scratch.journal(name)
            for version: Version in 1...200 {
                let (left, right) = (try journal.commit(version: version), try copy.commit(version: version))
                #expect(left?.action == right?.action)
                #expect(left?.patch == right?.patch)
                #expect(left?.time == right?.time)
                #expect(left?.types == right?.types)
                #expect(Set(left?.changedPointers ?? []) == Set(right?.changedPointers ?? []))
            }
            for index in 0..<200 {
                let id = "id-\(index)-0"
                #expect(try copy.commit(id: id)?.version == journal.commit(id: id)?.version)
            }
        }
    }

    @Test("an export since a version leads to the same state")
    func since() throws {
        let journal = try record(count: 50)
        let lines = try exported(since: 30)
        let recordedState = try state(journal)

        let span = try scratch.tool("replayed").replay(Sums(), feed(lines))

        #expect(lines.count == 21)
        #expect((span.start, span.end) == (30, 50))
        #expect(try state(scratch.journal("replayed")) == recordedState)
    }

    @Test("a directory with a journal is refused, and its journal stays as it is")
    func refused() throws {
        try record(count: 3).close(Array("{}".utf8), version: 3)
        let lines = try exported()

        let error = #expect(throws: (any Error).self) { _ = try scratch.tool("recorded").load(feed(lines)) }

        #expect(error.map { "\($0)" }?.contains("has a journal already") == true)
        #expect(try exported().count == 4)
    }

    @Test(
        "a recording with a fault leaves no journal behind, and the line is named",
        arguments: [
            ("gap", "line 3: it has version 3 where 2 comes next"), ("cut", "line 5: there is no further line"),
            ("damaged", "line 4: it cannot be read as JSON"),
            ("unfit", "line 5: version 4 (sums/add): the patch does not fit"),
            ("empty", "line 1: there is no line"),
        ])
    func faults(kind: String, sentence: String) throws {
        _ = try record(count: 4)
        var lines = try exported()
        switch kind {
        case "gap": lines.remove(at: 2)
        case "cut": lines.removeLast()
        case "damaged": lines[3].removeLast()
        case "unfit":
            lines[4] = Array(
                #"{"version":4,"time":1,"id":"x","action":{"type":"sums/add"},"patch":[{"op":"remove","path":"/none"}]}"#
                    .utf8)
        default: lines = []
        }

        let error = #expect(throws: (any Error).self) { _ = try scratch.tool("loaded").load(feed(lines)) }

        #expect(error.map { "\($0)" }?.hasPrefix(sentence) == true, "\(String(describing: error))")
        #expect(!FileManager.default.fileExists(atPath: scratch.path + "/loaded"))
    }

    @Test("a failed import removes the directories that it made, and no other")
    func directories() throws {
        let files = FileManager.default
        try files.createDirectory(atPath: scratch.path + "/there", withIntermediateDirectories: true)

        for name in ["there/a/b", "there"] {
            #expect(throws: (any Error).self) { _ = try scratch.tool(name).load(feed([])) }
        }

        #expect(try files.contentsOfDirectory(atPath: scratch.path + "/there") == ["lock"])
    }

    @Test("replaying an action that the domain does not know names line, version and type")
    func unknown() throws {
        _ = try record(count: 4)
        let lines = try exported()

        let error = #expect(throws: (any Error).self) { _ = try scratch.tool("replayed").replay(Number(), feed(lines)) }
        let other = #expect(throws: (any Error).self) {
            var lines = lines
            lines[2] = Array(
                #"{"version":2,"time":1,"id":"x","action":{"type":"sums/gone"},"patch":[]}"#.utf8)
            _ = try scratch.tool("replayed").replay(Sums(), feed(lines))
        }

        #expect(error.map { "\($0)" }?.hasPrefix("line 1: the state does not fit the domain: at /") == true)
        #expect(
            other.map { "\($0)" } == "line 3: version 2 (sums/gone): today's domain has no action of this type")
    }

    @Test("a running journal agrees with its domain, and a domain with another reducer gets the first difference")
    func verify() throws {
        let journal = try record(count: 100)
        let recovery = try journal.recover(at: Timestamp(milliseconds: 0))
        _ = try journal.saveSnapshot(recovery.state, version: recovery.version)
        var first: Version?
        try JournalReader(directory: scratch.path + "/recorded").forEachCommit(after: 0) { commit in
            let changes = commit.changedPointers.contains("/value")
            if first == nil, changes { first = commit.version }
        }

        let span = try scratch.tool("recorded").verify(Sums())
        let error = #expect(throws: (any Error).self) { _ = try scratch.tool("recorded").verify(Sums(factor: 3)) }

        #expect((span.start, span.end) == (0, 100))
        #expect(error.map { "\($0)" }?.hasPrefix("version \(first ?? 0) (") == true)
        #expect(error.map { "\($0)" }?.hasSuffix("today's reducers make another state at /value") == true)
    }

    @Test("a snapshot that differs from the commits is reported")
    func snapshot() throws {
        let journal = try record(count: 10)
        _ = try journal.saveSnapshot(Array(#"{"value":12345,"notes":{},"order":[]}"#.utf8), version: 6)

        let error = #expect(throws: (any Error).self) { _ = try scratch.tool("recorded").verify(Sums()) }

        #expect(error.map { "\($0)" }?.hasPrefix("version 6 (") == true)
        #expect(error.map { "\($0)" }?.contains("the snapshot differs from what the commits make at /") == true)
    }

    @Test(
        "a plain verification lists damaged snapshots, also the oldest", arguments: [[6], [0], [0, 3]] as [[Version]])
    func damagedSnapshots(versions: [Version]) throws {
        let journal = try record(count: 10)
        for version in [3, 6, 10] as [Version] {
            _ = try journal.saveSnapshot(try #require(try journal.state(at: version)?.bytes), version: version)
        }
        try journal.close(try #require(try journal.state(at: 10)?.bytes), version: 10)
        let reader = try JournalReader(directory: scratch.path + "/recorded")
        let file = URL(fileURLWithPath: scratch.path + "/recorded/journal.sqlite")
        var bytes = try Data(contentsOf: file)
        for version in versions {
            let state = Data(try #require(try reader.snapshot(version)))
            while let range = bytes.range(of: state) { bytes[range.lowerBound + 2] ^= 1 }
        }
        try bytes.write(to: file)

        let span = try scratch.tool("recorded").verify(Sums())

        #expect(span.damagedSnapshots == versions)
        #expect(span.end == 10)
    }

    @Test(
        "the tool refuses settings without a journal, and an address of etcd of another form",
        arguments: ["none", "etcd://a/b"])
    func none(data: String) {
        var settings = Settings()
        settings.data = data

        #expect(throws: SettingsFault.self) { _ = try settings.journalPlace }
    }

    @Test("a place is a directory or in etcd, and only a directory has one")
    func places() throws {
        let directory = try JournalPlace(of: "./data", Settings())
        let cluster = try JournalPlace(of: "etcd://a:1/shop", Settings())

        #expect(try directory.directory == "./data")
        #expect(cluster.description == "etcd://a:1/shop")
        #expect(throws: SettingsFault.self) { try cluster.directory }
    }

    @Test("a copy has the lines of the journal and its epoch, and one under a new epoch has the same states")
    func copies() throws {
        _ = try record(count: 120)
        let (recorded, same, new) = (
            try scratch.tool("recorded"), try scratch.tool("same"), try scratch.tool("new")
        )

        let copied = try recorded.copy(to: same, keepsEpoch: true)
        let renewed = try recorded.copy(to: new, keepsEpoch: false)

        var lines: [[UInt8]] = []
        try same.export { lines.append($0.dropLast()) }
        #expect(try lines == exported())
        #expect(copied.epoch != renewed.epoch)
        #expect(try new.verify(Sums(), .deep).end == 120)
    }
}
