import CMicroHTTPD
import Foundation
import Glibc
import HTTPMessages
import MicroHTTP
import Synchronization
import Testing

/// Connections that the loop takes from libmicrohttpd while their requests wait, and hands back.
@Suite("Parked connections", .timeLimit(.minutes(5)))
struct ParkingTests {
    @Test("a connection stays open behind an answer that does not fit into the socket's buffer")
    func longAnswers() async throws {
        let record = Record()
        let body = String(repeating: "x", count: 6 << 20)
        try await withServer(.echo(record)) { server, port in
            let client = try RawClient(port: port)
            for number in 0..<30 {
                client.request("/wait")
                #expect(try await eventually { record.parked.count == number + 1 })
                record.parked[number].answer(.text(body))
                let head = try #require(client.head(), "the connection has ended before round \(number)")
                #expect(!head.lowercased().contains("connection: close"))
                #expect(client.count(upTo: body.utf8.count) == body.utf8.count)
                // The socket reports its room again when the client has read all: that must not end the connection.
                try await Task.sleep(for: .milliseconds(5))
            }
            #expect(server.statistics.connections == 1)
        }
    }

    @Test("connections over capacity are answered with 503, also while the others are parked")
    func cap() async throws {
        let record = Record()
        try await withServer(.echo(record), configuration: .small(connectionsMax: 4)) { server, port in
            let waiters = try (0..<4).map { _ in try RawClient(port: port) }
            for waiter in waiters { waiter.request("/wait") }
            #expect(try await eventually { server.statistics.waiting == 4 })

            let overCapacity = try RawClient(port: port)
            overCapacity.request("/plain")
            #expect(overCapacity.response()?.status == 503)

            for exchange in record.parked { exchange.answer(.text("go")) }
            for waiter in waiters { #expect(waiter.response()?.body == "go") }
            waiters[0].request("/plain")
            #expect(waiters[0].response()?.body == "GET /plain ")
        }
    }
}
