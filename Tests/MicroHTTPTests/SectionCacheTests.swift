import HTTPMessages
import HTTPTypes
import Testing

@testable import MicroHTTP

@Suite("The section cache", .timeLimit(.minutes(1)))
struct SectionCacheTests {
    /// The values of the fields with which a handler has seen a memo.
    private final class Remembered: Sendable {
        let values: String
        init(_ values: String) { self.values = values }
    }

    private let handlers = Handlers(receive: { request, _ in
        let values = request.fields.map(\.value).joined(separator: "|")
        var kind = "new"
        if let memo = request.head.sectionMemo {
            kind = (memo.value as? Remembered).map { $0.values == values ? "known" : "wrong" } ?? "cached"
            memo.store(Remembered(values))
        }
        return .now(.text("\(kind) \(request.method) \(request.target) \(values)"))
    })

    @Test("GETs that repeat their fields and not their targets share a memo, and no others do")
    func targets() async throws {
        try await withServer(handlers) { _, port in
            let clients = try (0..<2).map { _ in try RawClient(port: port) }
            let fields = ["Host: a\r\nX: 1\r\n", "Host: a\r\nX: 2\r\n", "Host: b\r\nX: 1\r\n", "X: 1\r\nHost: a\r\n"]
            let values = ["a|1", "a|2", "b|1", "1|a"]
            var knownCount = 0
            for number in 0..<60 {
                let (client, index) = (clients[number % 2], (number / 3) % fields.count)
                let method = number.isMultiple(of: 7) ? "PUT" : "GET"
                let target = "/\(number)" + String(repeating: "x", count: number % 5)

                client.send("\(method) \(target) HTTP/1.1\r\n\(fields[index])\r\n")

                let body = try #require(client.response()?.body)
                let kind = body.prefix { $0 != " " }
                #expect(body == "\(kind) \(method) \(target) \(values[index])")
                #expect(kind == "new" || kind == "cached" || kind == "known" && method == "GET")
                if kind == "known" { knownCount += 1 }
            }
            // The first of each kind is read, the second stored, and the third found.
            #expect(knownCount > 30)
        }
    }

    @Test("a section that is known does not let a target through that is refused, nor a head that is too long")
    func refused() async throws {
        var configuration = ServerConfiguration.small()
        configuration.headBytesMax = 200
        configuration.targetBytesMax = 190
        try await withServer(handlers, configuration: configuration) { _, port in
            for (target, status) in [("/\u{7F}", 400), ("/" + String(repeating: "x", count: 180), 431), ("/x", 200)] {
                let client = try RawClient(port: port)
                for number in 0..<4 {
                    client.send("GET /\(number) HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\n")
                    #expect(client.response()?.status == 200)
                }
                client.send("GET \(target) HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\n")
                #expect(client.response()?.status == status, "\(target.count)")
            }
        }
    }

    @Test("a version of HTTP belongs to the section")
    func version() async throws {
        try await withServer(handlers) { _, port in
            let client = try RawClient(port: port)
            for number in 0..<4 {
                client.send("GET /\(number) HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(client.response()?.field("connection") == nil)
            }
            client.send("GET /last HTTP/1.0\r\nHost: a\r\n\r\n")
            #expect(client.response()?.body.hasSuffix("GET /last a") == true)
            #expect(client.isAtEnd())
        }
    }
}
