import Foundation
import HTTPMessages
import HTTPTypes
import Logging
import StateJSON
import Synchronization
import Testing

@testable import StateServer
@testable import StateStore

@Suite("The quarantine")
struct QuarantineTests {
    let scratch = JournalToolTests.Scratch()
    let logger = Logger(label: "quarantine") { _ in SwiftLogNoOpLogHandler() }

    init() throws {
        try FileManager.default.createDirectory(atPath: scratch.path, withIntermediateDirectories: true)
    }

    /// A process that ends while it reduces an action.
    func crash(_ key: String, type: String = "boom") throws {
        let mapped = try MappedPage(directory: scratch.path)
        mapped.page.prepare(boot: MappedPage.boot)
        let identity = TransactionIdentity(.key, ContentHash(Array(key.utf8)))
        mapped.page.begin(.init(identity: identity, type: type, name: key), in: 0)
        withExtendedLifetime(mapped) {}
    }

    func start() throws -> Quarantine {
        try Quarantine(directory: scratch.path, file, logger: logger)
    }

    var file: QuarantineFile {
        QuarantineFile(SharedFile(path: scratch.path + "/quarantine.json", name: QuarantineEntry.name))
    }

    @Test(
        "the first crash makes an action suspected, the second one sets it aside, and a start without a crash changes nothing"
    )
    func twoCrashes() throws {
        _ = try start()
        try crash("ci\0order 7\n2")
        #expect(try start().names.isEmpty)
        #expect(try start().names.isEmpty)
        try crash("ci\0order 7\n2")

        let names = try start().names

        let listed = try file.read() ?? []
        #expect(names == listed.map(\.id))
        #expect(listed.map(\.identification) == ["key order 7 line 3 of ci"])
        #expect(listed.first?.crashes == 2)
        #expect(listed.first?.type == "boom")
        #expect(try start().names == names)
    }

    @Test("crashes by two actions set neither aside")
    func two() throws {
        for key in ["a", "b"] {
            try crash(key)
            #expect(try start().names.isEmpty)
        }
    }

    @Test("after a retry one crash sets it aside, after a drop two; a server that runs notices both")
    func retryAndDrop() throws {
        for _ in 0..<2 {
            try crash("a")
            _ = try start()
        }
        let running = try start()
        let id = try #require(running.names.first)

        try file.change(id) { $0.state = .retry }
        running.reload()
        #expect(running.names.isEmpty)
        #expect(try file.read()?.map(\.state) == [.retry])
        try crash("a")
        #expect(try start().names == [id])
        #expect(try file.read()?.map(\.crashes) == [3])

        try file.remove(id)
        try crash("a")
        #expect(try start().names.isEmpty)
        try crash("a")
        #expect(try start().names == [id])
        #expect(throws: SettingsFault.self) { try file.remove("q0") }
    }

    @Test("a trial that the page of its server does not name is no fault of the action")
    func acquitted() throws {
        for (key, crashes) in [("a", true), ("b", false)] {
            let identity = TransactionIdentity(.key, ContentHash(Array(key.utf8)))
            try file.change { entries in
                var changed = entries ?? []
                _ = changed.begin(
                    .init(server: "http://h:1", process: "1", isOnPage: true),
                    of: .init(identity: identity, type: "boom", name: key))
                entries = changed
            }
            if crashes { try crash(key) }
        }

        let quarantine = try Quarantine(directory: scratch.path, file, server: "http://h:1", logger: logger)
        // The change comes behind the one that the start has made.
        #expect(quarantine.changes.make { _ in })

        #expect(try file.read()?.map(\.name) == ["b", "a"])
        #expect(try file.read()?.map(\.state) == [.suspected, .quarantined])
        #expect(try file.read()?.map(\.tried) == [nil, nil])
    }

    @Test("the list forgets what was computed without harm, however long it cannot be changed")
    func unreachableList() throws {
        let list = UnreachableDocument(SharedFile(path: scratch.path + "/quarantine.json", name: QuarantineEntry.name))
        let quarantine = try Quarantine(
            directory: scratch.path, QuarantineFile(list), server: "http://h:1", logger: logger)
        let record = MarkPage.Record(
            identity: TransactionIdentity(.key, ContentHash(Array("a".utf8))), type: "boom", name: "a")
        var entries = [QuarantineEntry]()
        entries.recordLoss(of: "http://h:2", during: record)
        try file.change { $0 = entries }

        list.isReachable.store(false, ordering: .relaxed)
        quarantine.changes.release(record.identity)
        #expect(!quarantine.changes.make { _ in })
        #expect(try file.read()?.count == 1)
        list.isReachable.store(true, ordering: .relaxed)
        #expect(quarantine.changes.make { _ in })

        #expect(try file.read() == [])
    }

    @Test("/readyz?verbose names the actions that are set aside, and the server is ready all the same")
    func readiness() throws {
        for _ in 0..<2 {
            try crash("a")
            _ = try start()
        }
        let quarantine = try start()
        let stage = try Stage(Stage.Setting(quarantine: quarantine))
        let id = try #require(quarantine.names.first)

        let answer = stage.receive(Request(target: "/readyz?verbose")).answer
        try file.remove(id)
        quarantine.reload()
        let after = stage.receive(Request(target: "/readyz?verbose")).answer

        let lines = answer?.lines ?? []
        #expect(lines.contains("[!]quarantine: 1 action, \(id)"), "\(lines)")
        #expect(lines.last == "ready" && answer?.status == .ok)
        #expect(after?.lines.contains("[+]quarantine: 0 actions") == true)
    }

    @Test("the line of readiness names the newest ten of many actions")
    func many() {
        let line = ServerReport.quarantineLine((1...11).map { "q\($0)" })

        #expect(line == "[!]quarantine: 11 actions, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11")
    }

    @Test("a file that cannot be read stops a start with a sentence, and leaves a running server as it was")
    func damaged() throws {
        for _ in 0..<2 {
            try crash("a")
            _ = try start()
        }
        let running = try start()
        try Data("{".utf8).write(to: URL(fileURLWithPath: scratch.path + "/quarantine.json"))

        running.reload()

        #expect(running.names.count == 1)
        let fault = #expect(throws: SettingsFault.self) { try start() }
        #expect(fault?.description.contains("quarantine.json is not JSON: ") == true)
    }
}

extension Response {
    fileprivate var lines: [String] {
        String(decoding: body, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}

/// A list that cannot be reached for a time, as one in an etcd.
private final class UnreachableDocument: SharedDocument {
    let file: SharedFile
    let isReachable = Atomic(true)
    var name: String { file.name }
    var path: String { file.path }
    var stamp: [Int]? { file.stamp }

    init(_ file: SharedFile) { self.file = file }

    func bytes() throws(SettingsFault) -> Data? { try file.bytes() }

    func change(_ change: (Data?) throws(SettingsFault) -> Data?) throws(SettingsFault) {
        guard isReachable.load(ordering: .relaxed) else { throw SettingsFault(description: "etcd is not reached") }
        try file.change(change)
    }
}
