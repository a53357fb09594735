import Dispatch
import HTTPMessages
import MicroHTTP
import Synchronization
import Testing

@Suite("Many connections", .timeLimit(.minutes(5)))
struct LoadTests {
    @Test("exactly this many busy connections do not stall the loop", arguments: [128, 256, 1000])
    func busy(count: Int) async throws {
        try await withServer { server, port in
            let clients = try (0..<count).map { _ in try RawClient(port: port) }
            let start = ContinuousClock.now

            for number in 0..<10 {
                for client in clients { client.request("/\(number)") }
                for client in clients { #expect(client.response()?.body == "GET /\(number) ") }
            }

            #expect(server.statistics.requests == count * 10)
            #expect(ContinuousClock.now - start < .seconds(30))
        }
    }

    @Test("a new client of another address does not wait for all of hundreds that have connected before it")
    func crowd() async throws {
        let order = Mutex<[String]>([])
        let haveConnected = DispatchSemaphore(value: 0)
        let handlers = Handlers(
            receive: { request, _ in
                // The loop stands still until all clients have connected.
                if request.target == "/first" { haveConnected.wait() }
                order.withLock { $0.append(request.client) }
                return .now(.text("answer"))
            },
            refuse: { _, _ in .text("refused") })
        try await withServer(handlers) { _, port in
            let first = try RawClient(port: port)
            first.request("/first")
            let crowd = try (0..<400).map { _ in try RawClient(port: port, from: "127.0.0.66") }
            for client in crowd { client.request("/") }
            let last = try RawClient(port: port, from: "127.0.0.67")
            last.request("/")
            haveConnected.signal()

            for client in [first, last] + crowd { #expect(client.response()?.body == "answer") }
            let place = order.withLock { $0.firstIndex(of: "127.0.0.67") }
            #expect((1..<100).contains(try #require(place)))
        }
    }

    @Test("a connection over capacity is answered with 503, and the others are served")
    func cap() async throws {
        try await withServer(configuration: .small(connectionsMax: 3)) { server, port in
            let clients = try (0..<3).map { _ in try RawClient(port: port) }
            for client in clients { client.request("/") }
            for client in clients { #expect(client.response()?.status == 200) }

            let overCapacity = try RawClient(port: port)
            overCapacity.request("/")
            #expect(overCapacity.response()?.status == 503)
            #expect(overCapacity.isAtEnd())

            clients[0].request("/")
            #expect(clients[0].response()?.status == 200)
        }
    }

    @Test("the oldest silent connection over capacity gives its place to a later client, and an idle one keeps its own")
    func silentOverCapacity() async throws {
        try await withServer(configuration: .small(connectionsMax: 1)) { _, port in
            let inside = try RawClient(port: port)
            inside.request("/")
            #expect(inside.response()?.status == 200)
            let silent = try (0..<16).map { _ in try RawClient(port: port) }

            let last = try RawClient(port: port)
            last.request("/")

            #expect(last.response()?.status == 503)
            #expect(silent[0].response()?.status == 503)
            inside.request("/")
            #expect(inside.response()?.status == 200)
            // The others are closed after two seconds.
            #expect(silent[15].isAtEnd())
        }
    }

    @Test("where clients take all places at once, a later client has its answer at once")
    func silentOverCapacityAtOnce() async throws {
        let haveConnected = DispatchSemaphore(value: 0)
        let handlers = Handlers(
            receive: { request, _ in
                if request.target == "/first" { haveConnected.wait() }
                return .now(.text("answer"))
            },
            refuse: { fault, _ in
                var response = Response.text("refused")
                response.status = fault.status
                return response
            })
        try await withServer(handlers, configuration: .small(connectionsMax: 20)) { _, port in
            let inside = try RawClient(port: port)
            inside.request("/first")
            let silent = try (0..<35).map { _ in try RawClient(port: port) }
            haveConnected.signal()
            #expect(inside.response()?.status == 200)
            try await Task.sleep(for: .milliseconds(200))

            let last = try RawClient(port: port)
            last.request("/")

            // The first of the silent ones makes room, long before the two seconds that it would have.
            let begun = ContinuousClock.now
            #expect(last.response()?.status == 503)
            #expect(ContinuousClock.now - begun < .milliseconds(500))
            withExtendedLifetime(silent) {}
        }
    }

    @Test("a connection over capacity has its time to send a request, also when the loop was idle before")
    func overCapacityAfterIdleTime() async throws {
        let record = Record()
        try await withServer(.echo(record), configuration: .small(connectionsMax: 1)) { _, port in
            let inside = try RawClient(port: port)
            inside.request("/wait")
            #expect(try await eventually { record.parked.count == 1 })
            record.parked[0].answer(.text("answer"))
            #expect(inside.response()?.body == "answer")
            try await Task.sleep(for: .milliseconds(2500))

            let overCapacity = try RawClient(port: port)
            try await Task.sleep(for: .milliseconds(300))
            overCapacity.request("/")

            #expect(overCapacity.response()?.status == 503)
        }
    }
}
