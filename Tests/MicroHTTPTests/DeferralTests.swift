import HTTPMessages
import MicroHTTP
import Synchronization
import Testing

@Suite("Deferred requests", .timeLimit(.minutes(5)))
struct DeferralTests {
    /// Defers each request once, and then lets it wait or answers it, as the target says.
    final class Deferral: Sendable {
        private let state = Mutex((deferred: [Exchange](), again: [Exchange](), expired: [Expiry]()))

        var deferred: [Exchange] { state.withLock { $0.deferred } }
        var again: [Exchange] { state.withLock { $0.again } }
        var expired: [Expiry] { state.withLock { $0.expired } }

        func handlers(resumingAtOnce: Bool = false) -> Handlers {
            Handlers(
                receive: { [self] request, exchange in
                    let isAgain = state.withLock { state in
                        guard state.deferred.last?.id == exchange.id else {
                            state.deferred.append(exchange)
                            return false
                        }
                        state.again.append(exchange)
                        return true
                    }
                    guard isAgain else {
                        if resumingAtOnce { exchange.resume() }
                        return .deferred
                    }
                    guard request.target != "/wait" else { return .waiting() }
                    return .now(.text("\(request.method) \(String(decoding: request.body, as: UTF8.self))"))
                },
                expire: { [self] _, reason in
                    state.withLock { $0.expired.append(reason) }
                    return .text("\(reason)")
                })
        }
    }

    /// The first is shorter and the second longer than the loop holds a connection before it suspends it.
    static let delays = [Duration.zero, .milliseconds(60)]

    @Test("a resumption that comes before the handler returns is not lost")
    func early() async throws {
        let deferral = Deferral()
        try await withServer(deferral.handlers(resumingAtOnce: true)) { _, port in
            let client = try RawClient(port: port)
            for _ in 1...3 {
                client.request("/")
                #expect(client.response()?.body == "GET ")
            }
        }
    }

    @Test("a deferred request can be answered instead, and a later resumption does nothing", arguments: delays)
    func answered(delay: Duration) async throws {
        let deferral = Deferral()
        try await withServer(deferral.handlers()) { _, port in
            let client = try RawClient(port: port)
            client.request("/")
            #expect(try await eventually { deferral.deferred.count == 1 })
            try await Task.sleep(for: delay)

            deferral.deferred[0].answer(.text("refused"))
            deferral.deferred[0].resume()

            #expect(client.response()?.body == "refused")
            try await Task.sleep(for: .milliseconds(50))
            #expect(deferral.again.isEmpty)
        }
    }

    @Test("the request of a client that has gone does not come again")
    func gone() async throws {
        let deferral = Deferral()
        try await withServer(deferral.handlers()) { server, port in
            var client: RawClient? = try RawClient(port: port)
            client?.request("/wait")
            #expect(try await eventually { deferral.deferred.count == 1 })
            try await Task.sleep(for: .milliseconds(60))
            client = nil
            try await Task.sleep(for: .milliseconds(60))

            deferral.deferred[0].resume()

            // libmicrohttpd notices the end of a suspended connection when it resumes.
            #expect(try await eventually { server.statistics.connections == 0 })
            #expect(server.statistics.working + server.statistics.waiting == 0)
        }
    }

    @Test("a stop answers a deferred request")
    func stopped() async throws {
        let deferral = Deferral()
        let server = HTTPServer(configuration: .small(), handlers: deferral.handlers())
        let client = try RawClient(port: server.start()[0].port)
        client.request("/")
        #expect(try await eventually { deferral.deferred.count == 1 })

        await server.stop(grace: .milliseconds(100))

        #expect(client.response()?.body == "stopping")
        deferral.deferred[0].resume()
    }
}
