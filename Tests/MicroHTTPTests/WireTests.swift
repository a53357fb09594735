import Foundation
import Testing

@testable import MicroHTTP

@Suite("What is on the wire", .timeLimit(.minutes(5)))
struct WireTests {
    @Test(
        "a request that libmicrohttpd refuses gets one answer at most, and the connection closes",
        arguments: [
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nabcde", "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
            "nonsense\r\n\r\n", "\u{16}\u{3}\u{1}\u{2}", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 20 << 10))\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 200 << 10))\r\n\r\n",
        ])
    func libraryAnswers(request: String) async throws {
        try await withServer { server, port in
            let client = try RawClient(port: port)
            client.send(request)
            client.finishSending()

            let answer = client.rest()

            #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 4") || answer.hasPrefix("HTTP/1.1 5"))
            // 0.9.75 sends some heads twice.
            #expect(answer.components(separatedBy: "HTTP/1.1").count <= (LibraryVersion.current.isStrict ? 2 : 3))
            #expect(server.statistics.requests == 0)
        }
    }

    @Test("a request that libmicrohttpd refuses with a page of its own is counted")
    func countedRefusals() async throws {
        try await withServer { server, port in
            for number in 1...3 {
                let client = try RawClient(port: port)
                client.send("GET / HTTP/2.0\r\nHost: a\r\n\r\n")

                #expect(client.rest().hasPrefix("HTTP/1.1 505 "))
                #expect(try await eventually { server.statistics.refused == number })
            }
            #expect(server.statistics.requests == 0)
        }
    }

    @Test(
        "below 1.0, a chunked body is refused with 411, and what follows it does not run",
        .enabled(if: !LibraryVersion.current.isStrict))
    func chunksBelow1() async throws {
        try await withServer { server, port in
            let client = try RawClient(port: port)
            client.send("POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n")
            client.send("GET /b HTTP/1.1\r\nHost: a\r\n\r\n")

            #expect(client.response()?.status == 411)
            #expect(client.isAtEnd())
            #expect(server.statistics.requests == 0)
        }
    }

    @Test(
        "a head that is too large for the server gets one answer of it, and the connection closes",
        arguments: [
            ("GET /\(String(repeating: "x", count: 8000)) HTTP/1.1\r\nHost: a\r\n\r\n", 414),
            ("GET /?a=1\(String(repeating: "&a=1", count: 100)) HTTP/1.1\r\nHost: a\r\n\r\n", 414),
            ("GET / HTTP/1.1\r\nHost: a\r\n\(String(repeating: "X: 1\r\n", count: 100))\r\n", 431),
            ("GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 12 << 10))\r\n\r\n", 431),
        ])
    func ownAnswers(request: String, status: Int) async throws {
        try await withServer { _, port in
            let client = try RawClient(port: port)
            client.send(request)
            client.finishSending()

            let answer = client.rest()

            #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
            #expect(answer.components(separatedBy: "HTTP/1.1").count == 2)
            #expect(answer.contains("\r\nContent-Type: text/plain\r\n"))
        }
    }

    @Test("a request with a long head waits, and its connection serves long and short heads afterwards")
    func waiting() async throws {
        let record = Record()
        try await withServer(.echo(record)) { server, port in
            let client = try RawClient(port: port)
            let fields = "X: \(String(repeating: "x", count: 10_000))\r\n"
            for round in 0..<3 {
                client.request("/wait", fields: fields)
                #expect(try await eventually { record.parked.count == round + 1 })
                record.parked[round].answer(.text("woken"))
                #expect(client.response()?.body == "woken")
                client.request("/a", fields: round == 1 ? fields : "")
                #expect(client.response()?.body == "GET /a ")
            }
            #expect(server.statistics.connections == 1)
        }
    }

    @Test("a body behind a long head arrives whole")
    func longHeadWithBody() async throws {
        try await withServer(configuration: .small(bodyBytesMax: 1 << 20)) { _, port in
            let body = String(repeating: "0123456789", count: 50_000)
            for head in ["X: \(String(repeating: "x", count: 3000))\r\n", String(repeating: "X: 1\r\n", count: 60), ""]
            {
                let client = try RawClient(port: port)
                let start = "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\n"
                for _ in 0..<2 {
                    client.send(start + head + "\r\n" + body)
                    #expect(client.response()?.body == "POST /b \(body)")
                }
                guard LibraryVersion.current.isStrict else { continue }
                client.send(
                    "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\(head)\r\n3\r\nabc\r\n0\r\n\r\n")
                #expect(client.response()?.body == "POST /b abc")
            }
        }
    }

    @Test("a chunk line that ends in a bare line feed is refused in the head's segment and behind it, and nothing runs")
    func bareLineFeeds() async throws {
        let record = Record()
        try await withServer(.echo(record)) { server, port in
            let head = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            for body in ["1\nx\r\n0\r\n\r\n", "1\r\nx\n0\r\n\r\n", "1\r\nx\r\n0\n\r\n", "1\r\nx\r\n0\r\n\n"] {
                for isApart in [false, true] {
                    let before = server.statistics.requests
                    let client = try RawClient(port: port)
                    client.send(isApart ? head : head + body)
                    if isApart {
                        try await Task.sleep(for: .milliseconds(20))
                        client.send(body + "GET /b HTTP/1.1\r\nHost: a\r\n\r\n")
                    }

                    #expect(client.response()?.status == (LibraryVersion.current.isStrict ? 400 : 411))
                    #expect(client.isAtEnd())
                    #expect(server.statistics.requests == before)
                }
            }
        }
    }

    @Test("a request that arrives too slowly gets 408, whether its head or its body is late")
    func slow() async throws {
        var configuration = ServerConfiguration.small()
        configuration.headTime = .seconds(1)
        configuration.bodyTime = .milliseconds(500)
        try await withServer(configuration: configuration) { server, port in
            let starts = [
                "G", "GET / HTTP/1.1\r\nHost: a\r\nX:", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\nx",
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n63\r\n",
                "GET / HTTP/1.1\r\nHost: a\r\n\r\nG",
            ]
            let clients = try starts.map { start in
                let client = try RawClient(port: port)
                client.send(start)
                return client
            }
            let idle = try RawClient(port: port)
            for _ in 0..<10 {
                try await Task.sleep(for: .milliseconds(100))
                for client in clients { client.send("x") }
            }

            #expect(clients[4].response()?.status == 200)
            for client in clients {
                let status = client.response()?.status
                #expect(status == 408 || status == 411 && !LibraryVersion.current.isStrict)
                #expect(client.isAtEnd())
            }
            idle.request("/idle")
            #expect(idle.response()?.body == "GET /idle ")
            #expect(try await eventually { server.statistics.connections == 1 })
        }
    }

    @Test(
        "a request whose last bytes come together with the end of the input, and which is not complete, ends at once",
        arguments: [
            ["chunked\r\n\r\n", "40000\r\n", "262143"], ["chunked\r\n\r\n40000\r\n", "262144", "\r"],
            ["chunked\r\n\r\n", "40000\r"], ["300000\r\n\r\n", "299999"], ["300000\r\n\r\n", "70000", "200000"],
            ["300000\r\n", "\r\n", "10"], ["300000\r\n", "A: b\r\n"],
        ])
    func endWithinRequest(parts: [String]) async throws {
        var configuration = ServerConfiguration.small(bodyBytesMax: 1 << 20)
        configuration.headTime = .seconds(60)
        let gauges = ServerGauges(loops: 1, memoryBytesMax: configuration.memoryBytesMax)
        let server = HTTPServer(configuration: configuration, handlers: .echo(), gauges: gauges)
        let port = try server.start()[0].port
        // A number stands for so many bytes.
        let pieces = parts.map { part in Int(part).map(long) ?? part }
        for round in 0..<4 {
            let client = try RawClient(port: port)
            // The loop has looked at the silent connection, and has found nothing, before the request begins.
            if round % 2 == 1 { try await Task.sleep(for: .milliseconds(200)) }
            client.send("POST / HTTP/1.1\r\nHost: a\r\n")
            client.send((parts[0].hasPrefix("chunked") ? "Transfer-Encoding: " : "Content-Length: ") + pieces[0])
            for piece in pieces.dropFirst().dropLast() { client.send(piece) }
            // The loop has looked at the connection before the last bytes come.
            try await Task.sleep(for: .milliseconds(150))
            client.sendLast(pieces.last ?? "")

            #expect(try await eventually { server.statistics.connections == 0 })
            #expect(gauges.memory.bytes == 0)
        }
        await server.stop(grace: .zero)
    }

    @Test("a declared body that is too long is discarded while it comes, so that the client gets its answer")
    func declaredBodyTooLong() async throws {
        try await withServer(configuration: .small(bodyBytesMax: 1000)) { server, port in
            for _ in 0..<20 {
                let client = try RawClient(port: port)
                client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n")
                for _ in 0..<9 { #expect(client.send(long(100_000))) }

                #expect(client.rest().hasPrefix("HTTP/1.1 413 "))
            }
            #expect(try await eventually { server.statistics.connections == 0 })
        }
    }

    @Test(
        "what follows the last request of a connection is not answered, however long its head is",
        arguments: [
            "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            "GET /last HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n",
            "GET /last HTTP/1.0\r\nHost: a\r\n\r\n",
            "GET /last HTTP/1.0\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n",
            "GET /last HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "POST /last HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
            "GET /last HTTP/3.0\r\nHost: a\r\n\r\n",
        ])
    func behindLastRequest(last: String) async throws {
        let earlier = "GET /earlier HTTP/1.1\r\nHost: a\r\n\r\n"
        try await withServer { server, port in
            for behind in ["", String(repeating: "x", count: 3000), String(repeating: "x", count: 30_000)] {
                for isPipelined in [false, true] {
                    let client = try RawClient(port: port)
                    client.send(
                        (isPipelined ? earlier : "") + last + "GET /behind HTTP/1.1\r\nHost: a\r\nX: \(behind)\r\n\r\n")

                    let answer = client.rest()

                    let statusLines = answer.components(separatedBy: "HTTP/1.1 ").count - 1
                    #expect(statusLines == (isPipelined ? 2 : 1), "\(behind.count): \(answer)")
                    #expect(!answer.contains("/behind"))
                }
            }
            #expect(try await eventually { server.statistics.connections == 0 })
        }
    }

    @Test("a body behind a refused head is not taken for a request of its own")
    func bodyOfRefusedHead() async throws {
        try await withServer { server, port in
            for _ in 0..<20 {
                let client = try RawClient(port: port)
                client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n")
                client.send(long(1_000_000))

                #expect(client.rest().components(separatedBy: "HTTP/1.1").count <= 2)
            }
            #expect(try await eventually { server.statistics.connections == 0 })
        }
    }

    @Test("of a declared body that is far too long, the server discards a part and closes")
    func declaredBodyFarTooLong() async throws {
        try await withServer(configuration: .small(bodyBytesMax: 1000)) { server, port in
            let client = try RawClient(port: port)
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
            #expect(client.response()?.status == 413)

            var sent = 0
            while sent < 100_000_000, client.send(long(100_000)) { sent += 100_000 }

            #expect(sent < 50_000_000)
            #expect(try await eventually { server.statistics.connections == 0 })
        }
    }

    @Test("a client that waits for permission to send a body that is too long gets its answer and the end at once")
    func declaredBodyTooLongExpected() async throws {
        try await withServer(configuration: .small(bodyBytesMax: 1000)) { server, port in
            let client = try RawClient(port: port)
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\nExpect: 100-continue\r\n\r\n")

            let answer = client.rest()

            #expect(answer.hasPrefix("HTTP/1.1 413 "))
            #expect(!answer.contains("100 Continue"))
            #expect(try await eventually { server.statistics.connections == 0 })
        }
    }
}

private func long(_ count: Int) -> String { String(repeating: "x", count: count) }
