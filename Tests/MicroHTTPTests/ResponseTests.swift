import HTTPMessages
import HTTPTypes
import MicroHTTP
import Testing

@Suite("Responses over a socket", .timeLimit(.minutes(5)))
struct ResponseTests {
    @Test("a long body is sent whole", arguments: [16 << 10, (16 << 10) + 1, 300_000])
    func long(count: Int) async throws {
        let body = (0..<count).map { UInt8(ascii: "a") + UInt8($0 % 26) }
        try await withServer(Handlers { _, _ in .now(Response(status: .ok, body: body)) }) { _, port in
            let client = try RawClient(port: port)

            for _ in 0..<2 {
                client.request("/")
                #expect(client.response()?.body == String(decoding: body, as: UTF8.self))
            }
        }
    }
}
