import Glibc
import MicroHTTP
import Testing

@Suite("Starting and stopping", .timeLimit(.minutes(5)))
struct LifecycleTests {
    @Test("a server listens on addresses of both kinds", arguments: ["127.0.0.1", "0.0.0.0", "localhost", "::1", "::"])
    func hosts(host: String) async throws {
        var configuration = ServerConfiguration.small()
        configuration.places = [.address(host: host, port: 0)]
        let server = HTTPServer(configuration: configuration, handlers: .echo())
        let address = try server.start()[0]

        let client = try RawClient(port: address.port, host: host == "::1" ? "::1" : "127.0.0.1")
        client.request("/")
        #expect(client.response()?.status == 200)
        await server.stop()
    }

    @Test("an unknown host is an error")
    func unknownHost() {
        var configuration = ServerConfiguration.small()
        configuration.places = [.address(host: "nowhere.invalid", port: 0)]
        let server = HTTPServer(configuration: configuration, handlers: .echo())

        let error = #expect(throws: ServerError.self) { try server.start() }

        #expect(error?.isOfAddress == true)
        #expect(error?.description.hasPrefix("cannot listen on nowhere.invalid: ") == true)
    }

    @Test("more connections than the process may have files is an error")
    func descriptorLimit() {
        let server = HTTPServer(configuration: .small(connectionsMax: 1_000_000_000), handlers: .echo())

        let error = #expect(throws: ServerError.self) { try server.start() }

        #expect(error?.isOfAddress == false)
        #expect(error?.description.hasPrefix("the connections need 10") == true)
    }

    @Test("a stop lets work finish within the grace time, and no longer")
    func stopWithWork() async throws {
        let record = Record()
        try await withServer(.echo(record)) { server, port in
            let quick = try RawClient(port: port)
            let slow = try RawClient(port: port)
            quick.request("/work")
            #expect(try await eventually { record.parked.count == 1 })
            slow.request("/work")
            #expect(try await eventually { server.statistics.working == 2 })

            // Long enough for the answer below beside tests that block the threads of the pool.
            let stopped = Task { await server.stop(grace: .seconds(2)) }
            try await Task.sleep(for: .milliseconds(50))
            record.parked[0].answer(.text("done"))
            #expect(quick.response()?.body == "done")
            #expect(slow.response()?.body == "stopping")
            await stopped.value

            record.parked[1].answer(.text("too late"))
        }
    }

    @Test("a stop does not wait for idle connections")
    func stopIdle() async throws {
        try await withServer { server, port in
            let client = try RawClient(port: port)
            client.request("/")
            _ = client.response()
            let start = ContinuousClock.now

            await server.stop(grace: .seconds(55))

            // It takes milliseconds alone, and longer beside tests that block the threads of the pool on their sockets.
            #expect(ContinuousClock.now - start < .seconds(50))
            #expect(client.isAtEnd())
        }
    }

    @Test("a server that accepts no more still serves the connections it has")
    func stopAccepting() async throws {
        try await withServer { server, port in
            let client = try RawClient(port: port)
            client.request("/")
            _ = client.response()

            server.stopAccepting()

            #expect(try await eventually { !RawClient.canConnect(port: port) })
            client.request("/again")
            #expect(client.response()?.body == "GET /again ")
        }
    }
}
