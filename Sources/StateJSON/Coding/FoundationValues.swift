internal import FoundationEssentials

/// The types of Foundation that have a spelling of their own in JSON.
package enum FoundationValue: CaseIterable, Sendable {
    case date
    case data
    case url
    case decimal

    @inline(__always)
    package init?(_ type: Any.Type) {
        if type == Date.self {
            self = .date
        } else if type == Data.self {
            self = .data
        } else if type == URL.self {
            self = .url
        } else if type == Decimal.self {
            self = .decimal
        } else {
            return nil
        }
    }

    var expectation: String {
        switch self {
        case .date: "a date as RFC 3339 text, such as 2026-11-23T21:16:50Z"
        case .data: "base64 text"
        case .url: "the text of a URL"
        case .decimal: "a number of at most 38 digits"
        }
    }

    package var sample: any Codable & Sendable {
        switch self {
        case .date: Date(timeIntervalSinceReferenceDate: 0)
        case .data: Data()
        case .url: URL(filePath: "/")
        case .decimal: Decimal(1)
        }
    }
}

extension JSONEncodingSession {
    func encode(_ value: Any, as kind: FoundationValue) throws {
        let text: String? =
            switch kind {
            case .date: (value as? Date).flatMap(RFC3339.text)
            case .data: (value as? Data)?.base64EncodedString()
            case .url: (value as? URL)?.absoluteString
            case .decimal: (value as? Decimal).flatMap { DecimalDigits($0.description.utf8)?.text }
            }
        guard let text else {
            throw EncodingError.invalidValue(
                value, .init(codingPath: [], debugDescription: "JSON has no spelling for \(value)"))
        }
        if kind == .decimal { writer.raw(text.utf8) } else { writer.string(text) }
    }
}

extension JSONValueDecoder {
    func decode<Value: Decodable>(_ type: Value.Type, as kind: FoundationValue) throws -> Value {
        guard let value = try value(of: kind) as? Value else { throw mismatch(kind.expectation) }
        return value
    }

    private func value(of kind: FoundationValue) throws -> Any? {
        switch kind {
        case .date: return RFC3339.date(try text(kind))
        case .data: return Data(base64Encoded: try text(kind))
        case .url: return URL(string: try text(kind))
        case .decimal:
            guard let text = session.document.numberText(index) else { return nil }
            // Foundation rounds what it cannot hold.
            return Decimal(string: text).flatMap {
                DecimalDigits($0.description.utf8) == DecimalDigits(text.utf8) ? $0 : nil
            }
        }
    }

    private func text(_ kind: FoundationValue) throws -> String {
        guard session.document.kind(index) == UInt8(ascii: "\"") else { throw mismatch(kind.expectation) }
        return session.document.string(index)
    }
}
