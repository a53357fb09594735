import Foundation
import Logging
import StateServer
import StateServerTesting
import StateStore
import Synchronization
import Testing

@testable import StateClient

/// What only sockets can show.
@Suite("The client over sockets", .timeLimit(.minutes(5)))
struct LiveTests {
    private struct Tally: Domain {
        struct State: StateType, Codable { var value = 0 }
        struct Add: Action { static let type = "add"; var amount: Int }

        struct Over: Codable { var bound: Int; var text: String? }

        var reducer: some Reducer<State> {
            On(Add.self) { state, action in state.value += action.amount }
            View("over", parameters: Over.self) { state, over in
                state.value > over.bound ? ["\(state.value)\(over.text ?? "")"] : []
            }
        }
    }

    @Test("an action is scheduled, replaced under its name, and taken back")
    func schedule() async throws {
        try await serve { url in
            let client = StateClient(url)
            let first = try await client.dispatch(Tally.Add(amount: 5), schedule: .after(.seconds(3600), name: "a/b c"))
            #expect(first.name == "a/b c" && first.due != nil && !first.changed)
            let later = Date(timeIntervalSinceNow: 3600)
            try await client.dispatch(Tally.Add(amount: 7), schedule: .at(later, name: "a/b c"))
            try await client.unschedule("a/b c")
            await #expect { try await client.unschedule("a/b c") } throws: {
                ($0 as? StateClient.Problem)?.code == "not-scheduled"
            }
            try await client.dispatch(Tally.Add(amount: 1), schedule: .after(.zero))
            for try await value in client.values("/value", as: Int.self) where value != 0 {
                #expect(value == 1)
                break
            }
        }
    }

    private func serve(_ body: (URL) async throws -> Void) async throws {
        var settings = Settings()
        (settings.data, settings.listen) = ("none", "127.0.0.1:0")
        let (addresses, ready) = AsyncStream<StateServer.Address>.makeStream()
        let server = try StateServer(Tally(), settings: settings, logger: Logger(label: "test")) { ready.yield($0) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await server.run() }
            for await address in addresses {
                try await body(#require(URL(string: "http://\(address.host):\(address.port)")))
                break
            }
            group.cancelAll()
        }
    }

    @Test("many loops wait at once, an action goes by them, and cancelled they leave the server")
    func many() async throws {
        try await serve { url in
            let client = StateClient(url)
            let loops = (0..<20).map { number in
                Task {
                    guard number % 2 == 0 else {
                        for try await change in client.changes(since: "oldest") where change.cursor.hasSuffix(".1") {
                            return
                        }
                        return
                    }
                    for try await state in client.values("", as: Tally.State.self) where state?.value == 2 { return }
                }
            }
            let idle = (0..<20).map { _ in Task { for try await _ in client.changes() {} } }
            try await until(waiters: 40, at: url)

            let receipt = try await client.dispatch(Tally.Add(amount: 2))
            for loop in loops { try await loop.value }
            try await until(waiters: 20, at: url)
            for loop in idle { loop.cancel() }
            for loop in idle { await #expect(throws: CancellationError.self) { try await loop.value } }

            #expect(receipt.version == 1)
            try await until(waiters: 0, at: url)
        }
    }

    @Test("a view for parameters and a query have a value now, and a view each newer one")
    func views() async throws {
        try await serve { url in
            let client = StateClient(url)
            let over = try client.view("over", Tally.Over(bound: 2, text: " & ü"), as: [String].self)
            #expect(try await over.now() == [])
            let loop = Task {
                for try await value in over where value != [] { return value }
                return nil
            }
            try await until(waiters: 1, at: url)

            try await client.dispatch(Tally.Add(amount: 2))
            try await client.dispatch(Tally.Add(amount: 1))

            #expect(try await loop.value == ["3 & ü"])
            let query = StateClient.Query(filter: "@ == 3", count: true)
            let page = try #require(try await client.query("", query, as: Int.self).now())
            #expect(page.members.map(\.key) == ["value"] && page.members.map(\.value) == [3] && page.count == 1)
            await #expect { try await client.view("over", as: [String].self).now() } throws: {
                ($0 as? StateClient.Problem)?.code == "bad-parameter"
            }
        }
    }

    /// Waits until so many requests wait in the server; the time limit of the suite ends it otherwise.
    private func until(waiters count: Int, at url: URL) async throws {
        let client = TestClient(at: "\(url)")
        while try await !client.get("/metrics").body.contains("\nstorekeeper_waiters \(count)\n") {
            try await Task.sleep(for: .seconds(0.02))
        }
    }

    @Test("an address that is none of HTTP is refused at once", arguments: ["ftp://127.0.0.1", "file:///tmp", "a"])
    func noAddress(text: String) async throws {
        let client = StateClient(try #require(URL(string: text)))

        await #expect { try await client.dispatch(Tally.Add(amount: 1)) } throws: {
            ($0 as? StateClient.Problem)?.code == "malformed-request"
        }
    }

    @Test(
        "a redirect of an action is an error that names the address, and is not followed",
        arguments: [301, 302, 303, 307, 308])
    func redirects(status: Int) async throws {
        let head = "HTTP/1.1 \(status) Moved\r\nLocation: /v1/moved\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        let front = try Front(answering: head)

        await #expect { try await StateClient(front.url).dispatch(Tally.Add(amount: 1)) } throws: {
            guard let problem = $0 as? StateClient.Problem else { return false }
            return problem.code == "redirected" && problem.status == status && problem.detail.contains("/v1/moved")
        }
        #expect(front.requests.withLock { $0 } == ["POST /v1/actions HTTP/1.1"])
    }
}

/// Something before a server, which answers each connection with the same text.
private final class Front: Sendable {
    let url: URL
    let requests = Mutex<[String]>([])

    init(answering text: String) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = bind(listener, $0, size)
                _ = listen(listener, 8)
                _ = getsockname(listener, $0, &size)
            }
        }
        url = try #require(URL(string: "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))"))
        Thread.detachNewThread { [self] in
            while case let connection = accept(listener, nil, nil), connection >= 0 {
                var bytes = [UInt8](repeating: 0, count: 4000), received: [UInt8] = []
                // The body may come behind the head.
                while !received.suffix(2).elementsEqual("}}".utf8),
                    case let length = recv(connection, &bytes, bytes.count, 0),
                    length > 0
                { received += bytes.prefix(length) }
                let line = String(decoding: received.prefix { $0 != 13 }, as: UTF8.self)
                requests.withLock { $0.append(line) }
                _ = send(connection, text, text.utf8.count, Int32(MSG_NOSIGNAL))
                close(connection)
            }
        }
    }
}
