import HTTPMessages
import HTTPTypes
import Testing

@testable import MicroHTTP

@Suite("The head cache", .timeLimit(.minutes(1)))
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
}
