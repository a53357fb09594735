import Glibc
import HTTPMessages
import Synchronization
import Testing

@testable import MicroHTTP

@Suite("Budgets and shares", .timeLimit(.minutes(5)))
struct BudgetTests {
    @Test("a client has at most half of the memory, all clients together the whole, and what is released is free again")
    func memory() {
        let memory = MemoryBudget(bytesMax: 1000)

        #expect(memory.reserve(500, for: "a") == nil)
        #expect(memory.reserve(1, for: "a")?.code == "too-many-bytes")
        #expect(memory.reserve(400, for: "b") == nil)
        #expect(memory.reserve(200, for: "c")?.code == "memory-exhausted")
        #expect(memory.bytes == 900)
        memory.release(200, for: "a")
        #expect(memory.reserve(200, for: "c") == nil)
        #expect(!memory.isExceeded)
    }

    @Test("unread bytes count once however many clients have them, and until the last has taken them")
    func unread() {
        let memory = MemoryBudget(bytesMax: 1)
        let bytes = [UInt8](repeating: 1, count: MemoryBudget.smallBytesMax + 1)
        var holdings = [memory.hold(bytes, for: "a"), memory.hold(bytes, for: "a")]
        #expect(memory.hold(Array(bytes.dropLast()), for: "a") == nil)

        #expect(memory.bytes == bytes.count && memory.isExceeded)
        holdings.removeLast()
        #expect(memory.bytes == bytes.count)
        holdings.removeLast()
        #expect(memory.bytes == 0)
    }

    @Test("unread bytes count in the share of the first client that has not taken them")
    func unreadShare() {
        let size = MemoryBudget.smallBytesMax + 1
        let memory = MemoryBudget(bytesMax: 4 * size)
        let bytes = (0..<3).map { [UInt8](repeating: $0, count: size) }
        let held = [memory.hold(bytes[0], for: "a"), memory.hold(bytes[1], for: "a"), memory.hold(bytes[0], for: "b")]

        #expect(!memory.isExceeded(by: "a"))
        #expect(memory.reserve(1, for: "a")?.code == "too-many-bytes")
        let more = memory.hold(bytes[2], for: "a")
        #expect(memory.isExceeded(by: "a") && !memory.isExceeded(by: "b"))
        #expect(memory.reserve(size, for: "b") == nil)
        withExtendedLifetime((held, more)) {}
    }

    @Test("a body counts as long as somebody works on its request, also when the connection is parked or gone")
    func worked() async throws {
        let kept = Mutex<Exchange?>(nil)
        let handlers = Handlers(receive: { _, exchange in
            kept.withLock { $0 = exchange }
            return .workingLong
        })
        let gauges = ServerGauges(loops: 1)
        let server = HTTPServer(configuration: .small(bodyBytesMax: 1 << 20), handlers: handlers, gauges: gauges)
        let port = try server.start()[0].port
        let body = String(repeating: "x", count: 200_000)
        do {
            let client = try RawClient(port: port)
            client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            #expect(try await eventually { kept.withLock { $0 != nil } })
            #expect(try await eventually { gauges.statistics.waiting == 1 })
            #expect(gauges.memory.bytes >= body.utf8.count)
        }
        // The handler does not know that the client has gone.
        #expect(gauges.memory.bytes >= body.utf8.count)
        kept.withLock { exchange in
            exchange?.answer(.text("done"))
            exchange = nil
        }
        #expect(try await eventually { gauges.memory.bytes == 0 })
        await server.stop(grace: .seconds(1))
    }

    @Test("a refusal for want of memory is not the reusable answer of later requests")
    func refusedAnswer() async throws {
        let body = String(repeating: "x", count: MemoryBudget.smallBytesMax + 1)
        let gauges = ServerGauges(loops: 1, memoryBytesMax: 1)
        let server = HTTPServer(
            configuration: .small(), handlers: Handlers(receive: { _, _ in .reusable(.text(body)) }), gauges: gauges)
        let port = try server.start()[0].port
        func status() throws -> Int? {
            let client = try RawClient(port: port)
            client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            return client.response()?.status
        }
        do {
            let held = gauges.memory.hold(Array(body.utf8), for: "another")
            // A head is in the cache from the second time on.
            for _ in 0..<3 { #expect(try status() == 503) }
            withExtendedLifetime(held) {}
        }

        #expect(try status() == 200)
        await server.stop(grace: .seconds(1))
    }

    @Test("bytes that change after they were counted count beside those that were")
    func changed() {
        let memory = MemoryBudget(bytesMax: 1)
        var bytes = [UInt8](repeating: 1, count: MemoryBudget.smallBytesMax + 1)
        let holding = memory.hold(bytes, for: "a")
        // In place, unless the count keeps what it has counted.
        bytes[0] = 2
        let other = memory.hold(bytes, for: "a")

        #expect(memory.bytes == 2 * bytes.count)
        withExtendedLifetime((holding, other)) {}
    }

    @Test("a client makes room only if it has a quarter of the places and another has less than half as many")
    func largestClient() {
        var counts = ClientCounts()
        for _ in 0..<25 { counts.add("many") }
        for _ in 0..<12 { counts.add("some") }

        #expect(counts.largestClient(for: "new", placesCount: 100) == "many")
        #expect(counts.largestClient(for: "new", placesCount: 104) == nil)
        #expect(counts.largestClient(for: "many", placesCount: 100) == nil)
        #expect(counts.largestClient(for: "some", placesCount: 100) == nil)
        counts.remove("some")
        #expect(counts.largestClient(for: "some", placesCount: 100) == "many")
    }

    @Test("a body beyond the client's share of the memory is refused, and one that ends gives its memory back")
    func bodies() async throws {
        var configuration = ServerConfiguration.small(bodyBytesMax: 1 << 20)
        configuration.memoryBytesMax = 4 << 20
        let gauges = ServerGauges(loops: 1, memoryBytesMax: configuration.memoryBytesMax)
        let server = HTTPServer(configuration: configuration, handlers: .echo(), gauges: gauges)
        let port = try server.start()[0].port
        let head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n"
        let most = String(repeating: "x", count: (1 << 20) - 1)
        do {
            let two = try (0..<2).map { _ in
                let client = try RawClient(port: port)
                client.send(head + most)
                return client
            }
            #expect(try await eventually { gauges.memory.bytes == 2 << 20 })

            let third = try RawClient(port: port)
            third.send(head + most + "x")
            #expect(third.response()?.status == 429)
            #expect(third.isAtEnd())
            let small = try RawClient(port: port)
            small.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n" + most.prefix(60_000))
            #expect(small.response()?.status == 200)
            two[0].send("x")
            #expect(two[0].response()?.status == 200)
        }
        #expect(try await eventually { gauges.memory.bytes == 0 })
        await server.stop(grace: .seconds(1))
    }

    @Test(
        "clients that do not read long answers of their own are closed beyond the memory, and others get 503 meanwhile")
    func unreadAnswers() async throws {
        var configuration = ServerConfiguration.small()
        configuration.memoryBytesMax = 40 << 20
        let gauges = ServerGauges(loops: 1, memoryBytesMax: configuration.memoryBytesMax)
        let handlers = Handlers(
            receive: { request, _ in
                .now(request.target == "/long" ? .text(String(repeating: "x", count: 16 << 20)) : .text("short"))
            }, refuse: { fault, _ in Response(status: fault.status) })
        let server = HTTPServer(configuration: configuration, handlers: handlers, gauges: gauges)
        let port = try server.start()[0].port
        do {
            let deaf = try (0..<3).map { _ in
                let client = try RawClient(port: port)
                client.request("/long")
                return client
            }
            #expect(try await eventually { gauges.memory.bytes == 48 << 20 })
            let other = try RawClient(port: port)
            other.request("/short")
            #expect(other.response()?.body == "short")
            other.request("/long")
            #expect(other.response()?.status == 503)
            _ = deaf.count
        }
        #expect(try await eventually { gauges.memory.bytes == 0 })
        await server.stop(grace: .seconds(1))
    }

    @Test("where one client has all places, another gets one, and a probe is answered without a place")
    func places() async throws {
        var configuration = ServerConfiguration.small(connectionsMax: 40)
        configuration.reservedTargets = ["/livez"]
        // The heads without an end stay as long as the test, also on a busy machine.
        configuration.headTime = .seconds(60)
        try await withServer(configuration: configuration) { server, port in
            let hogs = try (0..<40).map { number in
                let client = try RawClient(port: port)
                // Half of them are idle, the others send a head without an end.
                client.send(number < 20 ? "GET / HTTP/1.1\r\nHost: a\r\n\r\n" : "GET / HTTP/1.1\r\n")
                return client
            }
            #expect(try await eventually { server.statistics.connections == 40 && server.statistics.requests == 20 })

            let probe = try RawClient(port: port)
            probe.request("/livez")
            #expect(probe.response()?.status == 200)
            let same = try RawClient(port: port)
            same.request("/")
            #expect(same.response()?.status == 503)
            let others = try (0..<5).map { _ in try RawClient(port: port, from: "127.0.0.9") }
            for other in others {
                other.request("/other")
                #expect(other.response()?.body == "GET /other ")
            }
            _ = hogs.count
        }
    }
}
