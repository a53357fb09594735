import Glibc
import HTTPMessages
import HTTPTypes
import Synchronization
import Testing

@testable import MicroHTTP

@Suite("The share of a client in an iteration", .timeLimit(.minutes(5)))
struct IterationSharesTests {
    @Test("a client has its time in each iteration, and what others take does not count")
    func time() {
        var shares = IterationShares()
        let start = LoopInstant.now
        let half = IterationShares.time / 2

        /// Whether a client has time, so many halves of a share after the start.
        func begins(_ client: String, _ halves: Int) -> Bool { shares.begins(client, at: start + half * halves) }

        shares.beginIteration()
        var begun = [begins("a", 0), begins("b", 1), begins("a", 3)]
        #expect(begun == [true, true, true])
        // Client b has had its share at once, and client a in two parts.
        begun = [begins("b", 4), begins("a", 9), begins("c", 9)]
        #expect(begun == [false, false, true])

        shares.beginIteration()
        begun = [begins("a", 100), begins("b", 100)]
        #expect(begun == [true, true])
        // What the loop reads for client c meanwhile is of the share of c.
        shares.works(for: "c", at: start + half * 101)
        shares.works(for: "c", at: start + half * 103)
        begun = [begins("b", 105), begins("c", 105)]
        #expect(begun == [true, false])
        // One answer of a megabyte is a share, and one of 100 kB is not.
        shares.beginIteration()
        shares.sends(1 << 20, to: "a")
        shares.sends(100_000, to: "b")
        begun = [begins("a", 200), begins("b", 200)]
        #expect(begun == [false, true])
    }

    @Test("one request that is due begins in each iteration, and what nobody is known to have caused counts for nobody")
    func due() {
        var shares = IterationShares()
        let start = LoopInstant.now

        shares.beginIteration()
        shares.sends(1 << 20, to: "a")
        var begun = [shares.begins("a", at: start), shares.begins("a", at: start, isDue: true)]
        #expect(begun == [false, true])
        begun = [shares.begins("a", at: start, isDue: true), shares.begins("b", at: start, isDue: true)]
        #expect(begun == [false, true])

        shares.beginIteration()
        begun = [shares.begins("a", at: start, isDue: true)]
        shares.rests(at: start)
        begun.append(shares.begins("a", at: start + IterationShares.time * 2))
        #expect(begun == [true, true])
    }

    @Test("many requests of one client delay one of another by less than two, and all are answered")
    func requests() async throws {
        let gate = DispatchGate()
        let order = Mutex<[String]>([])
        let handlers = Handlers(receive: { request, exchange in
            if request.target == "/gate" { gate.pass() }
            order.withLock { $0.append(exchange.client) }
            usleep(1000)
            return .now(.text(request.target))
        })
        try await withServer(handlers) { _, port in
            let quiet = try RawClient(port: port)
            let crowd = try (0..<100).map { _ in try RawClient(port: port, from: "127.0.0.2") }
            let opener = try RawClient(port: port, from: "127.0.0.3")
            for client in crowd + [quiet] { client.request("/first") }
            for client in crowd + [quiet] { #expect(client.response()?.body == "/first") }

            // The loop stands still while all requests arrive, so that one iteration finds all of them.
            opener.request("/gate")
            gate.waitUntilReached()
            order.withLock { $0 = [] }
            for client in crowd { client.request("/second") }
            quiet.request("/second")
            gate.open()

            #expect(quiet.response()?.body == "/second")
            for client in crowd { #expect(client.response()?.body == "/second") }
            let served = order.withLock { $0 }
            #expect(served.filter { $0 == "127.0.0.2" }.count == 100)
            // The first is that of the gate.
            #expect(served.dropFirst().firstIndex(of: "127.0.0.1").map { $0 <= 2 } == true, "\(served.prefix(20))")
        }
    }

    @Test("a connection that asks again at once comes behind those of its client that wait")
    func order() async throws {
        let gate = DispatchGate()
        let order = Mutex<[String]>([])
        let handlers = Handlers(receive: { request, _ in
            if request.target == "/gate" { gate.pass() }
            order.withLock { $0.append(request.target) }
            usleep(1000)
            return .now(.text(request.target))
        })
        try await withServer(handlers) { _, port in
            let crowd = try (0..<40).map { _ in try RawClient(port: port, from: "127.0.0.2") }
            let opener = try RawClient(port: port, from: "127.0.0.3")
            for client in crowd { client.request("/first") }
            for client in crowd { #expect(client.response()?.body == "/first") }
            opener.request("/gate")
            gate.waitUntilReached()
            order.withLock { $0 = [] }
            for (number, client) in crowd.enumerated() { client.request("/\(number)") }
            gate.open()
            for _ in 0..<3 {
                #expect(crowd[0].response()?.body == "/0")
                crowd[0].request("/0")
            }

            #expect(crowd[0].response()?.body == "/0")
            for (number, client) in crowd.enumerated().dropFirst() { #expect(client.response()?.body == "/\(number)") }
            let served = order.withLock { $0 }
            let places = served.indices.filter { served[$0] == "/0" }
            #expect(places.count == 4 && places[1] - places[0] >= 35, "\(served.prefix(50))")
        }
    }

    @Test("long answers that wait for a later iteration arrive whole, and another client is answered meanwhile")
    func longAnswers() async throws {
        let gate = DispatchGate()
        let long = [UInt8](repeating: 0x61, count: 2 << 20)
        let handlers = Handlers(receive: { request, _ in
            if request.target == "/gate" { gate.pass() }
            return .now(Response(status: .ok, body: request.target == "/long" ? long : []))
        })
        try await withServer(handlers) { _, port in
            let quiet = try RawClient(port: port)
            let crowd = try (0..<30).map { _ in try RawClient(port: port, from: "127.0.0.2") }
            let opener = try RawClient(port: port, from: "127.0.0.3")
            opener.request("/gate")
            gate.waitUntilReached()
            for client in crowd { client.request("/long") }
            quiet.request("/short")
            gate.open()

            // The answers fill what the kernel keeps for their clients, who read nothing yet.
            for _ in 0..<50 {
                #expect(quiet.response()?.body == "")
                quiet.request("/short")
            }
            for client in crowd { #expect(client.response()?.body.utf8.count == long.count) }
            #expect(quiet.response()?.body == "")
        }
    }

    @Test("a request with a long head is answered although its client has had its share when the connection moves")
    func longHeads() async throws {
        let gate = DispatchGate()
        let handlers = Handlers(receive: { request, _ in
            if request.target == "/gate" { gate.pass() }
            usleep(500)
            return .now(.text(request.target))
        })
        try await withServer(handlers) { _, port in
            let crowd = try (0..<20).map { _ in try RawClient(port: port, from: "127.0.0.2") }
            let opener = try RawClient(port: port, from: "127.0.0.3")
            for client in crowd { client.request("/first") }
            for client in crowd { #expect(client.response()?.body == "/first") }
            opener.request("/gate")
            gate.waitUntilReached()
            let cookie = "Cookie: \(String(repeating: "c", count: 3000))\r\n"
            for client in crowd { client.request("/long-head", fields: cookie) }
            gate.open()

            for client in crowd { #expect(client.response()?.body == "/long-head") }
        }
    }

    @Test("a long answer whose turn comes while the socket is full is sent when the client reads")
    func fullSockets() async throws {
        let gate = DispatchGate()
        let (short, long) = ([UInt8](repeating: 0x61, count: 60 << 10), [UInt8](repeating: 0x62, count: 1 << 20))
        let handlers = Handlers(receive: { request, _ in
            if request.target == "/gate" { gate.pass() }
            if request.target == "/long" { usleep(300) }
            return .now(Response(status: .ok, body: request.target == "/long" ? long : short))
        })
        try await withServer(handlers) { _, port in
            let crowd = try (0..<60).map { _ in try RawClient(port: port, from: "127.0.0.2") }
            let opener = try RawClient(port: port, from: "127.0.0.3")
            opener.request("/gate")
            gate.waitUntilReached()
            // Each socket has another amount of short answers in it when the long one comes.
            for (count, client) in crowd.enumerated() {
                let requests = Array(repeating: "/", count: count) + ["/long"]
                client.send(requests.map { "GET \($0) HTTP/1.1\r\nHost: test\r\n\r\n" }.joined())
            }
            gate.open()
            try await Task.sleep(for: .milliseconds(300))

            for (count, client) in crowd.enumerated() {
                for _ in 0..<count { #expect(client.response()?.body.utf8.count == short.count) }
                #expect(client.response()?.body.utf8.count == long.count)
            }
        }
    }

    /// A piece that stays in libmicrohttpd's buffer until a later iteration must not be lost at the end of the input.
    @Test(
        "bodies of clients that have finished sending are read whole although their address has had its share",
        arguments: LibraryVersion.current.isStrict ? [false, true] : [false])
    func halfClosedBodies(isChunked: Bool) async throws {
        let gate = DispatchGate()
        let handlers = Handlers(receive: { request, _ in
            if request.target == "/gate" { gate.pass() }
            usleep(300)
            return .now(.text("\(request.body.count)"))
        })
        let piece = String(repeating: "b", count: 8000)
        let field = isChunked ? "Transfer-Encoding: chunked\r\n" : "Content-Length: 40000\r\n"
        let body =
            isChunked
            ? String(repeating: "1f40\r\n\(piece)\r\n", count: 5) + "0\r\n\r\n" : String(repeating: piece, count: 5)
        try await withServer(handlers, configuration: .small(bodyBytesMax: 100_000)) { _, port in
            let opener = try RawClient(port: port, from: "127.0.0.3")
            opener.request("/gate")
            gate.waitUntilReached()
            let crowd = try (0..<200).map { _ in try RawClient(port: port, from: "127.0.0.2") }
            for client in crowd {
                client.request("/", method: "POST", fields: field)
                client.send(body)
                client.finishSending()
            }
            gate.open()

            #expect(crowd.count { $0.response()?.body == "40000" } == crowd.count)
        }
    }

    @Test("a client that is alone has all of an iteration")
    func alone() async throws {
        let gate = DispatchGate()
        let iterations = Mutex(0)
        let handlers = Handlers(
            receive: { request, _ in
                if request.target == "/gate" { gate.pass() }
                usleep(500)
                return .now(.text(request.target))
            }, iterationEnded: { iterations.withLock { $0 += 1 } })
        try await withServer(handlers) { _, port in
            let crowd = try (0..<20).map { _ in try RawClient(port: port) }
            let opener = try RawClient(port: port)
            for client in crowd { client.request("/first") }
            for client in crowd { #expect(client.response()?.body == "/first") }
            opener.request("/gate")
            gate.waitUntilReached()
            iterations.withLock { $0 = 0 }
            for client in crowd { client.request("/second") }
            gate.open()

            for client in crowd { #expect(client.response()?.body == "/second") }
            // With shares, each request would have an iteration of its own. The first is that of the gate.
            #expect(iterations.withLock { $0 } <= 3)
        }
    }
}

/// A place where one thread waits for another.
private final class DispatchGate: Sendable {
    private let state = Mutex((isReached: false, isOpen: false))

    func pass() {
        state.withLock { $0.isReached = true }
        while !state.withLock({ $0.isOpen }) { usleep(500) }
    }

    func waitUntilReached() { while !state.withLock({ $0.isReached }) { usleep(500) } }

    func open() { state.withLock { $0.isOpen = true } }
}
