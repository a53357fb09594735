import HTTPMessages
import HTTPTypes
import Testing

@testable import MicroHTTP

@Suite("Heads that differ in their targets", .timeLimit(.minutes(5)))
struct LentFieldsTests {
    /// What a handler has remembered of a head.
    private final class Remembered: Sendable {
        let head: String
        init(_ head: String) { self.head = head }
    }

    private let handlers = Handlers(receive: { request, _ in
        let head = "\(request.method) \(request.target) \(request.fields.map(\.value).joined(separator: "|"))"
        let known = (request.head.remembered as? Remembered)?.head
        request.head.remember(Remembered(head))
        return .now(.text(known == nil || known == head ? head : "remembered of another head"))
    })

    @Test("fields that are known do not let a target through that is refused, nor a head that is too long")
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

                #expect(client.response()?.status == status)
            }
        }
    }
}
