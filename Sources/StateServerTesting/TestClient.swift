internal import Foundation
internal import HTTPMessages
internal import HTTPTypes
internal import Logging
public import StateJSON
public import StateServer
public import StateStore

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A client of a server under test, with the same calls in process and over a socket.
///
/// ```swift
/// let client = try TestClient(of: Inventory())
/// try await client.dispatch(#"{"type":"stock/add","payload":{"id":"tea","count":3}}"#)
/// #expect(try await client.get("/v1/state/stock/tea").body == #"{"count":3}"#)
/// ```
///
/// A test can make the same calls to a server in its own process and to another one: ``init(of:settings:)`` and
/// ``init(at:)`` make the same type of client.
public struct TestClient: Sendable {
    /// The response to a request.
    public struct Answer: Sendable {
        /// The status code.
        public var status: Int
        /// The header fields, by lower-case names.
        public var fields: [String: String]
        /// The body as text, without the line feed that ends a JSON answer.
        public var body: String

        fileprivate init(_ status: Int, _ fields: [String: String], _ body: [UInt8]) {
            (self.status, self.fields) = (status, fields)
            self.body = String(decoding: body.last == UInt8(ascii: "\n") ? body.dropLast() : body[...], as: UTF8.self)
        }

        /// The body as a JSON value.
        ///
        /// - Throws: ``TestClientFault`` when the body is not JSON.
        public func json() throws -> JSONValue {
            do {
                return try JSON.decode(from: Array(body.utf8))
            } catch {
                throw TestClientFault("the body is not JSON: \(body.prefix(200))")
            }
        }
    }

    private let transport:
        @Sendable (_ method: String, _ target: String, _ body: String?, _ fields: [String: String]) async throws ->
            Answer

    /// Makes a client with a server of its own, in this process and without a socket.
    ///
    /// The server keeps its state in memory unless the settings name a directory.
    ///
    /// - Throws: what ``StateServer/StateServer`` throws.
    public init<D: Domain>(of domain: D, settings: Settings? = nil) throws {
        var inMemory = Settings()
        inMemory.data = "none"
        self.init(try StateServer(domain, settings: settings ?? inMemory, logger: Logger(label: "test")))
    }

    /// Makes a client of a server in this process, without a socket.
    public init(_ server: StateServer) {
        let inProcess = server.inProcessTransport
        transport = { try await Self.send(inProcess, $0, $1, $2, $3) }
    }

    /// Makes a client of a listening server, by its base URL, such as `http://127.0.0.1:8080`.
    public init(at base: String) { transport = { try await Self.live(base, $0, $1, $2, $3) } }

    /// Sends a request with a JSON body, or without one.
    ///
    /// - Parameter target: path and query, percent-encoded.
    /// - Throws: ``TestClientFault`` when a live server does not answer. An answer that reports a problem is no fault.
    public func send(
        _ method: String, _ target: String, body: String? = nil, fields: [String: String] = [:]
    ) async throws -> Answer {
        var fields = fields
        if body != nil, fields["Content-Type"] == nil { fields["Content-Type"] = "application/json" }
        return try await transport(method, target, body, fields)
    }

    /// Sends a GET request.
    public func get(_ target: String, fields: [String: String] = [:]) async throws -> Answer {
        try await send("GET", target, fields: fields)
    }

    /// Dispatches actions and expects their commit.
    ///
    /// - Throws: ``TestClientFault`` when the status is not a success.
    @discardableResult
    public func dispatch(_ actions: String, fields: [String: String] = [:]) async throws -> Answer {
        let answer = try await send("POST", "/v1/actions", body: actions, fields: fields)
        guard (200..<300).contains(answer.status) else {
            throw TestClientFault("\(actions.prefix(200)) was answered \(answer.status): \(answer.body.prefix(500))")
        }
        return answer
    }

    /// Waits until a part of the state has other content than an earlier answer, and returns the new answer.
    ///
    /// - Throws: ``TestClientFault`` when the content has not changed in time, or the earlier answer has no `ETag`.
    public func next(_ target: String, after answer: Answer, within seconds: Int = 25) async throws -> Answer {
        guard let tag = answer.fields["etag"] else { throw TestClientFault("the answer from before has no ETag") }
        let mark = target.contains("?") ? "&" : "?"
        let next = try await get("\(target)\(mark)wait=\(seconds)", fields: ["If-None-Match": tag])
        guard next.status != 304 else { throw TestClientFault("\(target) has not changed within \(seconds) seconds") }
        return next
    }

    private static func send(
        _ transport: InProcessTransport, _ method: String, _ target: String, _ body: String?, _ fields: [String: String]
    ) async throws -> Answer {
        guard let method = HTTPRequest.Method(method) else { throw TestClientFault("\(method) is not a method") }
        var head = HTTPFields()
        for (name, value) in fields {
            guard let name = HTTPField.Name(name) else { throw TestClientFault("\(name) is not a field name") }
            head[name] = value
        }
        let request = Request(method: method, target: target, fields: head, body: Array((body ?? "").utf8))
        guard let response = await transport.send(request) else {
            throw TestClientFault("\(target) is answered by a stream, which this client does not read")
        }
        let isBodiless = method == .head || response.status == .noContent || response.status == .notModified
        return Answer(
            response.status.code,
            Dictionary(response.fields.map { ($0.name.canonicalName, $0.value) }, uniquingKeysWith: { "\($0), \($1)" }),
            isBodiless ? [] : response.body)
    }

    private static func live(
        _ base: String, _ method: String, _ target: String, _ body: String?, _ fields: [String: String]
    ) async throws -> Answer {
        guard let url = URL(string: base + target) else { throw TestClientFault("\(base)\(target) is not an address") }
        var request = URLRequest(url: url, cachePolicy: .reloadIgnoringLocalCacheData, timeoutInterval: 120)
        request.httpMethod = method
        request.httpBody = body.map { Data($0.utf8) }
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        let (data, response): (Data, URLResponse)
        do {
            (data, response) = try await URLSession(configuration: .ephemeral).data(for: request)
        } catch {
            throw TestClientFault("\(base)\(target) does not answer: \(error.localizedDescription)")
        }
        guard let answer = response as? HTTPURLResponse else { throw TestClientFault("\(base) does not speak HTTP") }
        let named = answer.allHeaderFields.map { ("\($0)".lowercased(), "\($1)") }
        return Answer(answer.statusCode, Dictionary(named, uniquingKeysWith: { "\($0), \($1)" }), Array(data))
    }
}

/// The error of a server under test that does not answer as the client relies on.
public struct TestClientFault: Error, CustomStringConvertible {
    /// The event, and the expected one, in a sentence.
    public let description: String

    init(_ description: String) { self.description = description }
}
