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

    /// The values at a path, as ``StateClient/values(_:as:)`` says.
    public struct Values<Value: Decodable & Sendable>: AsyncSequence, Sendable {
        let requests: Requests
        let path: String

        /// Returns an iterator that begins with the present value.
        public func makeAsyncIterator() -> Iterator { Iterator(requests: requests, path: path) }

        /// One loop over the values.
        public struct Iterator: AsyncIteratorProtocol, Sendable {
            let requests: Requests
            let path: String
            private var watch = ValueWatch()

            init(requests: Requests, path: String) { (self.requests, self.path) = (requests, path) }

            /// The next value that differs from the one before.
            public mutating func next() async throws -> Value?? {
                let route = try Route(path)
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
    /// Reads a value; with a tag, as soon as the value has another one or after 25 seconds.
    func read(_ route: Route, unless tag: String? = nil, within limit: Duration?) async throws -> Reading {
        do {
            let answer = try await send(Call(route.target + (tag == nil ? "" : "?wait=25"), tag: tag), within: limit)
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
        /// Read the value; with a tag, when it has another one.
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
