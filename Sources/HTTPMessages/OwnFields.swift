package import HTTPTypes

/// The fields on which nothing that is remembered of a head depends; an object, because nil is copied at no cost.
package final class OwnFields: Sendable, Equatable {
    private let values: [(field: RequestField, value: String)]
    package let trace: TraceContext?

    package static let fields: Set<RequestField> = [
        .idempotencyKey, .ifMatch, .ifNoneMatch, .lastEventID, .requestID, .traceParent,
    ]

    package init?(_ values: [(field: RequestField, value: String)]) {
        guard !values.isEmpty else { return nil }
        self.values = values
        trace = Self.value(of: .traceParent, in: values, separator: ",").flatMap { TraceContext($0) }
    }

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

/// The place of a request in a trace (W3C Trace Context: `traceparent`); an object, because nil is copied at no cost.
package final class TraceContext: Sendable {
    package let text: String

    package var traceID: String { String(decoding: text.utf8.dropFirst(3).prefix(32), as: UTF8.self) }

    /// Reads version 00, or returns nil, as for an ID of zeros and for upper case (sections 3.2.2.3 and 3.2.2.4).
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
    package static let traceParent: HTTPField.Name = {
        guard let name = HTTPField.Name("traceparent") else { preconditionFailure("traceparent is a field name") }
        return name
    }()
}
