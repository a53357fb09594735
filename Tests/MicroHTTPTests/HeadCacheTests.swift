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
