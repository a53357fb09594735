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
        "a request that waits keeps its connection where nothing has come with it, and closes it where something has",
        arguments: ["", "G", "GET /b HTTP/1.1\r\nHost: a\r\n\r\n", "\r\n"])
    func behindWaits(more: String) async throws {
        let record = Record()
        try await withServer(.echo(record)) { server, port in
            let client = try RawClient(port: port)
            client.request("/a")
            #expect(client.response()?.body == "GET /a ")
            client.send("POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" + more)
            #expect(try await eventually { record.parked.count == 1 })
            record.parked[0].answer(.text("woken"))

            let answer = client.response()
            #expect(answer?.body == "woken")
            if more.isEmpty {
                client.request("/c")
                #expect(client.response()?.body == "GET /c ")
            } else {
                #expect(answer?.field("connection") == "close")
                #expect(client.isAtEnd())
                #expect(server.statistics.requests == 2)
            }
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

    @Test("a head of nearly 12 KiB passes, however it is cut, and so do 99 fields and a target of 8000 bytes")
    func everydayHeads() async throws {
        var configuration = ServerConfiguration.small()
        // Many small pieces take long on a busy machine.
        configuration.headTime = .seconds(60)
        try await withServer(configuration: configuration) { _, port in
            let client = try RawClient(port: port)
            for fields in [
                "X: \(String(repeating: "x", count: 12_000))\r\n", String(repeating: "X: 1\r\n", count: 98),
            ] {
                for _ in 0..<2 {
                    client.request("/a", fields: fields)
                    #expect(client.response()?.body == "GET /a ")
                }
            }
            // In segments, and behind short requests on the same connection.
            let long = "GET /long HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 11_000))\r\n\r\n"
            for size in [1, 700, 1448, 4000] {
                let slow = try RawClient(port: port)
                for _ in 0..<2 {
                    slow.request("/short")
                    #expect(slow.response()?.body == "GET /short ")
                }
                var rest = long[...]
                while !rest.isEmpty {
                    // Single bytes are enough around the size at which libmicrohttpd's buffer grows.
                    let piece = rest.prefix(size > 1 ? size : (8000...8400).contains(long.count - rest.count) ? 1 : 900)
                    slow.send(String(piece))
                    rest = rest.dropFirst(piece.count)
                    if rest.count > long.count - 5000 { try await Task.sleep(for: .milliseconds(1)) }
                }
                #expect(slow.response()?.body == "GET /long ")
                slow.send("POST /short HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
                #expect(slow.response()?.body == "POST /short x")
                slow.send(long + "GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(slow.response()?.body == "GET /long ")
                #expect(slow.response()?.body == "GET /next ")
            }
            let target = "/" + String(repeating: "x", count: 7999)
            client.request(target)
            #expect(client.response()?.body == "GET \(target) ")
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

    @Test("a long head is answered behind short requests in its segment, whole or in parts")
    func pipelinedLongHeads() async throws {
        var configuration = ServerConfiguration.small()
        // The parts can be seconds apart beside tests that block the threads of the pool.
        configuration.headTime = .seconds(60)
        try await withServer(configuration: configuration) { _, port in
            let short = "GET /s HTTP/1.1\r\nHost: a\r\n\r\n"
            for size in [2500, 3400, 3900, 6000, 11_000] {
                let long = "GET /l HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: size))\r\n\r\n"
                for count in 1...4 {
                    for cut in [0, 20, 1000, 2400] {
                        let client = try RawClient(port: port)
                        let all = String(repeating: short, count: count) + long
                        client.send(String(all.dropLast(cut)))
                        if cut > 0 {
                            // The thread sleeps: a task that sleeps waits for a thread of the pool, perhaps for longer than a head
                            // may take.
                            usleep(5000)
                            client.send(String(all.suffix(cut)))
                        }
                        for _ in 0..<count { #expect(client.response()?.body == "GET /s ") }
                        #expect(client.response()?.body == "GET /l ", "\(size) \(count) \(cut)")
                    }
                }
            }
        }
    }

    @Test("a long head is answered behind requests of one segment that have their answers")
    func longHeadsBehindPipelinedOnes() async throws {
        try await withServer { _, port in
            let short = "GET /s HTTP/1.1\r\nHost: a\r\n\r\n"
            let posted = "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"
            for size in [2500, 3900, 6000, 11_000] {
                let long = "GET /l HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: size))\r\n\r\n"
                for first in [short, short + short, short + short + short, posted + short, short + posted] {
                    let client = try RawClient(port: port)
                    client.send(first)
                    for _ in first.ranges(of: "HTTP/1.1") { #expect(client.response()?.status == 200) }
                    client.send(long + short)
                    #expect(client.response()?.body == "GET /l ", "\(size) \(first)")
                    #expect(client.response()?.body == "GET /s ")
                }
            }
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

    @Test(
        "requests behind a chunked body are answered, in its segment and behind it",
        .enabled(if: LibraryVersion.current.isStrict))
    func pipelined() async throws {
        try await withServer { _, port in
            let client = try RawClient(port: port)
            let chunked = "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\n\r\n"
            client.send(chunked + "GET /b HTTP/1.1\r\nHost: a\r\n\r\n" + chunked)

            #expect(client.response()?.body == "POST /a x")
            #expect(client.response()?.body == "GET /b ")
            #expect(client.response()?.body == "POST /a x")
            client.request("/c")
            #expect(client.response()?.body == "GET /c ")
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

    @Test("a long head is answered behind a request with a body, and behind one of HTTP/1.0 that keeps the connection")
    func longHeadLater() async throws {
        let long = "GET /long HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 11_000))\r\n\r\n"
        try await withServer { _, port in
            let client = try RawClient(port: port)
            client.send("GET /s HTTP/1.1\r\nHost: a\r\n\r\nPOST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
            #expect(client.response()?.body == "GET /s ")
            #expect(client.response()?.body == "POST /b abc")
            client.send(long)
            #expect(client.response()?.body == "GET /long ")

            let old = try RawClient(port: port)
            old.send("GET /old HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n" + long)
            #expect(old.response()?.body == "GET /old ")
            #expect(old.response()?.body == "GET /long ")
        }
    }

    @Test("a long head is answered in the segment of requests with bodies, whole or in parts")
    func longHeadInSegmentOfBodies() async throws {
        var configuration = ServerConfiguration.small()
        configuration.headTime = .seconds(60)
        try await withServer(configuration: configuration) { _, port in
            let declared = "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
            let chunked = "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            let bodies = [declared, LibraryVersion.current.isStrict ? chunked : declared]
            for size in [2500, 3900, 6000, 11_000] {
                let long = "GET /l HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: size))\r\n\r\n"
                for count in 1...3 {
                    for cut in [0, 1000, 2400, long.utf8.count + 2] {
                        let client = try RawClient(port: port)
                        let all = (0..<count).map { bodies[($0 + size) % 2] }.joined() + long
                        client.send(String(all.dropLast(cut)))
                        if cut > 0 {
                            usleep(5000)
                            client.send(String(all.suffix(cut)))
                        }
                        for _ in 0..<count { #expect(client.response()?.body == "POST /b abc") }
                        #expect(client.response()?.body == "GET /l ", "\(size) \(count) \(cut)")
                    }
                }
            }
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
