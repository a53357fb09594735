import Glibc
import HTTPMessages
import MicroHTTP
import Synchronization
import Testing

@Suite("Exchanges answered later", .timeLimit(.minutes(5)))
struct ExchangeTests {
    @Test("an answer from another thread arrives, and the connection stays open", arguments: ["/wait", "/work"])
    func later(target: String) async throws {
        let record = Record()
        try await withServer(.echo(record)) { server, port in
            let client = try RawClient(port: port)

            for number in 1...3 {
                client.request(target)
                #expect(try await eventually { record.parked.count == number })
                try await Task.sleep(for: .milliseconds(number == 3 ? 0 : 20))
                record.parked[number - 1].answer(.text("answer \(number)"))
                #expect(client.response()?.body == "answer \(number)")
            }

            #expect(try await eventually { server.statistics.waiting + server.statistics.working == 0 })
        }
    }

    @Test("an answer that comes before the handler returns is not lost")
    func beforeReturn() async throws {
        let handlers = Handlers { request, exchange in
            exchange.answer(.text("early"))
            return request.target == "/now" ? .now(.text("late")) : .waiting()
        }
        try await withServer(handlers) { _, port in
            let client = try RawClient(port: port)

            for target in ["/wait", "/now", "/wait"] {
                client.request(target)
                #expect(client.response()?.body == "early")
            }
        }
    }

    @Test("an answer that is given at the end of the iteration arrives")
    func iterationEnded() async throws {
        let exchanges = Mutex<[Exchange]>([])
        let handlers = Handlers(
            receive: { _, exchange in
                exchanges.withLock { $0.append(exchange) }
                return .working()
            },
            iterationEnded: {
                let taken = exchanges.withLock { waiting in
                    defer { waiting = [] }
                    return waiting
                }
                for exchange in taken { exchange.answer(.text("done")) }
            })
        try await withServer(handlers) { _, port in
            let clients = try (0..<20).map { _ in try RawClient(port: port) }

            for client in clients { client.request("/") }

            for client in clients { #expect(client.response()?.body == "done") }
        }
    }

    @Test("a deadline ends a wait and the work in hand", arguments: ["/wait", "/work"])
    func deadline(target: String) async throws {
        let record = Record()
        try await withServer(.echo(record, deadline: .milliseconds(100))) { _, port in
            let client = try RawClient(port: port)
            let start = ContinuousClock.now

            client.request(target)

            #expect(client.response()?.body == "deadline")
            #expect(ContinuousClock.now - start >= .milliseconds(100))
            #expect(ContinuousClock.now - start < .milliseconds(600))
            record.parked[0].answer(.text("too late"))
            client.request("/next")
            #expect(client.response()?.body == "GET /next ")
        }
    }

    @Test("the exchange of a client that leaves while it waits expires with hangUp")
    func hangUp() async throws {
        let record = Record()
        try await withServer(.echo(record)) { server, port in
            var client: RawClient? = try RawClient(port: port)
            client?.request("/wait")
            #expect(try await eventually { server.statistics.waiting == 1 })

            client = nil

            #expect(try await eventually { record.expired == [.hangUp] })
            #expect(try await eventually { server.statistics.connections == 0 })
            record.parked[0].answer(.text("too late"))
        }
    }

    @Test("a client that has only finished sending gets the end of its wait and the result of its work")
    func halfClosed() async throws {
        let record = Record()
        try await withServer(.echo(record)) { _, port in
            let waiter = try RawClient(port: port)
            waiter.request("/wait")
            waiter.finishSending()
            #expect(waiter.response()?.body == "hangUp")

            let worker = try RawClient(port: port)
            worker.request("/work")
            worker.finishSending()
            #expect(try await eventually { record.parked.count == 2 })
            try await Task.sleep(for: .milliseconds(50))
            record.parked[1].answer(.text("done"))
            #expect(worker.response()?.body == "done")
        }
    }

    @Test("a thousand waiters share one response")
    func thousand() async throws {
        let record = Record()
        try await withServer(.echo(record)) { server, port in
            let clients = try (0..<1000).map { _ in try RawClient(port: port) }
            for client in clients { client.request("/wait") }
            #expect(try await eventually { server.statistics.waiting == 1000 })

            Exchange.answer(record.parked, with: .text("all"))

            for client in clients { #expect(client.response()?.body == "all") }
            #expect(try await eventually { server.statistics.waiting == 0 })
        }
    }

    @Test("when an answer races a deadline exactly one of them arrives")
    func race() async throws {
        let record = Record()
        let handlers = Handlers(
            receive: { _, exchange in
                record.park(exchange)
                return .waiting(atMost: .milliseconds(3))
            },
            expire: { _, reason in
                record.expire(reason)
                return .text("deadline")
            })
        try await withServer(handlers) { _, port in
            let client = try RawClient(port: port)
            var bodies: [String: Int] = [:]
            for attempt in 0..<200 {
                client.request("/wait")
                #expect(try await eventually { record.parked.count > attempt })
                usleep(UInt32.random(in: 0...4000))
                record.parked[attempt].answer(.text("answer"))
                record.parked[attempt].answer(.text("again"))
                bodies[client.response()?.body ?? "nothing", default: 0] += 1
            }

            #expect(bodies["answer", default: 0] + bodies["deadline", default: 0] == 200)
            #expect(record.expired.count >= bodies["deadline", default: 0])
            // The next response is that of the next request: no answer came twice.
            client.request("/wait")
            #expect(try await eventually { record.parked.count == 201 })
            record.parked[200].answer(.text("the last"))
            #expect(["the last", "deadline"].contains(client.response()?.body))
        }
    }

    @Test("a deadline and a client that has finished sending do not overtake an answer that is on its way")
    func onItsWay() async throws {
        let record = Record()
        let handlers = Handlers(
            receive: { _, exchange in
                record.park(exchange)
                return .waiting(atMost: .milliseconds(20))
            },
            expire: { _, reason in
                record.expire(reason)
                return nil
            })
        try await withServer(handlers) { server, port in
            let clients = (try RawClient(port: port), try RawClient(port: port))
            clients.0.request("/wait")
            clients.1.request("/wait")
            #expect(try await eventually { server.statistics.waiting == 2 })
            clients.1.finishSending()
            #expect(try await eventually { record.expired.count >= 2 })

            Exchange.answer(record.parked, with: .text("answer"))

            #expect(clients.0.response()?.body == "answer")
            #expect(clients.1.response()?.body == "answer")
            #expect(try await eventually { server.statistics.waiting == 0 })
        }
    }
}
