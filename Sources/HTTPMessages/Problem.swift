package import HTTPTypes

/// An error as the client receives it (RFC 9457).
package struct Problem: Error, Sendable, Equatable {
    /// An invalid part of the request.
    package struct Part: Sendable, Equatable {
        /// A JSON Pointer into the body.
        package var pointer: String
        /// The fault there, and the expected value.
        package var detail: String

        /// Makes a part from its pointer and detail.
        package init(_ pointer: String, _ detail: String) {
            self.pointer = pointer
            self.detail = detail
        }
    }

    /// The status code and phrase; the phrase is the title.
    package var status: HTTPResponse.Status
    /// A stable name by which programs distinguish problems, such as `unknown-action`.
    package var code: String
    /// The event, its object, and the expected value, in a sentence.
    package var detail: String
    /// The invalid parts, in the order of the body.
    package var parts: [Part]
    /// Further members of the problem document.
    package var members: [Member]
    /// Further header fields, such as `Allow` or `Retry-After`.
    package var fields: HTTPFields

    /// A member of the problem document beyond the standard ones.
    package struct Member: Sendable, Equatable {
        /// The member's name.
        package var name: String
        /// The member's value as UTF-8 JSON.
        package var json: [UInt8]

        /// Makes a member from its name and JSON.
        package init(_ name: String, _ json: [UInt8]) {
            self.name = name
            self.json = json
        }
    }

    /// Makes a problem from its status, code and detail.
    package init(
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
