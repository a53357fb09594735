import Foundation
import FoundationNetworking
import Logging
import StateStore
import Synchronization
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

/// Several GETs at the same time.
final class WaitingGets: Sendable {
    private let tasks = Mutex<[Task<Int?, Never>]>([])

    func start(_ client: Client, _ path: String, _ fields: [String: String]) {
        // A session opens few connections to a host, so each GET has a session of its own.
        var client = client
        client.session = URLSession(configuration: .ephemeral)
        let task = Task { [client] in try? await client.get(path, fields).status }
        tasks.withLock { $0.append(task) }
    }

    func statuses() async -> [Int] {
        var statuses: [Int] = []
        for task in tasks.withLock({ $0 }) {
            if let status = await task.value { statuses.append(status) }
        }
        return statuses
    }
}

@Suite("A server", .serialized, .timeLimit(.minutes(5)))
struct LiveTests {
    let directory = FileManager.default.temporaryDirectory.appending(path: "server-\(UUID().uuidString)").path

    @Test("an action changes the value of a GET and of a view, in memory and with a journal", arguments: [false, true])
    func path(isDurable: Bool) async throws {
        try await withServer(Number(), data: isDurable ? directory : "none") { client in
            let receipt = try await client.add(21)
            let state = try await client.get("/v1/state/value")
            let view = try await client.get("/v1/views/doubled")

            #expect(receipt.status == 200)
            #expect(state.body == "21")
            #expect(state.fields["state-cursor"] == receipt.fields["state-cursor"])
            #expect(view.body == "42")
        }
        try? FileManager.default.removeItem(atPath: directory)
    }

    @Test("a waiting GET returns when the action lands, a waiting follower too")
    func waits() async throws {
        try await withServer(Number()) { client in
            let first = try await client.get("/v1/state/value")
            let tag = try #require(first.fields["etag"])
            let cursor = try #require(first.fields["state-cursor"])
            async let value = client.get("/v1/state/value?wait=20", ["If-None-Match": tag])
            async let changes = client.get("/v1/changes?since=\(cursor)&wait=20")
            while try await !client.get("/metrics").body.contains("storekeeper_waiters 2") {
                try await Task.sleep(for: .milliseconds(5))
            }
            try await client.add(7)

            let (woken, page) = (try await value, try await changes)
            #expect(woken.body == "7")
            #expect(page.body.contains(#""patch":[{"op":"replace","path":"/value","value":7}]"#))
        }
    }

    @Test("a waiting request gets its ordinary answer when the server stops")
    func stops() async throws {
        let waiting = WaitingGets()
        try await withServer(Number()) { client in
            let tag = try #require(try await client.get("/v1/state/value").fields["etag"])
            for _ in 0..<20 { waiting.start(client, "/v1/state/value?wait=50", ["If-None-Match": tag]) }
            while try await !client.get("/metrics").body.contains("storekeeper_waiters 20") {
                try await Task.sleep(for: .milliseconds(5))
            }
        }

        let statuses = await waiting.statuses()
        #expect(statuses == Array(repeating: 304, count: 20))
    }

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

    @Test("a journal of another domain is refused with a sentence")
    func otherDomain() async throws {
        try await withServer(NumberAndName(), data: directory) { client in try await client.add(1) }

        let error = await #expect(throws: SettingsFault.self) {
            try await withServer(Number(), data: directory) { _ in }
        }

        #expect(error?.description.contains("does not fit the domain: at /name there is no such field") == true)
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

    @Test("a past version is read from memory and from the journal", arguments: [false, true])
    func past(isDurable: Bool) async throws {
        try await withServer(Number(), data: isDurable ? directory : "none") { client in
            for amount in 1...5 { try await client.add(amount) }

            try await client.expect("/v1/state/value?version=3") { $0 == "6" }
            try await client.expect("/v1/state/value?version=0") { $0 == "0" }
        }
        if isDurable {
            try await withServer(Number(), data: directory) { client in
                try await client.expect("/v1/state/value?version=2") { $0 == "3" }
                try await client.expect("/v1/changes?since=oldest&limit=2") { $0.contains(#""more":true"#) }
            }
        }
        try? FileManager.default.removeItem(atPath: directory)
    }
}
