public import StateJSON

extension StateClient {
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
