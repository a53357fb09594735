import Testing

@testable import MicroHTTP

@Suite("Requests over a socket", .timeLimit(.minutes(5)))
struct RequestTests {
    static let ambiguousHeads: [(String, Int)] = [
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\nx", 501),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 1\r\n\r\nx", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent: 1\r\n -Length\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\nX: 1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: 1\n\r\n", 400),
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: 1\r2\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: 1\u{0}2\r\n\r\n", 400),
        ("GET /a\u{0}b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /ä HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nX(: 1\r\n\r\n", 400),
        ("G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ]

    @Test(
        "a client that breaks off its request is given up long before the idle timeout",
        arguments: ["", "GET", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx"])
    func brokenOff(text: String) async throws {
        try await withServer { server, port in
            let clients = try (0..<50).map { _ in try RawClient(port: port) }

            for client in clients { client.sendLast(text) }

            #expect(try await eventually { server.statistics.connections == 0 })
        }
    }

    @Test("a declared body of the longest allowed length arrives whole")
    func body() async throws {
        try await withServer { _, port in
            let client = try RawClient(port: port)
            let text = String(repeating: "x", count: 1024)

            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1024\r\n\r\n")
            for piece in [text.prefix(1), text.prefix(1000), text.prefix(23)] { client.send(String(piece)) }

            #expect(client.response()?.body == "POST / " + text)
        }
    }

    @Test("a body that is declared one byte too long is refused before it is sent")
    func declaredOversize() async throws {
        try await withServer { _, port in
            let client = try RawClient(port: port)

            client.request("/big", method: "POST", fields: "Content-Length: 1025\r\nExpect: 100-continue\r\n")

            let response = client.response()
            #expect(response?.status == 413)
            #expect(response?.body == "/big")
            #expect(response?.field("connection") == "close")
            #expect(client.isAtEnd())
        }
    }

    @Test(
        "a chunked body that is too long is read to its end and refused",
        .enabled(if: LibraryVersion.current.isStrict))
    func chunkedOversize() async throws {
        try await withServer { _, port in
            let client = try RawClient(port: port)

            client.request("/big", method: "POST", fields: "Transfer-Encoding: chunked\r\n")
            for _ in 0..<5 { client.send("100\r\n" + String(repeating: "x", count: 256) + "\r\n") }
            client.send("0\r\n\r\n")

            #expect(client.response()?.status == 413)
            #expect(client.isAtEnd())
        }
    }

    @Test("the connection of an endless chunked body is closed")
    func endlessBody() async throws {
        try await withServer { _, port in
            let client = try RawClient(port: port)
            let chunk = "10000\r\n" + String(repeating: "x", count: 65536) + "\r\n"

            client.request("/", method: "POST", fields: "Transfer-Encoding: chunked\r\n")
            var sent = 0
            while sent < 1000, client.send(chunk) { sent += 1 }

            #expect(sent < 1000)
        }
    }

    @Test("an upload that waits for 100 Continue gets it")
    func continues() async throws {
        try await withServer { _, port in
            let client = try RawClient(port: port)

            client.request("/", method: "POST", fields: "Content-Length: 3\r\nExpect: 100-continue\r\n")
            #expect(client.response(hasBody: false)?.status == 100)
            client.send("abc")

            #expect(client.response()?.body == "POST / abc")
        }
    }

    @Test(
        "the handler gets the target as sent, with its percent escapes",
        arguments: ["/a%2Fb%00c?x=%26&y", "/%", "/a?flag", "*", "//"])
    func rawTarget(target: String) async throws {
        try await withServer { _, port in
            let client = try RawClient(port: port)

            client.request(target, method: "OPTIONS")

            #expect(client.response()?.body == "OPTIONS \(target) ")
        }
    }

    @Test(
        "an ambiguous head is refused, by the server or by libmicrohttpd, and the connection closes",
        arguments: Self.ambiguousHeads)
    func smuggling(text: String, status: Int) async throws {
        try await withServer { server, port in
            let client = try RawClient(port: port)

            client.send(text)

            let answer = client.response()?.status
            #expect(answer == nil || answer == status || answer == 400)
            #expect(client.isAtEnd())
            #expect(server.statistics.requests == 0)
        }
    }
}
