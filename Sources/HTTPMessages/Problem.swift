package import HTTPTypes

/// An error as the client receives it (RFC 9457).
package struct Problem: Error, Sendable {
    /// A JSON Pointer to an invalid part of the body, and the fault there with the expected value.
    package typealias Part = (pointer: String, detail: String)
    package var status: HTTPResponse.Status
    package var code: String
    package var detail: String
    package var parts: [Part]
    package var members: [Member]
    package var fields: HTTPFields

    package struct Member: Sendable {
        package var name: String
        /// The member's value as UTF-8 JSON.
        package var json: [UInt8]

        package init(_ name: String, _ json: [UInt8]) {
            self.name = name
            self.json = json
        }
    }

    package init(
        _ status: HTTPResponse.Status, _ code: String, _ detail: String, parts: [Part] = [], members: [Member] = [],
        fields: HTTPFields = [:]
    ) {
        (self.status, self.code, self.detail) = (status, code, detail)
        (self.parts, self.members, self.fields) = (parts, members, fields)
    }
}
