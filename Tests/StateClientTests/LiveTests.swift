import Foundation
import Logging
import StateServer
import StateServerTesting
import StateStore
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
}
