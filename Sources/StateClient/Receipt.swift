public import Foundation
internal import StateJSON
public import StateStore

extension StateClient {
    /// The result of an action.
    public struct Receipt: Sendable, Equatable {
        /// The version that the commit made, or nil without a commit, because a middleware has swallowed the action.
        public var version: Version?
        /// The cursor of the commit, from which ``StateClient/changes(since:types:path:by:)`` gives what comes behind it.
        public var cursor: String?
        /// The ID that the action was given, or else the cursor.
        public var id: String?
        /// Whether the state differs from the version before.
        public var changed: Bool
        /// The name of an action that is scheduled, by which ``StateClient/unschedule(_:within:)`` takes it back.
        public var name: String?
        /// The time of an action that is scheduled, in RFC 3339.
        public var due: String?

        init(_ answer: Answer) throws {
            let body = try Problem.decode(Body.self, from: answer.body)
            guard body.committed == false || body.version != nil && body.cursor != nil && body.id != nil else {
                let detail = "the answer is not a receipt, so that nobody knows whether the action has committed"
                throw Problem(status: answer.status, code: "unexpected-value", detail: detail)
            }
            (version, cursor, id, changed) = (body.version, body.cursor, body.id, body.changed)
            (name, due) = (body.name, body.due)
        }
    }

    /// The time at which the server dispatches an action.
    public struct Schedule: Encodable, Sendable {
        private let after: Double?
        private let at: String?
        private let name: String?

        /// A time so long after the commit that schedules.
        ///
        /// - Parameter name: the name by which the action is replaced and taken back, 1 to 255 bytes; else the server makes one.
        public static func after(_ delay: Duration, name: String? = nil) -> Schedule {
            Schedule(after: delay / .seconds(1), at: nil, name: name)
        }

        /// A time of the server's wall clock; one in the past is now.
        ///
        /// - Parameter name: as in ``after(_:name:)``.
        public static func at(_ time: Date, name: String? = nil) -> Schedule {
            Schedule(after: nil, at: time.formatted(.iso8601), name: name)
        }
    }

    /// A value that has to be in the state before an action.
    public struct Expectation: Encodable, Sendable {
        private let path: String
        private let key: Key
        private let value: any Encodable & Sendable

        /// Expects a value at a JSON Pointer.
        public init(_ path: String, _ value: any Encodable & Sendable) {
            (self.path, key, self.value) = (path, .value, value)
        }

        /// Expects that nothing is at a JSON Pointer.
        public init(absent path: String) { (self.path, key, value) = (path, .absent, true) }

        /// Expects that something is at a JSON Pointer, whatever it is.
        public init(present path: String) { (self.path, key, value) = (path, .present, true) }

        private enum Key: CodingKey { case path, value, absent, present }

        /// Encodes `{"path": ..., "value": ...}`, `{"path": ..., "absent": true}` or `{"path": ..., "present": true}`.
        public func encode(to encoder: any Encoder) throws {
            var members = encoder.container(keyedBy: Key.self)
            try members.encode(path, forKey: .path)
            try members.encode(value, forKey: key)
        }
    }
}

private struct Body: Decodable {
    var committed: Bool?
    var version: Version?
    var cursor: String?
    var id: String?
    var changed: Bool
    var name: String?
    var due: String?
}
