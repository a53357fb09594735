import Foundation
import Glibc
import HTTPMessages
import HTTPTypes
import MicroHTTP
import Testing

@Suite("Unix sockets", .timeLimit(.minutes(5)))
struct UnixSocketTests {
    /// A path for a socket, which is short enough for one.
    static func path() -> String { "/tmp/microhttp-\(UUID().uuidString).sock" }

    static func configuration(_ path: String) -> ServerConfiguration {
        var configuration = ServerConfiguration.small()
        configuration.places = [.socket(path: path, mode: 0o600)]
        return configuration
    }

    static func permissions(of path: String) -> mode_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o777 : nil
    }

    @Test("the file of a live server refuses a start and stays, and so does a file that is no socket")
    func refused() async throws {
        let path = Self.path()
        let first = HTTPServer(configuration: Self.configuration(path), handlers: .echo())
        _ = try first.start()
        let second = HTTPServer(configuration: Self.configuration(path), handlers: .echo())

        let refusal = #expect(throws: ServerError.self) { try second.start() }
        let sentence = "another process already does; stop it or choose another path"
        #expect(refusal?.description == "cannot listen on the socket \(path): \(sentence)")

        let client = try RawClient(path: path)
        client.request("/")
        #expect(client.response()?.status == 200)
        await first.stop(grace: .zero)
        try Data("kept".utf8).write(to: URL(fileURLWithPath: path))
        let third = HTTPServer(configuration: Self.configuration(path), handlers: .echo())
        let error = #expect(throws: ServerError.self) { try third.start() }
        #expect(error?.description == "cannot listen on the socket \(path): a file that is not a socket is there")
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "kept")
        unlink(path)
    }

    @Test("a server that stops leaves the file of another one that has taken its path")
    func replaced() async throws {
        let path = Self.path()
        let first = HTTPServer(configuration: Self.configuration(path), handlers: .echo())
        _ = try first.start()
        unlink(path)
        let second = HTTPServer(configuration: Self.configuration(path), handlers: .echo())
        _ = try second.start()

        await first.stop(grace: .zero)

        let client = try RawClient(path: path)
        client.request("/")
        #expect(client.response()?.status == 200)
        await second.stop(grace: .zero)
        #expect(Self.permissions(of: path) == nil)
    }

    @Test("a start that fails at the second place leaves no file, and a path that is too long is refused")
    func failed() throws {
        let path = Self.path()
        var configuration = Self.configuration(path)
        configuration.places.append(.address(host: "nowhere.invalid", port: 0))
        let server = HTTPServer(configuration: configuration, handlers: .echo())

        #expect(throws: ServerError.self) { try server.start() }

        #expect(Self.permissions(of: path) == nil)
        let long = HTTPServer(
            configuration: Self.configuration("/tmp/" + String(repeating: "x", count: 103)), handlers: .echo())
        let error = #expect(throws: ServerError.self) { try long.start() }
        #expect(error?.description.contains("expected a path of 1 to 107 bytes") == true)
    }

    @Test("the peer on a Unix socket is a trusted proxy where the list says unix")
    func proxy() async throws {
        for (names, expected) in [(["unix"], "192.0.2.1"), (["0.0.0.0/0", "::/0"], "uid \(getuid())")] {
            let path = Self.path()
            var configuration = Self.configuration(path)
            configuration.trustedProxies = try #require(TrustedProxies(names))
            let handlers = Handlers(receive: { request, _ in .now(.text(request.client)) })
            let server = HTTPServer(configuration: configuration, handlers: handlers)
            _ = try server.start()
            do {
                let client = try RawClient(path: path)
                client.request("/", fields: "X-Forwarded-For: 192.0.2.1\r\n")
                #expect(client.response()?.body == expected)
            }
            await server.stop(grace: .zero)
        }
    }
}
