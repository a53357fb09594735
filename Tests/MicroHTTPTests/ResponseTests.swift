import HTTPMessages
import HTTPTypes
import MicroHTTP
import Testing

@Suite("Responses over a socket", .timeLimit(.minutes(1)))
struct ResponseTests {
    @Test("an answer to HEAD has the length of the body and not the body")
    func head() async throws {
        try await withServer { _, port in
            let client = try RawClient(port: port)

            client.request("/a", method: "HEAD")
            #expect(client.response(hasBody: false)?.field("content-length") == "8")

            client.request("/b")
            #expect(client.response()?.body == "GET /b ")
        }
    }

    @Test("204 and 304 are sent without the body of the response", arguments: [204, 304])
    func bodyless(code: Int) async throws {
        let handlers = Handlers { _, _ in
            .now(Response(status: .init(code: code), fields: [.eTag: "\"a\""], body: Array("body".utf8)))
        }
        try await withServer(handlers) { _, port in
            let client = try RawClient(port: port)

            for _ in 0..<2 {
                client.request("/")
                let response = client.response(hasBody: false)
                #expect(response?.status == code)
                #expect(response?.field("etag") == "\"a\"")
            }
        }
    }

    @Test("a response that closes has Connection: close, and the connection closes")
    func close() async throws {
        try await withServer(Handlers { _, _ in .now(.text("bye", connection: .close)) }) { _, port in
            let client = try RawClient(port: port)

            client.request("/")

            let response = client.response()
            #expect(response?.body == "bye")
            #expect(response?.field("connection") == "close")
            #expect(client.isAtEnd())
        }
    }

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
