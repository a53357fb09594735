import HTTPMessages
import HTTPTypes
import MicroHTTP
import Synchronization

/// A record of the calls of a server's handlers.
final class Record: Sendable {
    private let state = Mutex((parked: [Exchange](), expired: [Expiry]()))

    func park(_ exchange: Exchange) { state.withLock { $0.parked.append(exchange) } }
    func expire(_ reason: Expiry) { state.withLock { $0.expired.append(reason) } }

    var parked: [Exchange] { state.withLock { $0.parked } }
    var expired: [Expiry] { state.withLock { $0.expired } }
}

extension Handlers {
    /// Answers with the target and the body, leaves `/wait` and `/work` without an answer, and records the calls.
    static func echo(_ record: Record = Record()) -> Handlers {
        Handlers(
            receive: { request, exchange in
                switch request.target {
                case "/wait":
                    record.park(exchange)
                    return .waiting()
                case "/work":
                    record.park(exchange)
                    return .working()
                default:
                    return .now(
                        .text("\(request.method) \(request.target) \(String(decoding: request.body, as: UTF8.self))"))
                }
            },
            expire: { _, reason in
                record.expire(reason)
                return .text("\(reason)")
            },
            refuse: { fault, request in
                var response = Response.text(request?.target ?? "no head")
                response.status = fault.status
                return response
            })
    }
}

extension Response {
    static func text(_ text: String) -> Response {
        Response(status: .ok, fields: [.contentType: "text/plain"], body: Array(text.utf8))
    }
}

extension ServerConfiguration {
    static func small(bodyBytesMax: Int = 1024, connectionsMax: Int = 3000) -> ServerConfiguration {
        ServerConfiguration(bodyBytesMax: bodyBytesMax, connectionsMax: connectionsMax)
    }
}

/// Runs a server during the body, and stops it.
func withServer(
    _ handlers: Handlers = .echo(), configuration: ServerConfiguration = .small(),
    _ body: (HTTPServer, UInt16) async throws -> Void
) async throws {
    let server = HTTPServer(configuration: configuration, handlers: handlers)
    let address = try server.start()[0]
    do {
        try await body(server, address.port)
    } catch {
        await server.stop(grace: .seconds(1))
        throw error
    }
    await server.stop(grace: .seconds(1))
}

/// Waits until a condition is true; returns whether it became true within five seconds.
func eventually(_ isTrue: () -> Bool) async throws -> Bool {
    for _ in 0..<500 {
        if isTrue() { return true }
        try await Task.sleep(for: .milliseconds(10))
    }
    return isTrue()
}
