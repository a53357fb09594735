public import Foundation
public import StateJSON
public import StateStore

/// A client of a server, for other processes: it reads, follows and dispatches with the types of the server's domain.
///
/// ```swift
/// let client = StateClient(URL(string: "http://localhost:8080")!, token: token)
/// let counter = try await client.state("/counter", as: Counter.State.self)
/// try await client.dispatch(Counter.Add(amount: 2))
/// for try await counter in client.values("/counter", as: Counter.State.self) { print(counter?.value ?? 0) }
/// ```
///
/// Values and actions have the server's JSON, so that a `Date` or a `Decimal` is read back as it was written. A field that a
/// type does not have is ignored: the server can be newer than the client.
///
/// A path is a JSON Pointer, or `view:` and the name of a view. Where nothing is there, and where the token may not see the
/// value, the client gives nil.
///
/// A request without an answer, and one that the server puts off, is sent again: each call says for how long. Everything else
/// that a server refuses is thrown as a ``Problem``, such as 401 `unauthorized` when a token is revoked. A task that is
/// cancelled gets a `CancellationError`, and its request ends.
///
/// Threads: any thread may use a client and its copies. Each loop over ``values(_:as:)`` or
/// ``changes(since:types:path:by:)`` holds a connection while it waits.
public struct StateClient: Sendable {
    let requests: Requests
    private let outbox = Outbox()

    /// Makes a client of a server, or of a store below it, such as `http://localhost:8080/v1/stores/tasks`.
    ///
    /// - Parameters:
    ///   - token: the credential, if the server needs one.
    ///   - report: gets each ``Problem`` after which a request is sent again, so that a program can say that it waits.
    public init(_ url: URL, token: String? = nil, report: @escaping @Sendable (Problem) -> Void = { _ in }) {
        self.init(url, tokens: { token }, report: report)
    }

    /// Makes a client whose token can change.
    ///
    /// - Parameters:
    ///   - tokens: gives the credential of each request; after a 401 it is asked once more. An error of it ends the call.
    ///   - report: gets each ``Problem`` after which a request is sent again.
    public init(
        _ url: URL, tokens: @escaping @Sendable () async throws -> String?,
        report: @escaping @Sendable (Problem) -> Void = { _ in }
    ) {
        requests = Requests(base: Transport.base(of: url), tokens: tokens, report: report, exchange: Transport.exchange)
    }

    init(_ requests: Requests) { self.requests = requests }

    /// The value at a path now, or nil if nothing is there, or the token may not see it.
    ///
    /// - Parameter limit: for how long a request without an answer is sent again.
    /// - Throws: ``Problem``; its code is `unexpected-value` for a value that does not fit the type.
    public func state<Value: Decodable>(
        _ path: String = "", as type: Value.Type = Value.self, within limit: Duration = .seconds(120)
    ) async throws -> Value? {
        let reading = try await requests.read(Route(path), within: limit)
        return try reading.json.map { try Problem.decode(type, from: $0) }
    }

    /// Dispatches an action until the server answers; it commits once, however often it is sent.
    ///
    /// A client and its copies send one action after the other, in the order of the calls: of one task, or of the tasks of
    /// one actor. One that is refused, cancelled or given up after its limit does not keep back those behind it.
    ///
    /// - Parameters:
    ///   - id: the name of the action, 1 to 255 bytes: `/v1/actions/<id>` finds its commit.
    ///   - meta: an object that is recorded with the action.
    ///   - expectations: values that have to be in the state before the action, or it is refused as `precondition-failed`.
    ///   - schedule: when the server dispatches the action; nil for now.
    ///   - key: the name of the intent, 1 to 255 printable ASCII characters. The same key commits the same action once, also
    ///     from another process, as long as the server keeps keys: a day by default. Without one, a call makes a key of its
    ///     own for all attempts.
    ///   - limit: for how long after the call a request without an answer is sent again.
    /// - Throws: ``Problem``; `EncodingError` for a number that JSON does not have. A problem that ``Problem/isPassing`` comes
    ///   after the limit. Whether the action has committed is not known then: dispatch it again with the same key.
    @discardableResult
    nonisolated(nonsending) public func dispatch<Dispatched: Action>(
        _ action: Dispatched, id: String? = nil, meta: JSONValue? = nil, expect expectations: [Expectation] = [],
        schedule: Schedule? = nil, key: String = UUID().uuidString, within limit: Duration = .seconds(120)
    ) async throws -> Receipt {
        let body = Dispatch(
            type: Dispatched.type, payload: action, id: id, meta: meta,
            expect: expectations.isEmpty ? nil : expectations, schedule: schedule)
        let call = try Call("/actions", body: JSON.encode(body), key: key)
        return try Receipt(try await outbox.inTurn(within: limit) { try await requests.send(call, within: $0) })
    }

    /// Takes back an action that this client's subject has scheduled.
    ///
    /// - Parameter limit: for how long a request without an answer is sent again.
    /// - Throws: ``Problem``; its code is `not-scheduled` where the subject has scheduled nothing under the name.
    @discardableResult
    nonisolated(nonsending) public func unschedule(_ name: String, within limit: Duration = .seconds(120)) async throws
        -> Receipt
    {
        let path = name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? name
        let call = Call("/schedule/\(path)", method: "DELETE", key: UUID().uuidString)
        return try Receipt(try await outbox.inTurn(within: limit) { try await requests.send(call, within: $0) })
    }
}

private struct Dispatch<Payload: Action>: Encodable {
    var type: String
    var payload: Payload
    var id: String?
    var meta: JSONValue?
    var expect: [StateClient.Expectation]?
    var schedule: StateClient.Schedule?
}
