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

/// Problems that the transport finds, and some of which the handlers find as well.
extension Problem {
    package static func busy(_ code: String, after seconds: Int = 1, _ detail: String) -> Problem {
        Problem(.serviceUnavailable, code, detail, fields: [.retryAfter: "\(seconds)"])
    }

    package static func tooMany(_ code: String, after seconds: Int = 1, _ detail: String) -> Problem {
        Problem(.tooManyRequests, code, detail, fields: [.retryAfter: "\(seconds)"])
    }

    /// The detail does not quote the client.
    package static func malformed(_ detail: String) -> Problem { Problem(.badRequest, "malformed-request", detail) }

    package static func tooLarge(limit: Int) -> Problem {
        Problem(
            .contentTooLarge, "body-too-large", "the body is larger than the \(limit) bytes that this server takes",
            members: [Member("limit", Array("\(limit)".utf8))])
    }

    /// The bodies of this client occupy its share of the memory.
    package static let tooManyBytes = tooMany(
        "too-many-bytes", "the requests of this client occupy its whole share of the server's memory")

    /// The bodies and unread answers of all clients are too much.
    package static let memoryExhausted = busy(
        "memory-exhausted",
        "requests and unread answers occupy all the memory that this server gives them; try again in a moment")

    package static let connectionsExhausted = busy(
        "too-many-connections", "this server has too many connections; try again in a moment")
}
