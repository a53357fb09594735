internal import StateJSON
internal import StateStore

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
