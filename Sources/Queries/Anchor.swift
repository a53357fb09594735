internal import StateJSON

struct Anchor: Sendable {
    var values: [SortKey?]
    var name: String
    /// The place among the members where these have no order of their own by name, as in an array; else 0.
    var number: Int

    /// The longest text; a page whose last member is sorted by longer values has no `next`.
    private static let textMax = 4000
}

extension Anchor {
    /// Nil for a text of another query, whose filter and order have another hash than `query`, or of nobody.
    init?(text: String, query: String, count: Int) {
        guard let bytes = Base64URL.bytes(Array(text.utf8)), case .array(let parts)? = try? JSONValue(parsing: bytes),
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
