internal import HTTPTypes

/// The fields of a request whose values differ from request to request: what is remembered of its head does not depend on
/// them.
///
/// It is an object, because most requests have none: nil is copied at no cost.
package final class OwnFields: Sendable, Equatable {
    /// In the order of the head.
    private let values: [(field: RequestField, value: String)]
    /// The trace that the request belongs to, if it names one.
    package let trace: TraceContext?

    /// The fields that are always a request's own.
    package static let fields: Set<RequestField> = [
        .idempotencyKey, .ifMatch, .ifNoneMatch, .lastEventID, .requestID, .traceParent,
    ]

    /// Keeps these values; nil where there is none.
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
