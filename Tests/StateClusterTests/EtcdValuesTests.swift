import Foundation
import StateJournal
import StateStore
import Testing

@testable import StateCluster

@Suite("What is read from etcd")
struct EtcdValuesTests {
    @Test(
        "a watch goes on behind the last event that it has sent, however far etcd is",
        arguments: [
            (
                #""header":{"revision":"90"},"events":[{"kv":{"key":"YQ==","mod_revision":"7"}},{"kv":{"key":"YQ==","mod_revision":"9"}}]"#,
                10
            ),
            (#""header":{"revision":"90"},"events":[]"#, nil), (#""header":{"revision":"90"}"#, nil),
            (#""header":{"revision":"90"},"created":true"#, nil),
            (#""header":{},"events":[{"kv":{"key":"YQ==","mod_revision":"18446744073709551615"}}]"#, nil),
            (#""header":{},"events":[{"kv":{"key":"YQ==","mod_revision":"x"}}]"#, nil),
        ] as [(String, UInt64?)])
    func watch(result: String, next: UInt64?) throws {
        let line = try Etcd.decode(Etcd.WatchLine.self, from: Array("{\"result\":{\(result)}}".utf8))

        #expect(try #require(line.result).nextRevision == next)
    }

    @Test(
        "a manifest whose numbers cannot be those of a snapshot is refused",
        arguments: [
            (#""version":9,"key":8,"stateBytes":5,"keysBytes":2,"chunks":1"#, 7),
            (#""version":9,"key":9,"stateBytes":5,"keysBytes":0,"chunks":5"#, 5),
            (#""version":9,"key":8,"stateBytes":-1,"keysBytes":2,"chunks":1"#, nil),
            (#""version":9,"key":8,"stateBytes":5,"keysBytes":-2,"chunks":1"#, nil),
            (#""version":9,"key":8,"stateBytes":5,"keysBytes":2,"chunks":-1"#, nil),
            (#""version":9,"key":8,"stateBytes":5,"keysBytes":2,"chunks":8"#, nil),
            (#""version":9,"key":8,"stateBytes":5,"keysBytes":9223372036854775807,"chunks":1"#, nil),
            (#""version":9,"key":10,"stateBytes":5,"keysBytes":2,"chunks":1"#, nil),
            (#""version":18446744073709551615,"key":8,"stateBytes":5,"keysBytes":2,"chunks":1"#, nil),
        ] as [(String, Int?)])
    func manifest(numbers: String, bytesCount: Int?) throws {
        let text = #"{"chain":"","hash":"",\#(numbers)}"#

        #expect(try Etcd.decode(SnapshotManifest.self, from: Array(text.utf8)).bytesCount == bytesCount)
    }

    @Test("a turn that was seen counts for the history that it is of, and not for a copy with the same epoch")
    func seenTurn() throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let epoch = Epoch.random()
        let hash = ChainLink(beginning: epoch, version: 0).hash
        func seen(_ epoch: Epoch, _ secret: String?) -> SeenTurn? { SeenTurn(in: directory, of: epoch, secret: secret) }

        SeenTurn(epoch, secret: "one", 7, hash).note(in: directory)
        #expect(seen(epoch, "one")?.key == 7)
        #expect(seen(epoch, "other") == nil)
        #expect(seen(epoch, nil) == nil)
        #expect(seen(.random(), "one") == nil)

        // As an earlier program has noted it.
        SeenTurn(epoch, secret: nil, 7, hash).note(in: directory)
        #expect(seen(epoch, "one")?.key == 7)
    }
}
