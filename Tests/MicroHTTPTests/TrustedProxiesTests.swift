import HTTPMessages
import HTTPTypes
import Testing

@testable import MicroHTTP

@Suite("The clients that proxies name", .timeLimit(.minutes(5)))
struct TrustedProxiesTests {
    static let proxies = ["127.0.0.1", "10.0.0.0/8", "fd00::/8"]

    func client(_ lines: [(String, String)], by names: [String] = Self.proxies) -> String? {
        let fields = lines.compactMap { name, value in
            HTTPField.Name(name).map { HTTPField(name: $0, value: value) }
        }
        return TrustedProxies(names)?.client(by: Request.Head(method: .get, target: "/", fields: fields))
    }

    @Test(
        "an address or a network trusts exactly the peers in it",
        arguments: [
            (
                "10.0.0.0/8", ["10.0.0.1", "10.255.255.255"],
                ["11.0.0.1", "9.255.255.255", "::1", "::a00:1", "unknown"]
            ),
            ("192.0.2.7", ["192.0.2.7"], ["192.0.2.6", "192.0.2.70"]), ("192.0.2.6/31", ["192.0.2.7"], ["192.0.2.8"]),
            ("0.0.0.0/0", ["192.0.2.7"], ["2001:db8::1"]), ("::/0", ["2001:db8::1", "192.0.2.7"], ["unknown"]),
            ("2001:db8::/33", ["2001:db8:7fff::1"], ["2001:db8:8000::1"]), ("::1/128", ["::1"], ["::2", "127.0.0.1"]),
        ])
    func networks(name: String, trusted: [String], others: [String]) {
        let proxies = TrustedProxies([name])

        for peer in trusted { #expect(proxies?.trusts(peer) == true, "\(peer)") }
        for peer in others { #expect(proxies?.trusts(peer) == false, "\(peer)") }
    }

    @Test(
        "a name that is neither an address nor a network is refused",
        arguments: [
            "", "localhost", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/", "10.0.0.1/8", "::/129", "[::1]",
            "10.0.0", "10.0.0.1/8/8", "fd00::1/8", "10.0.0.0/8 ", "1.2.3.4:80",
        ])
    func badNames(name: String) {
        #expect(TrustedProxies([name]) == nil)
        #expect(TrustedProxies(["::1", name]) == nil)
    }

    @Test(
        "X-Forwarded-For is read from the right past trusted addresses, over several lines",
        arguments: [
            (["192.0.2.1"], "192.0.2.1"), (["192.0.2.1:8080"], "192.0.2.1"), (["192.0.2.1, 10.0.0.2"], "192.0.2.1"),
            (["192.0.2.1,192.0.2.2"], "192.0.2.2"), (["192.0.2.9", "192.0.2.1", "10.0.0.2 , 10.0.0.3"], "192.0.2.1"),
            (["2001:DB8:0::1"], "2001:db8::1"), (["[2001:db8::1]:80"], "2001:db8::1"),
            (["[2001:db8::1]"], "2001:db8::1"),
            (["::ffff:192.0.2.1"], "192.0.2.1"), (["10.0.0.4, 10.0.0.2"], "10.0.0.4"), (["\"x, 192.0.2.1"], nil),
            (["nonsense, 192.0.2.1"], "192.0.2.1"), (["192.0.2.1, nonsense"], nil),
            (["192.0.2.1, nonsense, 10.0.0.2"], nil),
            (["192.0.2.1, , 10.0.0.2"], "192.0.2.1"), ([""], nil), (["192.0.2.1:port"], nil), (["192.0.2.01"], nil),
            (["[192.0.2.1]"], nil), (["192.0.2.1:"], nil), (["::1%lo"], nil), (["unknown"], nil),
        ] as [([String], String?)])
    func usual(values: [String], client: String?) {
        #expect(self.client(values.map { ("X-Forwarded-For", $0) }) == client)
    }

    @Test(
        "Forwarded is read from the right past trusted addresses, with quotes, ports and other parameters",
        arguments: [
            (["for=192.0.2.1"], "192.0.2.1"), (["For=\"192.0.2.1\";proto=https;by=10.0.0.1"], "192.0.2.1"),
            (["for=\"[2001:DB8::1]:4711\""], "2001:db8::1"), (["for=\"192.0.2.1:_x\""], "192.0.2.1"),
            (["for=192.0.2.1, for=10.0.0.2;host=\"a,b;for=192.0.2.9\""], "192.0.2.1"),
            (["for=192.0.2.9", "proto=http; for=192.0.2.1"], "192.0.2.1"), (["for=\"", "for=192.0.2.1"], "192.0.2.1"),
            (["for=\", for=192.0.2.1"], nil), (["for=unknown"], nil), (["for=_hidden"], nil), (["proto=http"], nil),
            (["for=2001:db8::1"], nil), (["for=\"2001:db8::1\""], nil), (["for=192.0.2.1:80"], nil),
            (["for=192.0.2.1;for=192.0.2.2"], nil), (["for=192.0.2.1;x"], nil), (["for=\"192.0.2.1"], nil),
            (["for=\"192.0.\\2.1\""], nil), (["for=\"\""], nil), (["for="], nil), (["192.0.2.1"], nil),
        ] as [([String], String?)])
    func standard(values: [String], client: String?) {
        #expect(self.client(values.map { ("Forwarded", $0) }) == client)
    }

    @Test("a request with both fields names a client only where they agree")
    func both() {
        let standard = ("Forwarded", "for=192.0.2.9, for=192.0.2.1")

        #expect(client([standard, ("X-Forwarded-For", "192.0.2.1")]) == "192.0.2.1")
        #expect(client([standard, ("X-Forwarded-For", "192.0.2.2")]) == nil)
        #expect(client([standard, ("X-Forwarded-For", "nonsense")]) == nil)
        #expect(client([("Forwarded", "nonsense"), ("X-Forwarded-For", "192.0.2.1")]) == nil)
        #expect(client([]) == nil)
    }

    @Test(
        "requests with the same head are those of the client it names from a trusted peer, and of the peer from another"
    )
    func sharedHeads() async throws {
        var configuration = ServerConfiguration.small()
        configuration.trustedProxies = try #require(TrustedProxies(["127.0.0.1"]))
        let handlers = Handlers(receive: { request, exchange in .now(.text("\(request.client) \(exchange.client)")) })
        try await withServer(handlers, configuration: configuration) { _, port in
            let proxy = try RawClient(port: port, from: "127.0.0.1")
            let other = try RawClient(port: port, from: "127.0.0.9")
            // The head cache has the head from its third request on.
            for _ in 0..<5 {
                for (client, peer) in [(proxy, "127.0.0.1"), (other, "127.0.0.9")] {
                    for named in ["192.0.2.1", "192.0.2.2", "nonsense"] {
                        client.request("/", fields: "X-Forwarded-For: \(named)\r\n")
                        let expected = client === proxy && named != "nonsense" ? named : peer
                        #expect(client.response()?.body == "\(expected) \(expected)")
                    }
                    client.request("/")
                    #expect(client.response()?.body == "\(peer) \(peer)")
                }
            }
        }
    }

    @Test("the clients of a trusted proxy have shares of the bytes of their own, and one share of the places")
    func shares() async throws {
        var configuration = ServerConfiguration.small(bodyBytesMax: 1 << 20)
        configuration.memoryBytesMax = 4 << 20
        configuration.trustedProxies = try #require(TrustedProxies(["127.0.0.1"]))
        let gauges = ServerGauges(loops: 1, memoryBytesMax: configuration.memoryBytesMax)
        let server = HTTPServer(configuration: configuration, handlers: .echo(), gauges: gauges)
        let port = try server.start()[0].port
        let most = String(repeating: "x", count: (1 << 20) - 1)
        func begin(_ client: String) throws -> RawClient {
            let connection = try RawClient(port: port)
            connection.send(
                "POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: \(client)\r\nContent-Length: 1048576\r\n\r\n")
            connection.send(most)
            return connection
        }
        do {
            let two = try [begin("192.0.2.1"), begin("192.0.2.1")]
            #expect(try await eventually { gauges.memory.bytes == 2 << 20 })

            let third = try begin("192.0.2.1")
            #expect(third.response()?.status == 429)
            let other = try begin("192.0.2.2")
            other.send("x")
            #expect(other.response()?.status == 200)
            _ = two.count
        }
        #expect(try await eventually { gauges.memory.bytes == 0 })
        await server.stop(grace: .seconds(1))
    }
}
