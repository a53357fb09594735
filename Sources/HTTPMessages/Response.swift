package import HTTPTypes

/// An HTTP response as a value.
package struct Response: Sendable {
    /// The status code and phrase.
    package var status: HTTPResponse.Status
    /// The bytes of the body, which the transport does not send with 204 and 304 and in answer to HEAD.
    package var body: [UInt8]
    /// Whether the connection stays open after this response.
    package var connection: ConnectionFate
    /// The codes of the problems that the body tells, each with its number.
    package var problems: [String: Int] = [:]
    private var head: Head

    private enum Head {
        case own(HTTPFields)
        case filled(ResponseTemplate, value: String)
    }

    /// What the transport does with the connection after it has sent the response.
    package enum ConnectionFate: Sendable {
        /// The connection stays open for further requests.
        case keep
        /// The transport sends `Connection: close` and closes the connection.
        case close
    }

    /// Makes a response; only the status has no default.
    package init(
        status: HTTPResponse.Status, fields: HTTPFields = [:], body: [UInt8] = [], connection: ConnectionFate = .keep
    ) {
        self.status = status
        self.body = body
        self.connection = connection
        head = .own(fields)
    }

    /// Makes a response with the fields of a template.
    ///
    /// - Parameter value: the value of the template's varying field.
    package init(status: HTTPResponse.Status, _ template: ResponseTemplate, _ value: String, body: [UInt8]) {
        self.status = status
        self.body = body
        connection = .keep
        head = .filled(template, value: value)
    }

    /// The template and the value of its varying field; nil where the response has fields of its own.
    package var filled: (template: ResponseTemplate, value: String)? {
        if case .filled(let template, let value) = head { (template, value) } else { nil }
    }

    /// The header fields.
    ///
    /// The transport adds `Content-Length`, `Date` and `Connection`.
    package var fields: HTTPFields {
        get {
            switch head {
            case .own(let fields): fields
            case .filled(let template, let value): template.fields(varying: value)
            }
        }
        set { head = .own(newValue) }
    }
}

extension Response: Equatable {
    /// Responses are equal when the transport would send the same.
    package static func == (left: Response, right: Response) -> Bool {
        left.status == right.status && left.fields == right.fields && left.body == right.body
            && left.connection == right.connection
    }
}

/// The header fields of responses that differ in the value of one field only.
///
/// A transport that has sent one of them on a connection can write the next one in its place. Templates are compared by
/// identity, so a program makes each of them once.
package final class ResponseTemplate: Sendable {
    /// The fields with one value.
    package let fields: HTTPFields
    /// The name of the field whose value differs.
    package let varyingName: HTTPField.Name

    /// Makes a template of the fields with one value and the name of the one without.
    package init(_ fields: HTTPFields, varying name: HTTPField.Name) {
        self.fields = fields
        varyingName = name
    }

    /// All fields, the varying one with a value.
    package func fields(varying value: String) -> HTTPFields {
        var fields = fields
        fields.append(HTTPField(name: varyingName, value: value))
        return fields
    }
}
