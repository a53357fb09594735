import HTTPMessages
import HTTPTypes
import MicroHTTP
import Testing

@Suite("Responses over a socket", .timeLimit(.minutes(5)))
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
        try await withServer(Handlers { _, _ in .now(.text("bye", endsConnection: true)) }) { _, port in
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

    /// Answers with one of two templates: the target's first letter chooses it, and the rest is the values and the body.
    ///
    /// - Parameter isReusable: whether other requests with the same head may get the answer.
    private static func templates(isReusable: Bool = false) throws -> Handlers {
        let name = try #require(HTTPField.Name("X-Value"))
        let other = try #require(HTTPField.Name("X-Other"))
        let type = ResponseTemplate.Part.fixed(HTTPField(name: .contentType, value: "text/plain"))
        let one = ResponseTemplate([type, .varying(name)])
        let two = ResponseTemplate([
            .varying(other), type, .varying(name), .fixed(HTTPField(name: .server, value: "b")),
        ])
        return Handlers { request, exchange in
            let value = String(request.target.dropFirst(2))
            let body = Array("\(value)!".utf8)
            let short = Self.short(value)
            let response =
                switch request.target.dropFirst().first {
                case "a": Response(one, ShortText(short), body: body)
                case "b": Response(two, ShortText("\(short)?"), ShortText(short), body: body)
                default: Response.text(value)
                }
            guard !isReusable else { return .reusable(response) }
            exchange.answer(response)
            return .working()
        }
    }

    /// The value of a varying field, which a template keeps short.
    private static func short(_ value: String) -> String { String(value.prefix(ShortText.countMax - 1)) }

    @Test("answers of a template differ in their value and body only, whatever comes between them")
    func templated() async throws {
        try await withServer(try Self.templates()) { _, port in
            let clients = [try RawClient(port: port), try RawClient(port: port)]
            let long = String(repeating: "l", count: 3000)

            for (number, target) in [
                "/a1", "/a2", "/a10", "/b11", "/a12", "/x13", "/a14", "/a\(long)", "/a15", "/a16",
            ].enumerated() {
                let client = clients[number % 3 == 2 ? 1 : 0]
                client.request(target)
                let response = client.response()
                let value = String(target.dropFirst(2))
                #expect(response?.status == 200)
                #expect(response?.body == (target.hasPrefix("/x") ? value : "\(value)!"))
                let short = Self.short(value)
                #expect(response?.field("x-value") == (target.hasPrefix("/x") ? nil : short))
                #expect(response?.field("x-other") == (target.hasPrefix("/b") ? "\(short)?" : nil))
                #expect(response?.field("server") == (target.hasPrefix("/b") ? "b" : nil))
            }
        }
    }

    @Test("an answer that other requests get stays as it is when the connection has further answers of its template")
    func reusable() async throws {
        try await withServer(try Self.templates(isReusable: true)) { _, port in
            let clients = [try RawClient(port: port), try RawClient(port: port)]

            // From its second time on, the cache has a head, and from its third time on the answer.
            for round in 0..<5 {
                for (number, target) in ["/a1", "/b2", "/a3", "/b4", "/a5"].enumerated() {
                    let client = clients[(round + number) % 2]
                    client.request(target)
                    let response = client.response()
                    let value = String(target.dropFirst(2))
                    #expect(response?.body == "\(value)!", "round \(round)")
                    #expect(response?.field("x-value") == value, "round \(round)")
                    #expect(response?.field("x-other") == (target.hasPrefix("/b") ? "\(value)?" : nil))
                }
            }
        }
    }

    @Test("pipelined requests get the answers of a template in order, each with its own value")
    func pipelined() async throws {
        try await withServer(try Self.templates()) { _, port in
            let client = try RawClient(port: port)
            client.send((100..<150).map { "GET /a\($0) HTTP/1.1\r\nHost: a\r\n\r\n" }.joined())

            for number in 100..<150 {
                let response = client.response()
                #expect(response?.field("x-value") == "\(number)")
                #expect(response?.body == "\(number)!")
            }
        }
    }

    @Test("a response of a template has its fields, and a change of them counts")
    func equality() throws {
        let name = try #require(HTTPField.Name("X-Value"))
        let template = ResponseTemplate([.fixed(.init(name: .contentType, value: "text/plain")), .varying(name)])
        var response = Response(template, ShortText("1"), body: [1])

        #expect(response.fields == [.contentType: "text/plain", name: "1"])
        #expect(response.fields != Response(template, ShortText("2"), body: [1]).fields)
        response.fields[.contentType] = nil
        #expect(response.fields == [name: "1"])
    }
}

extension ShortText {
    /// A text of ASCII of at most 40 bytes.
    fileprivate init(_ text: String) {
        self.init { bytes in bytes.update(fromContentsOf: Array(text.utf8)) }
    }
}
