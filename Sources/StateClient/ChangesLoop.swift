public import Foundation
public import StateJSON
public import StateStore

extension StateClient {
    /// Each commit behind a cursor, once and in order, through restarts of the server and of the connection.
    ///
    /// - Parameters:
    ///   - cursor: a ``Commit/cursor``, `oldest`, or `now`: when the loop begins. A program that stores the cursor of the last
    ///     item goes on there after its own restart.
    ///   - types: only commits with an action of one of these types.
    ///   - path: only commits that change this part of the state, a JSON Pointer.
    ///   - subject: only commits of this subject.
    /// - Returns: a sequence that ends with a ``Problem``, such as a revoked token's. An iterator holds at most one page of
    ///   commits, up to 1,000 or about 4 MiB; the server keeps nothing for it.
    public func changes(
        since cursor: String = "now", types: [String]? = nil, path: String? = nil, by subject: String? = nil
    ) -> Changes {
        let types = types.map { "&types=" + $0.map { percentEncoded($0) }.joined(separator: ",") } ?? ""
        return Changes(
            requests: requests, since: cursor, filter: types + parameter("path", path) + parameter("by", subject))
    }

    /// The commits behind a cursor, as ``StateClient/changes(since:types:path:by:)`` says.
    public struct Changes: AsyncSequence, Sendable {
        let requests: Requests
        let since: String
        let filter: String

        /// Returns an iterator that begins behind the cursor.
        public func makeAsyncIterator() -> Iterator { Iterator(requests: requests, since: since, filter: filter) }

        /// One loop over the commits.
        public struct Iterator: AsyncIteratorProtocol, Sendable {
            let requests: Requests
            var since: String
            let filter: String
            var queue: ArraySlice<Change> = []

            /// The next commit, or the reset in place of the commits that are gone.
            public mutating func next() async throws -> Change? {
                while queue.isEmpty {
                    let place = "/changes?since=" + percentEncoded(since)
                    let call = Call(place + "&wait=25&limit=1000&on-lost=snapshot" + filter)
                    let answer = try await requests.send(call, within: nil)
                    let page = try Problem.decode(Page.self, from: answer.body)
                    (queue, since) = (page.items[...], page.next)
                }
                return queue.popFirst()
            }
        }
    }

    /// An item of ``StateClient/changes(since:types:path:by:)``.
    public enum Change: Sendable {
        /// The next commit.
        case commit(Commit)
        /// The commits behind the cursor are gone: the server has another history, or no longer keeps them.
        ///
        /// A copy of the state begins again with the one here; commits at and before its cursor do not come.
        case reset(Reset)

        /// The cursor behind which another loop goes on.
        public var cursor: String {
            switch self {
            case .commit(let commit): commit.cursor
            case .reset(let reset): reset.cursor
            }
        }
    }

    /// A step of the history.
    public struct Commit: Decodable, Sendable {
        /// The version that the commit made.
        public var version: Version
        /// The instant behind the commit.
        public var cursor: String
        /// When its turn began.
        public var time: Date
        /// The ID that the client gave to its one action, or else the cursor.
        public var id: String
        /// Of a follow-up: the ID of the commit that caused it.
        public var cause: String?
        /// Of a follow-up: the ID of the commit that began the cascade.
        public var root: String?
        /// The subject that dispatched the action, where there is one.
        public var by: String?
        /// The field of the request that dispatched the action, where it had one.
        public var traceparent: String?
        /// The action as it was recorded, an array if it came as one, or nil if the token may not see it.
        public var action: JSONValue?
        /// The difference to the version before, RFC 6902.
        public var patch: JSONValue

        /// The actions of a type in this commit.
        ///
        /// - Throws: ``StateClient/Problem`` of the code `unexpected-value` for a payload that does not fit the type.
        public func actions<Recorded: Action>(_ type: Recorded.Type) throws -> [Recorded] {
            let all = if case .array(let actions)? = action { actions } else { [action ?? .null] }
            return try all.filter { $0[pointer: "/type"] == .string(Recorded.type) }
                .map { try Problem.decode(type, from: $0[pointer: "/payload"]?.text ?? Array("{}".utf8)) }
        }
    }

    /// A new beginning, where the commits behind a cursor are gone.
    public struct Reset: Sendable {
        /// `cursor-lost` or `cursor-expired`.
        public var reason: String
        /// The instant of the state.
        public var cursor: String
        /// The whole state, as far as the token may see it.
        public var state: JSONValue

        /// The part of the state at a JSON Pointer, or nil.
        ///
        /// - Throws: ``StateClient/Problem`` of the code `unexpected-value` for a value that does not fit the type.
        public func state<Value: Decodable>(_ path: String = "", as type: Value.Type = Value.self) throws -> Value? {
            guard let pointer = JSONPointer(text: path), let value = state[pointer: pointer] else { return nil }
            return try Problem.decode(type, from: value.text)
        }
    }
}

private struct Page: Decodable {
    var changes: [StateClient.Commit]?
    var reset: Bool?
    var reason: String?
    var state: JSONValue?
    var next: String

    var items: [StateClient.Change] {
        guard reset == true else { return changes?.map { .commit($0) } ?? [] }
        return [.reset(.init(reason: reason ?? "", cursor: next, state: state ?? .null))]
    }
}
