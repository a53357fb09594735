import Dispatch
import HTTPMessages
import MicroHTTP
import Synchronization
import TestSupport
import Testing

/// Random requests, answers, hang-ups and deadlines, and a stop at the end, beside a model of who is owed which answer.
@Suite("A model of exchanges", .timeLimit(.minutes(5)))
struct ExchangeModelTests {
    /// The exchanges that the handler was given, by the targets of their requests, and how often each has expired.
    private final class Desk: Sendable {
        private let state = Mutex((exchanges: [String: Exchange](), expired: [UInt64: Int]()))

        func take(_ exchange: Exchange, of target: String) { state.withLock { $0.exchanges[target] = exchange } }
        func expire(_ exchange: Exchange) { state.withLock { $0.expired[exchange.id, default: 0] += 1 } }

        var exchanges: [String: Exchange] { state.withLock { $0.exchanges } }
        var expired: [UInt64: Int] { state.withLock { $0.expired } }

        var handlers: Handlers {
            Handlers(
                receive: { [self] request, exchange in
                    take(exchange, of: request.target)
                    switch request.target.split(separator: "/")[0] {
                    case "now": return .now(.text("answer \(request.target)"))
                    case "work": return .working()
                    case "long": return .workingLong
                    case "wait": return .waiting()
                    default: return .waiting(atMost: .milliseconds(4))
                    }
                },
                expire: { [self] exchange, _ in
                    expire(exchange)
                    return .text("expired \(exchanges.first { $1 === exchange }?.key ?? "nothing")")
                })
        }
    }

    private struct Client {
        var socket: RawClient
        /// The target of the request that it has sent and whose answer it has not read.
        var awaits: String?
    }

    private static let kinds = ["now", "work", "long", "wait", "brief"]

    /// Answers an exchange on another thread, perhaps a moment later.
    private func answer(_ exchange: Exchange, of target: String, after pause: Int) {
        // No task: the reading clients block the threads of tasks.
        DispatchQueue.global().asyncAfter(deadline: .now() + .microseconds(pause)) {
            exchange.answer(.text("answer \(target)"))
        }
    }

    @Test("each request gets its own answer and no other one", arguments: 1...6 as ClosedRange<UInt64>)
    func answers(seed: UInt64) async throws {
        var random = SplitMix(seed: seed)
        let desk = Desk()
        var configuration = ServerConfiguration.small()
        configuration.loops = Int(seed % 2) + 1
        let server = HTTPServer(configuration: configuration, handlers: desk.handlers)
        let port = try server.start()[0].port
        var clients = try (0..<12).map { _ in Client(socket: try RawClient(port: port)) }

        for number in 0..<400 {
            let index = Int.random(in: clients.indices, using: &random)
            guard let target = clients[index].awaits else {
                let target = "/\(Self.kinds.randomElement(using: &random) ?? "now")/\(number)"
                clients[index].socket.request(target)
                clients[index].awaits = target
                continue
            }
            #expect(try await eventually { desk.exchanges[target] != nil })
            let exchange = try #require(desk.exchanges[target])
            switch Int.random(in: 0..<8, using: &random) {
            case 0:
                // The client leaves, and its answer comes late.
                clients[index] = Client(socket: try RawClient(port: port))
                answer(exchange, of: target, after: Int.random(in: 0..<3000, using: &random))
            case 1:
                // An answer to a request that may be over long since goes nowhere.
                let other = desk.exchanges.keys.sorted().randomElement(using: &random) ?? target
                guard !clients.contains(where: { $0.awaits == other }) else { continue }
                desk.exchanges[other]?.answer(.text("late \(other)"))
            default:
                answer(exchange, of: target, after: Int.random(in: 0..<3000, using: &random))
                let body = clients[index].socket.response()?.body
                let isExpired = target.hasPrefix("/brief") && body == "expired \(target)"
                #expect(body == "answer \(target)" || isExpired, "\(target): \(body ?? "nothing")")
                clients[index].awaits = nil
            }
        }

        // The rest is answered while the server stops.
        let awaited = clients.compactMap(\.awaits)
        #expect(try await eventually { awaited.allSatisfy { desk.exchanges[$0] != nil } })
        for target in awaited where Bool.random(using: &random) {
            if let exchange = desk.exchanges[target] {
                answer(exchange, of: target, after: Int.random(in: 0..<2000, using: &random))
            }
        }
        await server.stop(grace: .milliseconds(50))
        for client in clients {
            if let target = client.awaits {
                let body = client.socket.response()?.body
                #expect(body == "answer \(target)" || body == "expired \(target)", "\(target): \(body ?? "nothing")")
            }
            #expect(client.socket.isAtEnd())
        }
        #expect(desk.exchanges.values.allSatisfy { $0.isOver })
        #expect(desk.expired.values.allSatisfy { $0 == 1 })
        #expect(server.statistics.waiting + server.statistics.working == 0)
    }
}
