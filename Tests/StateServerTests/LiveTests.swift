import Foundation
import FoundationNetworking
import Logging
import StateStore
import Testing

@testable import StateServer

/// A domain for the tests, with one number.
struct Number: Domain {
    struct State: StateType, Codable { var value = 0 }
    struct Add: Action { static let type = "number/add"; var amount: Int }

    var reducer: some Reducer<State> {
        On(Add.self) { state, action in state.value += action.amount }
        View("doubled") { state in state.value * 2 }
    }
}

/// The same domain with one more part, as a later build can have it.
struct NumberAndName: Domain {
    struct State: StateType {
        var value = 0
        var name = "none"
    }

    var reducer: some Reducer<State> {
        Field("value", \.value)
        Field("name", \.name)
        On(Number.Add.self) { state, action in state.value += action.amount }
    }
}

/// Runs a server on a free port for as long as `body` runs.
func withServer<D: Domain>(
    _ domain: D, data: String = "none", settings change: (inout Settings) -> Void = { _ in },
    _ body: @Sendable @escaping (Client) async throws -> Void
) async throws {
    var settings = Settings()
    settings.listen = "127.0.0.1:0"
    settings.data = data
    settings.connectionsMax = 500
    change(&settings)
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    let (ports, ready) = AsyncStream.makeStream(of: UInt16.self)
    let server = try StateServer(domain, settings: settings, logger: logger) { address in
        ready.yield(address.port)
        ready.finish()
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await server.run() }
        for await port in ports { try await body(Client(port: port)) }
        group.cancelAll()
        try await group.waitForAll()
    }
}

/// A client over a real socket.
struct Client: Sendable {
    let port: UInt16
    var session = URLSession.shared

    struct Answer: Sendable {
        var status: Int
        var fields: [String: String]
        var body: String
    }

    func send(_ method: String, _ path: String, _ body: String? = nil, _ fields: [String: String] = [:]) async throws
        -> Answer
    {
        var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(port)\(path)")))
        request.httpMethod = method
        request.cachePolicy = .reloadIgnoringLocalCacheData
        if let body {
            request.httpBody = Data(body.utf8)
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        }
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        let (data, response) = try await session.data(for: request)
        let http = try #require(response as? HTTPURLResponse)
        let all = http.allHeaderFields.map { ("\($0.key)".lowercased(), "\($0.value)") }
        return Answer(
            status: http.statusCode, fields: Dictionary(all) { first, _ in first },
            body: String(decoding: data.last == UInt8(ascii: "\n") ? data.dropLast() : data, as: UTF8.self))
    }

    func get(_ path: String, _ fields: [String: String] = [:]) async throws -> Answer {
        try await send("GET", path, nil, fields)
    }

    /// Expects a body as the answer to a GET.
    func expect(_ path: String, sourceLocation: SourceLocation = #_sourceLocation, _ holds: (String) -> Bool)
        async throws
    {
        let body = try await get(path).body
        #expect(holds(body), "\(path) says \(body)", sourceLocation: sourceLocation)
    }

    @discardableResult
    func add(_ amount: Int) async throws -> Answer {
        try await send("POST", "/v1/actions", #"{"type":"number/add","payload":{"amount":\#(amount)}}"#)
    }
}

@Suite("A server", .serialized, .timeLimit(.minutes(5)))
struct LiveTests {
    let directory = FileManager.default.temporaryDirectory.appending(path: "server-\(UUID().uuidString)").path

    @Test("a build that declares more extends the state in a commit of its own")
    func upgrade() async throws {
        try await withServer(Number(), data: directory) { client in try await client.add(5) }
        try await withServer(NumberAndName(), data: directory) { client in
            try await client.expect("/v1/state") { $0 == #"{"value":5,"name":"none"}"# }
            let changes = try await client.get("/v1/changes?since=oldest")
            #expect(
                changes.body.contains(
                    #"{"type":"storekeeper/upgrade"},"patch":[{"op":"add","path":"/name","value":"none"}]"#))
            try await client.add(1)
        }
        try await withServer(NumberAndName(), data: directory) { client in
            try await client.expect("/v1/state") { $0 == #"{"value":6,"name":"none"}"# }
            try await client.expect("/v1") { $0.contains(#""version":3"#) }
        }
        try? FileManager.default.removeItem(atPath: directory)
    }

    @Test("a start that fails throws an error of this module, with what has to be mended")
    func faults() async throws {
        try await withServer(Number(), data: directory) { [directory] client in
            try await client.add(1)
            let journal = await #expect(throws: ServerFault.self) {
                try await withServer(Number(), data: directory) { _ in }
            }
            var settings = Settings()
            settings.data = "none"
            settings.listen = "127.0.0.1:\(client.port)"
            let second = try StateServer(Number(), settings: settings, logger: Logger(label: "test"))
            let address = await #expect(throws: ServerFault.self) { try await second.run() }

            #expect(journal?.cause == .journal)
            #expect(address?.cause == .address)
            #expect(address?.description.contains("another process already does") == true)
        }
        try FileManager.default.removeItem(atPath: directory + "/fence")
        let damaged = await #expect(throws: ServerFault.self) {
            try await withServer(Number(), data: directory) { _ in }
        }

        #expect(damaged?.cause == .damagedJournal)
        try? FileManager.default.removeItem(atPath: directory)
    }
}
