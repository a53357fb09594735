import Glibc
import HTTPMessages
import MicroHTTP
import Synchronization
import Testing

@Suite("Exchanges answered later", .timeLimit(.minutes(5)))
struct ExchangeTests {
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
