import Foundation
import GRDB
import StateJSON
import StateStore
import TestSupport
import Testing

@testable import StateJournal

@Suite("A recording")
struct RecordingTests {
    let recorded = Epoch("aaaaaaaaaaaaaaaa") ?? .random()
    let epoch = Epoch("bbbbbbbbbbbbbbbb") ?? .random()

    func reader(_ header: String? = nil) throws -> RecordingReader {
        let plain = Recording.line(of: .init(epoch: recorded, version: 4, latest: 6, state: Array("{}".utf8)))
        return try RecordingReader(header.map { Array($0.utf8) } ?? plain, for: epoch)
    }

    @Test("a commit is read from its line as it was recorded, under the new epoch")
    func roundTrip() throws {
        var reader = try reader()
        let single = Commit(
            version: 5, time: Timestamp(milliseconds: -7), id: "mine", cause: "\(recorded).3", root: "theirs",
            by: "ada", trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", types: ["set"],
            action: Array(#"{"id":"mine","type":"set"}"#.utf8), patch: Array("[]".utf8),
            clientIDs: ["mine"])
        let batch = Commit(
            version: 6, time: Timestamp(milliseconds: 8), id: "\(recorded).6", types: ["set", "get"],
            action: Array(#"[{"type":"set"},{"type":"get"}]"#.utf8), patch: Array("[]".utf8), clientIDs: ["a", "b"])

        let first = try reader.take(Recording.line(of: single))
        let second = try reader.take(Recording.line(of: batch))
        try reader.end()

        #expect(first.version == 5)
        #expect(first.time == single.time)
        #expect(first.id == "mine")
        #expect(first.clientIDs == ["mine"])
        #expect(first.cause == "\(epoch).3")
        #expect(first.root == "theirs")
        #expect(first.by == "ada")
        #expect(first.trace == single.trace)
        #expect(second.trace == nil)
        #expect(first.action == single.action)
        #expect(second.id == "\(epoch).6")
        #expect(second.clientIDs == ["a", "b"])
        #expect(second.types == ["set", "get"])
    }

    @Test("the IDs of a batch that are equal as Swift strings are two IDs where their bytes differ")
    func canonicallyEquivalent() throws {
        var reader = try reader()
        let ids = ["caf\u{E9}", "cafe\u{301}"]
        let batch = Commit(
            version: 5, time: Timestamp(milliseconds: 8), id: "\(recorded).5", types: ["set", "get"],
            action: Array(#"[{"type":"set"},{"type":"get"}]"#.utf8), patch: Array("[]".utf8), clientIDs: ids)

        let read = try reader.take(Recording.line(of: batch))

        #expect(read.clientIDs.map { Array($0.utf8) } == ids.map { Array($0.utf8) })
    }

    @Test(
        "a line that is no commit is named by its number",
        arguments: [
            ("", "it cannot be read as JSON: the text is empty; a JSON value was expected"),
            ("[]", "it is not a JSON object"), ("{}", "version is missing"),
            (
                #"{"version":7,"time":1,"id":"x","action":{"type":"t"},"patch":[]}"#,
                "it has version 7 where 5 comes next"
            ),
            (
                #"{"version":5,"time":1.5,"id":"x","action":{"type":"t"},"patch":[]}"#,
                "time is not a whole number in its range"
            ),
            (
                #"{"version":5,"time":-9223372036854775808,"id":"x","action":{"type":"t"},"patch":[]}"#,
                "time is not a time of the years 0 to 9999"
            ),
            (
                #"{"version":5,"time":253402300800000,"id":"x","action":{"type":"t"},"patch":[]}"#,
                "time is not a time of the years 0 to 9999"
            ),
            (
                #"{"version":5,"time":1,"id":"x","action":{},"patch":[]}"#,
                "action is not an object with a type, or an array of them"
            ),
            (
                #"{"version":5,"time":1,"id":"x","action":{"type":"t"},"patch":{}}"#,
                "patch is not an array of operations"
            ),
            (
                #"{"version":5,"time":1,"id":"x","action":{"type":"t"},"patch":[],"more":1}"#,
                "there is no member more in a recording"
            ),
            (
                #"{"version":5,"time":1,"id":"aaaaaaaaaaaaaaaa.4","action":{"type":"t"},"patch":[]}"#,
                "id is spelled like the cursor of another commit"
            ),
        ])
    func damaged(line: String, detail: String) throws {
        var reader = try reader()

        let fault = #expect(throws: RecordingFault.self) { _ = try reader.take(Array(line.utf8)) }

        #expect(fault?.description == "line 2: \(detail)")
    }

    @Test("a line that was cut off is named by its number")
    func cutLine() throws {
        var reader = try reader()
        _ = try reader.take(Recording.line(of: .setting(5, ids: ["x"])))

        let fault = #expect(throws: RecordingFault.self) {
            _ = try reader.take(Recording.line(of: .setting(6, ids: ["x"])).dropLast(9))
        }

        #expect(fault?.line == 3)
        #expect(fault?.detail.hasPrefix("it cannot be read as JSON") == true)
    }

    @Test("a recording that ends before the version its header names is refused")
    func cutOff() throws {
        var reader = try reader()
        _ = try reader.take(Recording.line(of: .setting(5, ids: ["x"])))

        let fault = #expect(throws: RecordingFault.self) { try reader.end() }

        #expect(
            fault?.description
                == "line 3: there is no further line; the header says that the recording ends at version 6, not 5")
    }

    @Test(
        "a first line that is no header is refused",
        arguments: [
            #"{"version":5}"#, #"{"storekeeper":"state"}"#,
            #"{"storekeeper":"journal","format":2,"epoch":"aaaaaaaaaaaaaaaa","version":0,"state":{}}"#,
            #"{"storekeeper":"journal","format":1,"epoch":"a","version":0,"state":{}}"#,
            #"{"storekeeper":"journal","format":1,"epoch":"aaaaaaaaaaaaaaaa","version":-1,"state":{}}"#,
            #"{"storekeeper":"journal","format":1,"epoch":"aaaaaaaaaaaaaaaa","version":4611686018427387904,"state":{}}"#,
            #"{"storekeeper":"journal","format":1,"epoch":"aaaaaaaaaaaaaaaa","version":0}"#,
        ])
    func header(line: String) {
        let fault = #expect(throws: RecordingFault.self) { _ = try reader(line) }

        #expect(fault?.line == 1)
    }

    @Test("a header without the version of the last commit is valid")
    func openEnd() throws {
        let reader = try reader(
            #"{"storekeeper":"journal","format":1,"epoch":"aaaaaaaaaaaaaaaa","version":3,"state":{"a":1}}"#)

        try reader.end()

        #expect(reader.header.version == 3)
        #expect(text(reader.header.state) == #"{"a":1}"#)
    }
}

@Suite("Journal readers")
struct JournalReaderTests {
    let scratch = Scratch()

    func versions(_ reader: JournalReader, after version: Version) throws -> [Version] {
        var versions: [Version] = []
        try reader.forEachCommit(after: version) { versions.append($0.version) }
        return versions
    }

    @Test("a reader reads a journal that a server has open, up to the version at which the reader was opened")
    func beside() throws {
        let journal = try scratch.open()
        try journal.record((1...2500).map { .setting($0) })
        let reader = try JournalReader(directory: scratch.path)
        try journal.record([.setting(2501)])

        let beginning = try reader.beginning()

        #expect(reader.epoch == journal.epoch)
        #expect(beginning.version == 0)
        #expect(text(beginning.state) == #"{"value":0,"list":[]}"#)
        #expect(try versions(reader, after: 0) == Array(1...2500))
        #expect(try versions(reader, after: 2498) == [2499, 2500])
    }

    @Test("commits have their client IDs, those of a batch too")
    func ids() throws {
        let journal = try scratch.open()
        try journal.record([.setting(1, ids: ["a", "b"]), .setting(2)])
        var ids: [[String]] = []

        try JournalReader(directory: scratch.path).forEachCommit(after: 0) { ids.append($0.clientIDs) }

        #expect(ids == [["a", "b"], []])
    }

    @Test("a reader begins with the oldest undamaged snapshot, and refuses to pass over missing commits")
    func gap() throws {
        let journal = try scratch.open()
        for version: Version in 1...30 { try journal.record([.setting(version)]) }
        for version: Version in [10, 20] {
            _ = try journal.saveSnapshot(Array(#"{"value":\#(version),"list":[]}"#.utf8), version: version)
        }
        let whole = try JournalReader(directory: scratch.path).beginning().version
        try journal.database.write {
            try $0.execute(sql: "UPDATE snapshots SET hash = zeroblob(16) WHERE version = 0")
        }
        let afterDamage = try JournalReader(directory: scratch.path).beginning().version
        try journal.database.write { try $0.execute(sql: "DELETE FROM segments WHERE first = 7") }
        let gap = #expect(throws: JournalError.self) { try JournalReader(directory: scratch.path).beginning() }
        let afterGap = try JournalReader(directory: scratch.path).beginning(at: 15).version
        let error = #expect(throws: JournalError.self) {
            try versions(JournalReader(directory: scratch.path), after: 5)
        }

        #expect([whole, afterDamage, afterGap] == [0, 10, 15])
        #expect(gap?.description.contains("lacks commits before version 8: with --since 7 or a later version") == true)
        #expect(error?.description.contains("lacks the commit of version 7") == true)
    }

    @Test(
        "a reader begins with any version whose state and later commits are kept, and refuses the versions beside them")
    func since() throws {
        let journal = try scratch.open(retention: .init(commitsMax: 5, snapshotsMax: 2))
        for version in stride(from: Version(1), through: 40, by: 10) {
            try journal.record((version..<version + 10).map { .setting($0) })
            let end = version + 9
            _ = try journal.saveSnapshot(Array(#"{"value":\#(end),"list":[]}"#.utf8), version: end)
        }
        let reader = try JournalReader(directory: scratch.path)

        let early = #expect(throws: JournalError.self) { _ = try reader.beginning(at: 29) }
        let late = #expect(throws: JournalError.self) { _ = try reader.beginning(at: 41) }

        #expect(text(try reader.beginning(at: 30).state) == #"{"value":30,"list":[]}"#)
        #expect(text(try reader.beginning(at: 33).state) == #"{"value":33,"list":[]}"#)
        #expect(text(try reader.beginning(at: 40).state) == #"{"value":40,"list":[]}"#)
        #expect(early?.description.hasSuffix("the oldest is 30") == true)
        #expect(late?.description.hasSuffix("ends at version 40: there is no version 41") == true)
    }

    @Test("a commit that is pruned meanwhile is an error")
    func dropped() throws {
        let journal = try scratch.open()
        try journal.record((1...2500).map { .setting($0) })
        let reader = try JournalReader(directory: scratch.path)

        let error = #expect(throws: JournalError.self) {
            try reader.forEachCommit(after: 0) { commit in
                guard commit.version == 1 else { return }
                try journal.database.write { db in
                    let link = try journal.rows.link(db, before: 1600)
                    try db.execute(sql: "DELETE FROM segments WHERE last <= ?", arguments: [Int64(link.version)])
                    try JournalSchema.setBase(db, link)
                }
            }
        }

        #expect(error?.description.contains("lacks the commit of version 1001") == true)
    }

    @Test("a directory without a journal is refused and not created")
    func none() throws {
        let error = #expect(throws: JournalError.self) { _ = try JournalReader(directory: scratch.path) }

        #expect(error?.description == "there is no journal in the data directory \(scratch.path)")
        #expect(!FileManager.default.fileExists(atPath: scratch.path))
    }
}

@Suite("Journal drafts")
struct JournalDraftTests {
    let scratch = Scratch()
    let state = Array(#"{"value":0,"list":[]}"#.utf8)

    func files() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: scratch.path).sorted() }

    @Test("a finished draft is a journal")
    func finished() throws {
        let draft = try JournalDraft(directory: scratch.path)
        try draft.begin(version: 3, keys: [])
        try draft.save(state)
        for version: Version in 4...1200 { try draft.append(.setting(version, ids: ["id\(version)"])) }
        try draft.save(Array(#"{"value":1200,"list":[]}"#.utf8))
        try draft.finish()

        let files = try files()
        let journal = try scratch.open()
        let recovery = try journal.recover(at: start)

        #expect(files == ["fence", "journal.sqlite", "lock"])
        #expect(journal.epoch == draft.epoch)
        #expect(recovery.version == 1200)
        #expect(recovery.oldest == 3)
        #expect(recovery.patchesCount == 0)
        #expect(try journal.state(at: 77).map { text($0.state) } == #"{"value":77,"list":[]}"#)
        #expect(try journal.commit(id: "id77")?.version == 77)
    }

    @Test("a draft that is released leaves no journal, and another draft can begin")
    func droppedDraft() throws {
        var draft: JournalDraft? = try JournalDraft(directory: scratch.path)
        try draft?.begin(version: 0, keys: [])
        try draft?.save(state)
        for version: Version in 1...1500 { try draft?.append(.setting(version)) }
        draft = nil

        // The directory was made for the draft.
        #expect(!FileManager.default.fileExists(atPath: scratch.path))
        #expect(throws: Never.self) { _ = try JournalDraft(directory: scratch.path) }
    }

    @Test("a draft replaces the file that a killed process has left")
    func killed() throws {
        try FileManager.default.createDirectory(atPath: scratch.path, withIntermediateDirectories: true)
        try Data("half a draft".utf8).write(to: URL(fileURLWithPath: scratch.path + "/draft.sqlite"))

        let draft = try JournalDraft(directory: scratch.path)
        try draft.begin(version: 0, keys: [])
        try draft.save(state)
        try draft.finish()

        #expect(try files() == ["fence", "journal.sqlite", "lock"])
    }

    @Test(
        "a directory with a journal, or with a part of one, is refused",
        arguments: ["journal.sqlite", "journal.sqlite-wal"])
    func refused(name: String) throws {
        try FileManager.default.createDirectory(atPath: scratch.path, withIntermediateDirectories: true)
        try Data().write(to: URL(fileURLWithPath: scratch.path + "/" + name))

        let error = #expect(throws: JournalError.self) { _ = try JournalDraft(directory: scratch.path) }

        #expect(error?.description.contains("has a journal already") == true)
        #expect(try files() == [name, "lock"])
    }

    @Test("a directory that a server has locked is refused")
    func locked() throws {
        let journal = try scratch.open()

        let error = #expect(throws: JournalError.self) { _ = try JournalDraft(directory: scratch.path) }

        #expect(error?.description.contains("another process is using") == true)
        #expect(journal.failure == nil)
    }
}
