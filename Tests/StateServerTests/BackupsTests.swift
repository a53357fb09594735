import Foundation
import HTTPMessages
import Logging
import StateHTTP
import StateJournal
import Synchronization
import TestSupport
import Testing

@testable import MicroHTTP
@testable import StateServer
@testable import StateStore

@Suite("Backups", .timeLimit(.minutes(5)))
struct BackupsTests {
    /// What clients were given.
    final class Sink: AnswerSink {
        private let state = Mutex((resumed: [UInt64](), cut: [UInt64](), chunks: [[UInt8]](), isEnded: false))

        var resumed: [UInt64] { state.withLock { $0.resumed } }
        var cut: [UInt64] { state.withLock { $0.cut } }
        var chunks: [[UInt8]] { state.withLock { $0.chunks } }
        var isEnded: Bool { state.withLock { $0.isEnded } }

        func put(_ transmission: Transmission) {
            state.withLock { state in
                switch transmission {
                case .again(let exchange): state.resumed.append(exchange.id)
                case .cut(let exchange): state.cut.append(exchange.id)
                case .chunk(_, let chunk):
                    state.chunks.append(chunk.content)
                    state.isEnded = chunk.isLast
                case .single, .answer: break
                }
            }
        }
    }

    let scratch = JournalToolTests.Scratch()
    let platform = ManualPlatform()
    let memory = MemoryBudget(bytesMax: 1 << 20)
    let sink = Sink()
    var settings = Settings()
    let backups: Backups

    init() throws {
        let opened = try SQLiteJournal.open(
            directory: scratch.path, retention: .init(), at: Timestamp(milliseconds: 1),
            report: { _ in }, initial: { Array(#"{"value":1}"#.utf8) })
        withExtendedLifetime(opened.journal) {}
        settings.data = scratch.path
        let made = try Backups(
            settings, platform: platform.value, memory: memory,
            logger: Logger(label: "backups") { _ in SwiftLogNoOpLogHandler() })
        backups = try #require(made)
    }

    /// Waits until something is so; false after five seconds.
    func eventually(_ isTrue: () -> Bool) async throws -> Bool {
        for _ in 0..<500 where !isTrue() { try await Task.sleep(for: .milliseconds(10)) }
        return isTrue()
    }

    func exchange(_ id: UInt64) -> Exchange { Exchange(id: id, client: "client", sink: sink) }

    /// The code of the problem by which a backup is refused.
    func refusal(of exchange: Exchange) -> String? {
        do throws(Problem) {
            try backups.begin(for: exchange, Access()) { _ in }
            return nil
        } catch { return error.code }
    }

    /// Begins a backup and waits for its copy.
    func copied(_ id: UInt64, _ access: Access = Access()) async throws -> Exchange {
        let exchange = exchange(id)
        try backups.begin(for: exchange, access) { Issue.record("\($0)") }
        try #require(try await eventually { sink.resumed.contains(id) })
        return exchange
    }

    @Test("a backup goes to its client chunk by chunk, and makes way for the next one")
    func whole() async throws {
        let exchange = try await copied(1)
        let archive = try #require(backups.claim(exchange))
        #expect(refusal(of: self.exchange(2)) == "backup-under-way")

        for number in 1...20 where !sink.isEnded {
            backups.writable([exchange])
            #expect(try await eventually { sink.chunks.count >= number })
        }

        #expect(sink.isEnded && sink.cut.isEmpty)
        #expect(sink.chunks.joined().count == archive.bytesCount)
        #expect(memory.bytes == 0)
        #expect(!FileManager.default.fileExists(atPath: scratch.path + "/.outgoing"))
        _ = try await copied(3)
    }

    @Test("a client that takes nothing for half a minute is cut off, one that takes a chunk is not")
    func patience() async throws {
        let exchange = try await copied(1)
        _ = backups.claim(exchange)
        platform.pass(.seconds(29)) {}
        backups.writable([exchange])
        #expect(try await eventually { sink.chunks.count == 1 })

        platform.pass(.seconds(30)) {}
        #expect(sink.cut.isEmpty)
        platform.pass(.seconds(31)) {}

        #expect(sink.cut == [1])
        #expect(exchange.isOver)
        #expect(memory.bytes == 0)
    }

    @Test("a backup whose credential ends is cut off, and so is one when the server stops", arguments: [true, false])
    func ended(isRevoked: Bool) async throws {
        let access = Access()
        let exchange = try await copied(1, access)
        _ = backups.claim(exchange)
        backups.endWithoutAccess()
        #expect(sink.cut.isEmpty)

        if isRevoked {
            access.end()
            backups.endWithoutAccess()
        } else {
            backups.stop()
        }

        #expect(sink.cut == [1])
        _ = try await copied(2)
    }

    @Test("a copy that its client does not claim is dropped after five seconds")
    func unclaimed() async throws {
        let exchange = try await copied(1)
        #expect(backups.claim(self.exchange(2)) == nil)

        platform.pass(.seconds(6)) {}

        #expect(backups.claim(exchange) == nil)
        _ = try await copied(3)
    }

    @Test("without memory for a chunk no backup begins")
    func memoryExhausted() async throws {
        #expect(memory.reserve((1 << 20) - (256 << 10) + 1) == nil)

        #expect(refusal(of: exchange(1)) == "memory-exhausted")

        memory.release(1)
        #expect(memory.reserve(0) == nil)
        memory.release((1 << 20) - (256 << 10))
        _ = try await copied(2)
    }

    @Test("a start removes what a killed process has left of a copy")
    func remains() throws {
        let place = scratch.path + "/.outgoing"
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
        for name in ["draft.sqlite", "draft.sqlite-journal", "journal.sqlite", "fence", "lock"] {
            try Data("x".utf8).write(to: URL(fileURLWithPath: "\(place)/\(name)"))
        }

        _ = try Backups(
            settings, platform: platform.value, memory: memory,
            logger: Logger(label: "backups") { _ in SwiftLogNoOpLogHandler() })

        #expect(!FileManager.default.fileExists(atPath: place))
        #expect(FileManager.default.fileExists(atPath: scratch.path + "/journal.sqlite"))
    }
}
