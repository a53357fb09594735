internal import HTTPTypes

/// A field that the server reads; a head knows which ones it has, so that to look for another one costs nothing.
package enum RequestField: UInt8, CaseIterable, Sendable {
    case accept, acceptEncoding, authorization, connection, contentEncoding, contentType, expect, host
    case idempotencyKey, ifMatch, ifNoneMatch, lastEventID, origin, prefer, requestID, storekeeperForwarded, traceParent

    var name: String {
        switch self {
        case .accept: "accept"
        case .acceptEncoding: "accept-encoding"
        case .authorization: "authorization"
        case .connection: "connection"
        case .contentEncoding: "content-encoding"
        case .contentType: "content-type"
        case .expect: "expect"
        case .host: "host"
        case .idempotencyKey: "idempotency-key"
        case .ifMatch: "if-match"
        case .ifNoneMatch: "if-none-match"
        case .lastEventID: "last-event-id"
        case .origin: "origin"
        case .prefer: "prefer"
        case .requestID: "x-request-id"
        case .storekeeperForwarded: "storekeeper-forwarded"
        case .traceParent: "traceparent"
        }
    }

    private static let byName = Dictionary(uniqueKeysWithValues: allCases.map { ($0.name, $0) })

    package init?(canonicalName: String) {
        guard let field = Self.byName[canonicalName] else { return nil }
        self = field
    }
}

package struct RequestFields: Sendable {
    private var bits: UInt32 = 0
    /// Whether there is a field that proxies add and clients do not: `Forwarded`, `Via`, `X-Forwarded-*` or `X-Real-IP`.
    package private(set) var areOfProxy = false

    init(in fields: [HTTPField]) {
        for field in fields {
            let name = field.name.canonicalName
            if let known = RequestField(canonicalName: name) {
                bits |= 1 << known.rawValue
            } else if ["forwarded", "via", "x-real-ip"].contains(name) || name.hasPrefix("x-forwarded-") {
                areOfProxy = true
            }
        }
    }

    package func contains(_ field: RequestField) -> Bool { bits & 1 << field.rawValue != 0 }
}

extension Request.Head {
    package subscript(field: RequestField) -> String? { known.contains(field) ? value(of: field) : nil }

    /// It is not inlined: the memory of its loop would be cleared where it does not run, too.
    @inline(never)
    private func value(of field: RequestField) -> String? {
        let name = field.name
        var found: String?
        for candidate in list where candidate.name.canonicalName == name {
            guard found == nil else { return self[values: field].joined(separator: ", ") }
            found = candidate.value
        }
        return found
    }

    package subscript(values field: RequestField) -> [String] {
        guard known.contains(field) else { return [] }
        return list.lazy.filter { $0.name.canonicalName == field.name }.map(\.value)
    }
}

extension Request {
    /// The value of a field, or its values with commas between them, or nil.
    package subscript(field: RequestField) -> String? {
        guard let value = own?[field] else { return head[field] }
        // A transport keeps some fields of a request's own, and leaves more of them among the others.
        return head[field].map { "\(value), \($0)" } ?? value
    }

    package subscript(values field: RequestField) -> [String] { head[values: field] }
}
