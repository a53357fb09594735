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
        case filled(Filled)
    }

    /// A template with the values of its varying fields.
    package struct Filled: Sendable {
        package let template: ResponseTemplate
        package let values: ResponseTemplate.Values
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

    /// Makes a 200 with the fields of a template.
    package init(_ template: ResponseTemplate, _ values: ResponseTemplate.Values, body: [UInt8]) {
        status = .ok
        self.body = body
        connection = .keep
        head = .filled(Filled(template: template, values: values))
    }

    /// The template and the values of its varying fields; nil where the response has fields of its own.
    package var filled: Filled? { if case .filled(let filled) = head { filled } else { nil } }

    /// The header fields.
    ///
    /// The transport adds `Content-Length`, `Date` and `Connection`.
    package var fields: HTTPFields {
        get {
            switch head {
            case .own(let fields): fields
            case .filled(let filled): filled.template.fields(varying: filled.values)
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

/// The header fields of responses that differ in the values of one or two fields only.
///
/// A transport that has sent one of them on a connection can write the next one in its place. Templates are compared by
/// identity, so a program makes each of them once.
package final class ResponseTemplate: Sendable {
    /// The values of the varying fields, in the order of their names.
    package struct Values: Sendable {
        package let first: ShortText
        /// Nil for a template with one varying field.
        package let second: ShortText?

        /// Joins the values.
        package init(_ first: ShortText, _ second: ShortText? = nil) {
            self.first = first
            self.second = second
        }
    }

    /// A field: with its value, or of the name whose value differs.
    package enum Part: Sendable {
        case fixed(HTTPField)
        case varying(HTTPField.Name)
    }

    private let parts: [Part]
    /// The name of the first field whose value differs.
    package let firstName: HTTPField.Name
    /// The name of the second one; nil where there is one only.
    package let secondName: HTTPField.Name?

    /// Makes a template of fields in their order.
    ///
    /// - Precondition: one or two of them vary.
    package init(_ parts: [Part]) {
        let names = parts.compactMap { part in
            if case .varying(let name) = part { name } else { nil }
        }
        precondition((1...2).contains(names.count), "one or two fields of a template vary")
        self.parts = parts
        firstName = names[0]
        secondName = names.count > 1 ? names[1] : nil
    }

    /// All fields, the varying ones with their values.
    package func fields(varying values: Values) -> HTTPFields {
        var rest = [values.first.string, values.second?.string ?? ""][...]
        return HTTPFields(
            parts.map { part in
                switch part {
                case .fixed(let field): field
                case .varying(let name): HTTPField(name: name, value: rest.removeFirst())
                }
            })
    }
}
