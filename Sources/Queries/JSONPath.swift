internal import StateJSON
internal import StateStore

enum JSONPath {
    /// A step of a path: from each value to some of its children, or of all its descendants' children.
    struct Segment: Sendable {
        var isDescendant: Bool
        var selectors: [Selector]
    }

    indirect enum Selector: Sendable {
        case name(String)
        case wildcard
        case index(Int)
        case slice(start: Int?, end: Int?, step: Int)
        case filter(Condition)
    }

    struct Relative: Sendable {
        var segments: [Segment]

        var isSingular: Bool {
            segments.allSatisfy { segment in
                guard !segment.isDescendant, segment.selectors.count == 1 else { return false }
                switch segment.selectors[0] {
                case .name, .index: return true
                case .wildcard, .slice, .filter: return false
                }
            }
        }
    }

    indirect enum Condition: Sendable {
        case any([Condition])
        case all([Condition])
        case not(Condition)
        case comparison(Operand, Comparison, Operand)
        case exists(Relative)
        case matches(Call)
    }

    enum Comparison: String, CaseIterable, Sendable {
        case equal = "=="
        case notEqual = "!="
        case lessOrEqual = "<="
        case greaterOrEqual = ">="
        case less = "<"
        case greater = ">"
    }

    indirect enum Operand: Sendable {
        case literal(JSONValue)
        case path(Relative)
        case call(Call)
    }

    struct Call: Sendable {
        enum Function: String, Sendable {
            case length, count, match, search, value

            var takesValues: Bool { self != .count && self != .value }
            var argumentsCount: Int { isLogical ? 2 : 1 }
            var isLogical: Bool { self == .match || self == .search }
        }

        var function: Function
        var arguments: [Operand]
        /// The index of a literal among the patterns of the whole text; nil for a pattern of the data.
        var pattern: Int?
    }
}

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

extension JSONPath.Condition {
    /// Nil for a condition that looks at the whole value.
    var names: [String]? {
        switch self {
        case .any(let conditions), .all(let conditions): union(conditions.map(\.names))
        case .not(let condition): condition.names
        case .comparison(let left, _, let right): union([left.names, right.names])
        case .exists(let path): path.names
        case .matches(let call): union(call.arguments.map(\.names))
        }
    }
}

extension JSONPath.Operand {
    fileprivate var names: [String]? {
        switch self {
        case .literal: []
        case .path(let path): path.names
        case .call(let call): union(call.arguments.map(\.names))
        }
    }
}

extension JSONPath.Relative {
    fileprivate var names: [String]? {
        guard let first = segments.first, !first.isDescendant else { return nil }
        var names: [String] = []
        for selector in first.selectors {
            guard case .name(let name) = selector else { return nil }
            names.append(name)
        }
        return names
    }
}

private func union(_ lists: [[String]?]) -> [String]? {
    lists.reduce([]) { all, names in all.flatMap { all in names.map { all + $0 } } }
}

extension JSONPathEvaluation {
    /// How many comparisons of names take about the time of a step.
    private static let namesPerStep = 8

    /// O(n) in its members and in the bytes of the chosen ones.
    mutating func value(
        of document: JSONDocument, at place: Int, names: [[UInt8]]?
    ) throws(QueryStop) -> JSONValue {
        guard let names, document.kind(place) == UInt8(ascii: "{") else {
            try spend((document.after(place) - place) / 2)
            return JSONValue.value(of: document, at: place)
        }
        var (object, comparedCount) = (JSONObject(), 0)
        for member in document.children(of: place) {
            let text = document.utf8(member - 1)
            comparedCount += names.count
            try spend(comparedCount / Self.namesPerStep)
            comparedCount %= Self.namesPerStep
            if names.contains(where: { $0.withUnsafeBufferPointer(text.hasBytes) }) {
                object.append(document.string(member - 1), try value(of: document, at: member, names: nil))
            }
        }
        return .object(object)
    }
}
