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
    @Test("one connection serves waits, work and plain requests in turn")
    func turns() async throws {
        let record = Record()
        try await withServer(.echo(record)) { server, port in
            let client = try RawClient(port: port)
            var parkedCount = 0
            for number in 0..<50 {
                let target = ["/wait", "/plain", "/work"][number % 3]
                client.request(
                    target, method: number.isMultiple(of: 2) ? "GET" : "POST", fields: "Content-Length: 0\r\n")
                if target != "/plain" {
                    parkedCount += 1
                    #expect(try await eventually { record.parked.count == parkedCount })
                    record.parked[parkedCount - 1].answer(.text("answer \(number)"))
                    #expect(client.response()?.body == "answer \(number)")
                } else {
                    #expect(client.response()?.body.hasSuffix("/plain ") == true)
                }
            }
            #expect(try await eventually { server.statistics.connections == 1 && server.statistics.waiting == 0 })
        }
    }

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

    @Test(
        "a request that is pipelined behind one that waits gets no answer: the connection closes after the first answer",
        arguments: ["", "X: \(String(repeating: "x", count: 3000))\r\n", String(repeating: "X: 1\r\n", count: 45)])
    func pipelined(behind fields: String) async throws {
        let record = Record()
        try await withServer(.echo(record)) { server, port in
            let client = try RawClient(port: port)
            client.send(
                "GET /wait HTTP/1.1\r\nHost: test\r\n\r\nPOST /lost HTTP/1.1\r\nHost: test\r\n\(fields)\r\n")
            #expect(try await eventually { record.parked.count == 1 })

            // Time enough for an answer that must not come.
            if !fields.isEmpty { try await Task.sleep(for: .milliseconds(100)) }
            record.parked[0].answer(.text("answer"))

            let answer = client.response()
            #expect(answer?.body == "answer")
            #expect(answer?.field("connection") == "close")
            #expect(client.isAtEnd())
            #expect(try await eventually { server.statistics.connections == 0 })
        }
    }

    @Test("a request that arrives while another waits is answered after it")
    func impatient() async throws {
        let record = Record()
        try await withServer(.echo(record)) { _, port in
            let client = try RawClient(port: port)
            client.request("/wait")
            #expect(try await eventually { record.parked.count == 1 })
            client.request("/next")
            try await Task.sleep(for: .milliseconds(50))

            record.parked[0].answer(.text("answer"))

            #expect(client.response()?.body == "answer")
            #expect(client.response()?.body == "GET /next ")
        }
    }

    @Test("the answer of a parked connection fits HTTP/1.0, Connection: close and HEAD")
    func forms() async throws {
        let record = Record()
        try await withServer(.echo(record)) { _, port in
            let old = try RawClient(port: port)
            old.send("GET /wait HTTP/1.0\r\n\r\n")
            #expect(try await eventually { record.parked.count == 1 })
            record.parked[0].answer(.text("old"))
            #expect(old.response()?.field("connection") == "close")
            #expect(old.isAtEnd())

            let last = try RawClient(port: port)
            last.request("/wait", fields: "Connection: Close\r\n")
            #expect(try await eventually { record.parked.count == 2 })
            record.parked[1].answer(.text("last"))
            #expect(last.response()?.body == "last")
            #expect(last.isAtEnd())

            let head = try RawClient(port: port)
            head.request("/wait", method: "HEAD")
            #expect(try await eventually { record.parked.count == 3 })
            record.parked[2].answer(.text("four"))
            let answer = head.response(hasBody: false)
            #expect(answer?.field("content-length") == "4")
            #expect(answer?.field("date")?.hasSuffix("GMT") == true)
            head.request("/next")
            #expect(head.response()?.body == "GET /next ")
        }
    }

    @Test("an answer that a client reads slowly arrives whole, and the connection stays open")
    func slow() async throws {
        let record = Record()
        try await withServer(.echo(record)) { _, port in
            let client = try RawClient(port: port)
            client.request("/wait")
            #expect(try await eventually { record.parked.count == 1 })
            let text = String(repeating: "0123456789", count: 1_000_000)

            record.parked[0].answer(.text(text))
            try await Task.sleep(for: .milliseconds(200))

            #expect(client.response()?.body == text)
            client.request("/next")
            #expect(client.response()?.body == "GET /next ")
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

    @Test("two loops share the clients and answer all of them")
    func loops() async throws {
        let record = Record()
        var configuration = ServerConfiguration.small()
        configuration.loops = 2
        try await withServer(.echo(record), configuration: configuration) { server, port in
            let clients = try (0..<64).map { _ in try RawClient(port: port) }
            for client in clients { client.request("/wait") }
            #expect(try await eventually { server.statistics.waiting == 64 })
            #expect(Set(record.parked.map(\.id)).count == 64)

            Exchange.answer(record.parked, with: .text("all"))

            for client in clients { #expect(client.response()?.body == "all") }
        }
    }
}
