public import Foundation
public import StateJSON
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

    /// A refusal, with what the server's problem document says.
    public struct Problem: Error, Sendable, CustomStringConvertible {
        /// A part of the request that is at fault.
        public struct Fault: Decodable, Sendable, Equatable {
            /// The JSON Pointer into the body.
            public var pointer: String
            /// The expected value there, for people.
            public var detail: String
        }

        /// The status of the answer; 0 where there was none.
        public var status: Int
        /// The kind of the problem, for programs: a code of the server or of its domain.
        ///
        /// Of the client are `no-answer`, `unexpected-value` for an answer that does not fit its type, `redirected`, and
        /// `status-<n>` for an answer without a problem document, such as a proxy's.
        public var code: String
        /// The problem, for people.
        public var detail: String
        /// The parts at fault.
        public var errors: [Fault] = []
        /// The whole problem document, or null.
        public var document: JSONValue = .null
        /// After how many seconds the server wants to be asked again.
        var retryAfter = 0

        /// Whether the same request can succeed later.
        public var isPassing: Bool { [0, 408, 429, 502, 503, 504].contains(status) }

        /// Code and detail.
        public var description: String { "\(code): \(detail)" }
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

extension StateClient.Problem {
    private struct Document: Decodable {
        var code: String
        var detail: String
        var errors: [Fault]?
    }

    init?(_ answer: Answer) {
        guard !(200..<300).contains(answer.status), answer.status != 304 else { return nil }
        // An answer without a problem document is the page of a proxy.
        let found = try? Self.decode(Document.self, from: answer.body)
        self.init(
            status: answer.status, code: found?.code ?? "status-\(answer.status)",
            detail: found?.detail ?? "the answer is \(answer.status) without a problem document",
            errors: found?.errors ?? [], retryAfter: answer.retryAfter)
        if found != nil { document = (try? Self.decode(from: answer.body)) ?? .null }
    }

    static func malformed(_ detail: String) -> Self { Self(status: 400, code: "malformed-request", detail: detail) }

    static func decode<Value: Decodable>(_ type: Value.Type = Value.self, from json: [UInt8]) throws(Self) -> Value {
        do throws(JSONFault) {
            // A pointer has at most 1,000 parts, and so has the nesting of a state.
            return try JSON.decode(type, from: json, depthMax: 1000, ignoresUnknown: true)
        } catch {
            let fault = Fault(pointer: error.pointer.description, detail: error.detail)
            let detail = "what the server gives is not what is expected: \(fault.pointer): \(fault.detail)"
            throw Self(status: 200, code: "unexpected-value", detail: detail, errors: [fault])
        }
    }
}
