internal import StateJSON

/// The member behind which a page begins, as the opaque text `next` names it.
struct Anchor: Sendable {
    var values: [SortKey?]
    var name: String
    /// The place among the members where these have no order of their own by name, as in an array; else 0.
    var number: Int

    init(values: [SortKey?], name: String, number: Int) {
        (self.values, self.name, self.number) = (values, name, number)
    }

    /// The longest text; a page whose last member is sorted by longer values has no `next`.
    private static let textMax = 4000

    /// Nil for a text of another query, whose filter and order have another hash than `query`, or of nobody.
    init?(text: String, query: String, count: Int) {
        guard let bytes = Base64URL.bytes(text), case .array(let parts)? = try? JSONValue(parsing: bytes),
            parts.count == 3 + count, parts[0] == .string(query), case .string(let name) = parts[1],
            case .integer(let number) = parts[2], number >= 0
        else { return nil }
        var values: [SortKey?] = []
        for case .array(let value) in parts[3...] where value.count <= 1 {
            values.append(value.first.map(SortKey.init))
        }
        guard values.count == count else { return nil }
        self.init(values: values, name: name, number: Int(number))
    }

    func text(query: String) -> String? {
        let parts: [JSONValue] =
            [.string(query), .string(name), .integer(Int64(number))]
            + values.map { .array($0.map { [$0.json] } ?? []) }
        let text = Base64URL.text(JSONValue.array(parts).text)
        return text.utf8.count <= Self.textMax ? text : nil
    }
}

/// Bytes as text in base64url without padding (RFC 4648, section 5).
enum Base64URL {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    static func text(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        var (bits, count) = (0, 0)
        for byte in bytes {
            (bits, count) = (bits << 8 | Int(byte), count + 8)
            while count >= 6 {
                count -= 6
                text.append(digits[bits >> count & 63])
            }
            bits &= 63
        }
        if count > 0 { text.append(digits[bits << (6 - count) & 63]) }
        return String(decoding: text, as: UTF8.self)
    }

    static func bytes(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var (bits, count) = (0, 0)
        for byte in text.utf8 {
            guard let digit = digits.firstIndex(of: byte) else { return nil }
            (bits, count) = ((bits << 6 | digit) & 0xFFFF, count + 6)
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(bits >> count & 0xFF))
            }
        }
        return bytes
    }
}
