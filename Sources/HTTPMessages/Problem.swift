public import HTTPTypes

/// An error as the client receives it (RFC 9457).
public struct Problem: Error, Sendable, Equatable {
    /// An invalid part of the request.
    public struct Part: Sendable, Equatable {
        /// A JSON Pointer into the body.
        public var pointer: String
        /// What is wrong there, and what was expected.
        public var detail: String

        /// Makes a part from its pointer and detail.
        public init(_ pointer: String, _ detail: String) {
            self.pointer = pointer
            self.detail = detail
        }
    }

    /// The status code and phrase; the phrase is the title.
    public var status: HTTPResponse.Status
    /// A stable name by which programs distinguish problems, such as `unknown-action`.
    public var code: String
    /// What happened, to what, and what was expected.
    public var detail: String
    /// The invalid parts, in the order of the body.
    public var parts: [Part]
    /// Further members of the problem document.
    public var members: [Member]
    /// Further header fields, such as `Allow` or `Retry-After`.
    public var fields: HTTPFields

    /// A member of the problem document beyond the standard ones.
    public struct Member: Sendable, Equatable {
        /// The member's name.
        public var name: String
        /// The member's value as UTF-8 JSON.
        public var json: [UInt8]

        /// Makes a member from its name and JSON.
        public init(_ name: String, _ json: [UInt8]) {
            self.name = name
            self.json = json
        }
    }

    /// Makes a problem from its status, code and detail.
    public init(
        _ status: HTTPResponse.Status, _ code: String, _ detail: String, parts: [Part] = [], members: [Member] = [],
        fields: HTTPFields = [:]
    ) {
        self.status = status
        self.code = code
        self.detail = detail
        self.parts = parts
        self.members = members
        self.fields = fields
    }
}
