import HTTPMessages
import HTTPTypes
import Testing

@testable import MicroHTTP

@Suite("The head cache", .timeLimit(.minutes(5)))
struct HeadCacheTests {
    @Test("heads that differ in one byte have their own answers, on one connection and on several")
    func equalLengths() async throws {
        let handlers = Handlers(
            receive: { request, _ in
                .reusable(
                    .text("\(request.method) \(request.target) \(request.fields.map(\.value).joined(separator: "|"))"))
            }, generation: { 1 })
        try await withServer(handlers) { _, port in
            let heads = [
                ("GET", "/aaaa", "1"), ("GET", "/aaab", "1"), ("PUT", "/aaaa", "1"), ("GET", "/aaaa", "2"),
                ("GET", "/baaa", "1"), ("GET", "/aaaa?", ""),
            ]
            let clients = try (0..<3).map { _ in try RawClient(port: port) }
            // A head is stored when it comes again, and its answer with it: from the third round on all come from the cache.
            for round in 0..<24 {
                for index in heads.indices {
                    // Each connection repeats heads and changes between them in another order.
                    let client = clients[index % 3]
                    let (method, target, value) = heads[(index + round / 4) % heads.count]
                    client.send("\(method) \(target) HTTP/1.1\r\nHost: a\r\nX: \(value)\r\n\r\n")
                    #expect(client.response()?.body == "\(method) \(target) a|\(value)")
                }
            }
        }
    }

    @Test("a head that is refused for one length is refused for every other one, and without one")
    func refusedLengths() async throws {
        try await withServer(Handlers(receive: { _, _ in .now(.text("taken")) }, generation: { 1 })) { _, port in
            for length in ["Content-Length: 5\r\n", "Content-Length: 5\r\n", "Content-Length: 5\r\n", ""] {
                let client = try RawClient(port: port)
                client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\(length)\r\n")
                // From 1.0 on, the library itself refuses a coding that it does not know.
                let isOurs = length.isEmpty && !LibraryVersion.current.isStrict
                #expect(client.response()?.status == (isOurs ? 501 : 400))
            }
        }
    }

    @Test(
        "fields of a request's own are those of each request, whatever the head cache has, and however many there are")
    func ownFields() async throws {
        let handlers = Handlers(
            receive: { request, _ in
                .reusable(.text("\(request[.ifMatch] ?? "-") \(request[.idempotencyKey] ?? "-") \(request.body.count)"))
            }, generation: { 1 })
        try await withServer(handlers) { _, port in
            let client = try RawClient(port: port)
            let many = (0..<12).map { "a\($0)" }
            for round in 0..<4 {
                for (name, values) in [("If-Match", ["x\(round)"]), ("Idempotency-Key", ["y"]), ("IF-MATCH", many)] {
                    let lines = values.map { "\(name): \($0)\r\n" }.joined()
                    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\(lines)\r\n")
                    let joined = values.joined(separator: ", ")
                    let expected = name == "Idempotency-Key" ? "- y 0" : "\(joined) - 0"
                    #expect(client.response()?.body == expected)
                }
                client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(client.response()?.body == "- - 0")
            }
        }
    }

    @Test("a request has its trace behind as many fields of its own as a head may have, and none where it names two")
    func traceBehindMany() async throws {
        let handlers = Handlers(
            receive: { request, _ in .reusable(.text("\(request.trace != nil)")) }, generation: { 1 })
        try await withServer(handlers) { _, port in
            let client = try RawClient(port: port)
            let trace = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n"
            let many = String(repeating: "X-Request-Id: a\r\n", count: 90)
            for (lines, isTraced) in [(trace, true), (many + trace, true), (many + trace + trace, false)] {
                client.send("GET /a HTTP/1.1\r\nHost: a\r\n\(lines)\r\n")
                #expect(client.response()?.body == "\(isTraced)", "\(lines.utf8.count) bytes")
            }
        }
    }

    @Test("a probe on a connection over capacity takes no head of another connection")
    func overCapacity() async throws {
        let handlers = Handlers(
            receive: { request, _ in .reusable(.text("\(request.method) \(request.target)")) }, generation: { 1 })
        var configuration = ServerConfiguration.small()
        configuration.connectionsMax = 1
        configuration.reservedTargets = ["/probe"]
        try await withServer(handlers, configuration: configuration) { _, port in
            let client = try RawClient(port: port)
            for head in ["GET /first", "GET /second", "POST /third"] {
                // The second time, the head comes from the cache.
                for _ in 0..<3 {
                    client.send("\(head) HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
                    #expect(client.response()?.body == head)
                    let probe = try RawClient(port: port)
                    probe.send("GET /probe HTTP/1.1\r\nHost: a\r\nX: as many fields\r\n\r\n")
                    #expect(probe.response()?.body == "GET /probe")
                }
            }
        }
    }
}
