internal import StateJSON
internal import StateStore

extension StateClient {
    /// The value at a path, and each newer one; values that come and go while the loop is busy are left out.
    ///
    /// The loop goes on through restarts of the server and of the connection. A value that equals the one before does
    /// not come again. Nil comes if nothing is there, or the token may not see it.
    ///
    /// - Returns: a sequence of which each iterator begins with the present value. It ends with a ``Problem``, such as
    ///   a revoked token's, or a value that does not fit the type. Each value is decoded whole.
    public func values<Value: Decodable & Sendable>(_ path: String, as type: Value.Type = Value.self) -> Values<Value> {
        Values(requests: requests, path: path)
    }

    /// A view, now and whenever its value changes.
    ///
    /// ```swift
    /// for try await tasks in client.view("open", Open(owner: "ann"), as: [Task].self) { print(tasks ?? []) }
    /// ```
    ///
    /// - Parameter parameters: the values of the view's parameters; nil for a view without.
    /// - Throws: `EncodingError` for parameters that cannot be encoded.
    public func view<Value: Decodable & Sendable>(
        _ name: String, _ parameters: (any Encodable)? = nil, as type: Value.Type = Value.self
    ) throws -> Values<Value> {
        var members = JSONObject()
        if let parameters, case .object(let given) = try JSONValue(parsing: JSON.encode(parameters)) { members = given }
        let given = members.members.sorted { $0.key < $1.key }.map { name, value in
            switch value {
            case .null: ""
            case .string(let text): parameter(name, text)
            default: parameter(name, String(decoding: value.text, as: UTF8.self))
            }
        }
        return Values(requests: requests, path: "view:\(name)", parameters: given.joined())
    }

    /// A query on the members of the value at a path, now and whenever its answer changes.
    ///
    /// ```swift
    /// let open = Query(filter: "@.done == false", sort: ["/due"], limit: 20)
    /// for try await page in client.query("/tasks/entities", open, as: Task.self) { print(page?.members ?? []) }
    /// ```
    public func query<Member: Decodable & Sendable>(
        _ path: String, _ query: Query = Query(), as type: Member.Type = Member.self
    ) -> Values<Members<Member>> {
        Values(requests: requests, path: path, parameters: query.parameters)
    }

    /// Which members, in which order, and what of each.
    public struct Query: Sendable {
        /// A logical expression of RFC 9535, in which `@` is the member.
        public var filter: String?
        /// JSON Pointers into the member, `-` before one for descending order.
        public var sort: [String]
        /// How many members the answer has at most.
        public var limit: Int
        /// How many members come before the window.
        public var offset: Int
        /// JSON Pointers into the member: of each, these places only; empty for all.
        public var fields: [String]
        /// Whether the answer says how many members the filter lets through.
        public var count: Bool

        /// Makes a query; by default the first 100 members.
        public init(
            filter: String? = nil, sort: [String] = [], limit: Int = 100, offset: Int = 0, fields: [String] = [],
            count: Bool = false
        ) {
            (self.filter, self.sort, self.limit, self.offset) = (filter, sort, limit, offset)
            (self.fields, self.count) = (fields, count)
        }

        var parameters: String {
            func list(_ pointers: [String]) -> String? { pointers.isEmpty ? nil : pointers.joined(separator: ",") }
            let given: [(String, String?)] = [
                ("filter", filter), ("sort", list(sort)), ("limit", "\(limit)"),
                ("offset", offset == 0 ? nil : "\(offset)"), ("fields", list(fields)), ("count", count ? "true" : nil),
            ]
            return given.map { parameter($0, $1) }.joined()
        }
    }

    /// The answer to a query.
    public struct Members<Value: Decodable & Sendable>: Decodable, Sendable {
        /// A member with the last token of its pointer.
        public struct Member: Decodable, Sendable {
            /// The key in an object or a table, or the index in an array.
            public var key: String
            /// The member, or the fields of it that the query asks for.
            public var value: Value
        }

        /// The members of the window, in the order of the query.
        public var members: [Member]
        /// How many members the filter lets through, where the query asks for it.
        public var count: Int?
    }

    /// The values at a path, as ``StateClient/values(_:as:)`` says.
    public struct Values<Value: Decodable & Sendable>: AsyncSequence, Sendable {
        let requests: Requests
        let path: String
        var parameters = ""

        /// The value now, or nil if nothing is there, or the token may not see it.
        ///
        /// - Parameter limit: for how long a request without an answer is sent again.
        /// - Throws: ``Problem``; its code is `unexpected-value` for a value that does not fit the type.
        public func now(within limit: Duration = .seconds(120)) async throws -> Value? {
            let reading = try await requests.read(Route(path, parameters), within: limit)
            return try reading.json.map { try Problem.decode(from: $0) }
        }

        /// Returns an iterator that begins with the present value.
        public func makeAsyncIterator() -> Iterator { Iterator(requests: requests, path: path, parameters: parameters) }

        /// One loop over the values.
        public struct Iterator: AsyncIteratorProtocol, Sendable {
            let requests: Requests
            let path: String
            let parameters: String
            var watch = ValueWatch()

            /// The next value that differs from the one before.
            public mutating func next() async throws -> Value?? {
                let route = try Route(path, parameters)
                while true {
                    switch watch.next {
                    case .read(let tag):
                        let reading = try await requests.read(route, unless: tag, within: nil)
                        if let news = watch.take(reading) {
                            return .some(try news.map { try Problem.decode(from: $0) })
                        }
                    case .awaitCommit(let cursor):
                        let target = "/changes?since=\(cursor)&wait=25&limit=1&on-lost=snapshot" + route.filter
                        _ = try await requests.send(Call(target), within: nil)
                        watch.hasWaited()
                    case .pause:
                        try await Task.sleep(for: .seconds(0.1))
                        watch.hasWaited()
                    }
                }
            }
        }
    }
}

struct Reading: Sendable {
    var json: [UInt8]?
    var cursor: String?
    var tag: String?
    /// Whether the value is the one that the client has; there is no `json` then.
    var isUnchanged = false
}

extension Requests {
    func read(_ route: Route, unless tag: String? = nil, within limit: Duration?) async throws -> Reading {
        do {
            let answer = try await send(Call(route.target(waiting: tag != nil), tag: tag), within: limit)
            if answer.status == 304 { return Reading(cursor: answer.cursor, tag: tag, isUnchanged: true) }
            guard !route.rest.tokens.isEmpty else {
                return Reading(json: answer.body, cursor: answer.cursor, tag: answer.tag)
            }
            let whole = try StateClient.Problem.decode(JSONValue.self, from: answer.body)
            return Reading(json: whole[pointer: route.rest]?.text, cursor: answer.cursor, tag: answer.tag)
        } catch let problem as StateClient.Problem where ["no-such-path", "no-such-view"].contains(problem.code) {
            guard case .string(let cursor) = problem.document[pointer: "/cursor"] else { throw problem }
            return Reading(cursor: cursor)
        }
    }
}

/// The knowledge of a loop over values, and its next step.
struct ValueWatch: Sendable {
    enum Step: Equatable {
        case read(unless: String?)
        /// A read waits only for a change of a value: without one, a commit tells when to look again.
        case awaitCommit(since: String)
        /// Of several servers, the one that has answered is behind another one.
        case pause
    }

    private(set) var next = Step.read(unless: nil)
    private var cursor: Cursor?
    private var tag: String?
    /// The last value that the loop has got; nil before the first.
    private var latest: [UInt8]??

    /// Takes what was read, and returns the value where it is news.
    mutating func take(_ reading: Reading) -> [UInt8]?? {
        let instant = reading.cursor.flatMap { Cursor(text: $0) }
        if let instant, let cursor, instant.epoch == cursor.epoch, instant.version < cursor.version {
            next = .pause
            return nil
        }
        (cursor, tag) = (instant, reading.tag)
        next = tag == nil ? reading.cursor.map { .awaitCommit(since: $0) } ?? .pause : .read(unless: tag)
        guard !reading.isUnchanged, latest != .some(reading.json) else { return nil }
        latest = .some(reading.json)
        return latest
    }

    mutating func hasWaited() { next = .read(unless: tag) }
}
