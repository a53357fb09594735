package import HTTPTypes

/// The fields of a request whose values differ from request to request: what is remembered of its head does not depend on
/// them.
///
/// It is an object, because most requests have none: nil is copied at no cost.
package final class OwnFields: Sendable, Equatable {
    private let values: [(field: RequestField, value: String)]
    package let trace: TraceContext?

    /// The fields that are always a request's own.
    package static let fields: Set<RequestField> = [
        .idempotencyKey, .ifMatch, .ifNoneMatch, .lastEventID, .requestID, .traceParent,
    ]

    package init?(_ values: [(field: RequestField, value: String)]) {
        guard !values.isEmpty else { return nil }
        self.values = values
        trace = Self.value(of: .traceParent, in: values, separator: ",").flatMap { TraceContext($0) }
    }

    /// The value of a field, or its values with commas between them, or nil.
    package subscript(field: RequestField) -> String? { Self.value(of: field, in: values, separator: ", ") }

    private static func value(
        of field: RequestField, in values: [(field: RequestField, value: String)], separator: String
    ) -> String? {
        var found: String?
        for candidate in values where candidate.field == field {
            found = found.map { $0 + separator + candidate.value } ?? candidate.value
        }
        return found
    }

    var list: [HTTPField] {
        values.compactMap { field, value in HTTPField.Name(field.name).map { HTTPField(name: $0, value: value) } }
    }

    package static func == (left: OwnFields, right: OwnFields) -> Bool {
        left === right || left.values.elementsEqual(right.values, by: ==)
    }
}

/// The place of a request in a distributed trace (W3C Trace Context): the value of the field `traceparent`.
///
/// It is an object, because few requests have one: nil for an object is copied at no cost, but not nil for a string.
package final class TraceContext: Sendable {
    /// The value as the client has sent it: version, trace ID, parent ID and flags.
    package let text: String

    /// The ID of the trace: 32 lower-case hexadecimal digits.
    package var traceID: String { String(decoding: text.utf8.dropFirst(3).prefix(32), as: UTF8.self) }

    /// Reads a value of version 00, or returns nil.
    ///
    /// An ID of zeros does not count, and an upper-case digit is not a digit (sections 3.2.2.3 and 3.2.2.4 of the
    /// specification).
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 55, bytes.starts(with: "00-".utf8), bytes[35] == UInt8(ascii: "-"),
            bytes[52] == UInt8(ascii: "-"), bytes[53...].allSatisfy(Self.isDigit),
            [bytes[3..<35], bytes[36..<52]].allSatisfy({ id in
                id.allSatisfy(Self.isDigit) && id.contains { $0 != UInt8(ascii: "0") }
            })
        else { return nil }
        self.text = text
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }
}

extension HTTPField.Name {
    /// The place of a request in a distributed trace (W3C Trace Context).
    package static let traceParent: HTTPField.Name = {
        guard let name = HTTPField.Name("traceparent") else { preconditionFailure("traceparent is a field name") }
        return name
    }()
}
