import Foundation
import MicroHTTP
import Testing

@Suite("What libmicrohttpd does not receive, and does not say", .timeLimit(.minutes(1)))
struct WireTests {
    @Test(
        "a request that libmicrohttpd would answer by itself gets one answer of the server, and the connection closes",
        arguments: [
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nabcde", 400),
            ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
            ("nonsense\r\n\r\n", 400), ("\u{16}\u{3}\u{1}\u{2}", 400), ("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET /\(String(repeating: "x", count: 8000)) HTTP/1.1\r\nHost: a\r\n\r\n", 414),
            ("GET /?a=1\(String(repeating: "&a=1", count: 100)) HTTP/1.1\r\nHost: a\r\n\r\n", 414),
            ("GET / HTTP/1.1\r\nHost: a\r\n\(String(repeating: "X: 1\r\n", count: 100))\r\n", 431),
            ("GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 20 << 10))\r\n\r\n", 431),
            ("GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 200 << 10))\r\n\r\n", 431),
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

    @Test("a cookie of 15,000 bytes passes, and so do 99 fields and a target of 8000 bytes")
    func everydayHeads() async throws {
        try await withServer { _, port in
            let client = try RawClient(port: port)
            for fields in [
                "Cookie: \(String(repeating: "x", count: 15000))\r\n", String(repeating: "X: 1\r\n", count: 98),
            ] {
                for _ in 0..<2 {
                    client.request("/a", fields: fields)
                    #expect(client.response()?.body == "GET /a ")
                }
            }
            let target = "/" + String(repeating: "x", count: 7999)
            client.request(target)
            #expect(client.response()?.body == "GET \(target) ")
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

                    #expect(client.response()?.status == 400)
                    #expect(client.isAtEnd())
                    #expect(server.statistics.requests == before)
                }
            }
        }
    }

    @Test("requests behind a chunked body are answered, in its segment and behind it")
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
                #expect(client.response()?.status == 408)
                #expect(client.isAtEnd())
            }
            idle.request("/idle")
            #expect(idle.response()?.body == "GET /idle ")
            #expect(try await eventually { server.statistics.connections == 1 })
        }
    }
}
