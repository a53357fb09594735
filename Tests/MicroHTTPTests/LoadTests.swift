import Glibc
import MicroHTTP
import Testing

@Suite("Many connections", .timeLimit(.minutes(2)))
struct LoadTests {
    @Test("exactly this many busy connections do not stall the loop", arguments: [128, 256, 1000])
    func busy(count: Int) async throws {
        try await withServer { server, port in
            let clients = try (0..<count).map { _ in try RawClient(port: port) }
            let start = ContinuousClock.now

            for round in 0..<10 {
                for client in clients { client.request("/\(round)") }
                for client in clients { #expect(client.response()?.body == "GET /\(round) ") }
            }

            #expect(server.statistics.requests == count * 10)
            #expect(ContinuousClock.now - start < .seconds(30))
        }
    }

    @Test("a connection above the cap is told so, and the others go on")
    func cap() async throws {
        try await withServer(configuration: .small(connectionsMax: 3)) { server, port in
            let clients = try (0..<3).map { _ in try RawClient(port: port) }
            for client in clients { client.request("/") }
            for client in clients { #expect(client.response()?.status == 200) }

            let overCapacity = try RawClient(port: port)
            overCapacity.request("/")
            #expect(overCapacity.response()?.status == 503)
            #expect(overCapacity.isAtEnd())

            clients[0].request("/")
            #expect(clients[0].response()?.status == 200)
        }
    }

    @Test("silent connections above the cap are shown out, so that those behind them get an answer")
    func silentOverCapacity() async throws {
        try await withServer(configuration: .small(connectionsMax: 1)) { _, port in
            let inside = try RawClient(port: port)
            inside.request("/")
            #expect(inside.response()?.status == 200)
            let silent = try (0..<16).map { _ in try RawClient(port: port) }

            let last = try RawClient(port: port)
            last.request("/")

            #expect(last.response()?.status == 503)
            #expect(silent[0].isAtEnd())
        }
    }
}
