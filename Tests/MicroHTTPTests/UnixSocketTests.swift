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

    static func configuration(_ path: String, mode: UInt32 = 0o600, loops: Int = 1) -> ServerConfiguration {
        var configuration = ServerConfiguration.small()
        configuration.places = [.socket(path: path, mode: mode)]
        configuration.loops = loops
        return configuration
    }

    static func permissions(of path: String) -> mode_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o777 : nil
    }

    /// Leaves the file of a socket that nobody listens on, as a killed server does.
    static func leaveFile(at path: String) async throws {
        let server = HTTPServer(configuration: configuration(path), handlers: .echo())
        _ = try server.start()
        // Another name of the file stays when the server removes its own.
        link(path, path + ".kept")
        await server.stop(grace: .zero)
        rename(path + ".kept", path)
    }

    @Test(
        "a server on a Unix socket serves plain requests, bodies, waits and streams, and removes its file",
        arguments: [1, 2])
    func serves(loops: Int) async throws {
        let path = Self.path()
        let record = Record()
        let handlers = Handlers(
            receive: { request, exchange in
                switch request.target {
                case "/wait":
                    record.park(exchange)
                    return .waiting(atMost: nil)
                case "/stream":
                    record.park(exchange)
                    return .streaming(Response(status: .ok), heartbeat: .seconds(30))
                default: return .now(.text("\(request.client) \(exchange.client) \(request.body.count)"))
                }
            })
        let server = HTTPServer(configuration: Self.configuration(path, loops: loops), handlers: handlers)
        let bound = try server.start()

        #expect(bound.map(\.path) == [path] && bound.map(\.port) == [0])
        #expect(Self.permissions(of: path) == 0o600)
        let user = "uid \(getuid())"
        for number in 0..<20 {
            let client = try RawClient(path: path)
            client.request("/plain")
            #expect(client.response()?.body == "\(user) \(user) 0")
            client.send(
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + String(repeating: "x", count: 1000))
            #expect(client.response()?.body == "\(user) \(user) 1000")
            client.request("/wait")
            #expect(try await eventually { record.parked.count == number + 1 })
            record.parked[number].answer(.text("woken"))
            #expect(client.response()?.body == "woken")
            // The kernel does not tell how many bytes have come on such a socket.
            #expect(client.isAtEnd())
        }
        let stream = try RawClient(path: path)
        stream.request("/stream")
        #expect(stream.head()?.hasPrefix("HTTP/1.1 200") == true)
        #expect(try await eventually { record.parked.count == 21 })
        Exchange.send(Array("event".utf8), to: [record.parked[20]], isLast: true)
        #expect(stream.chunks() == "event")
        await server.stop(grace: .seconds(1))
        #expect(Self.permissions(of: path) == nil)
        #expect(throws: SocketError.self) { try RawClient(path: path) }
    }

    @Test(
        "the file of a server that has ended is replaced, and one with other permissions is made",
        arguments: [0o600, 0o660])
    func stale(mode: UInt32) async throws {
        let path = Self.path()
        try await Self.leaveFile(at: path)
        #expect(Self.permissions(of: path) != nil)
        let server = HTTPServer(configuration: Self.configuration(path, mode: mode), handlers: .echo())

        _ = try server.start()

        #expect(Self.permissions(of: path) == mode_t(mode))
        let client = try RawClient(path: path)
        client.request("/")
        #expect(client.response()?.status == 200)
        await server.stop(grace: .zero)
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

    @Test(
        "clients of both places are served at once, and equal heads of the two are not taken for each other",
        arguments: [1, 2])
    func both(loops: Int) async throws {
        let path = Self.path()
        var configuration = Self.configuration(path, loops: loops)
        configuration.places.append(.address(host: "127.0.0.1", port: 0))
        let handlers = Handlers(
            receive: { request, _ in .reusable(.text("\(request.client) \(request.head.isLocal)")) }, generation: { 1 })
        let server = HTTPServer(configuration: configuration, handlers: handlers)
        let port = try server.start()[1].port
        do {
            let clients = try (0..<4).flatMap { _ in
                [
                    (try RawClient(path: path), "uid \(getuid()) true"), (try RawClient(port: port), "127.0.0.1 false"),
                ]
            }
            // The answer is in the head cache from the third request on.
            for _ in 0..<6 {
                for (client, expected) in clients {
                    client.request("/")
                    #expect(client.response()?.body == expected)
                }
            }
        }
        await server.stop(grace: .zero)
        #expect(Self.permissions(of: path) == nil)
        // Another test's server may get the free port at once, and leave it as soon.
        #expect(try await eventually { !RawClient.canConnect(port: port) })
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
