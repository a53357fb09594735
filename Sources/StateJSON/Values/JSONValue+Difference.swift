extension JSONValue {
    /// The pointer to the first difference from another value, in the order of this value's members; nil for equal values.
    ///
    /// O(n) in both values.
    package func firstDifference(from other: JSONValue) -> JSONPointer? {
        var path: [String] = []
        return differs(from: other, at: &path) ? JSONPointer(path) : nil
    }

    /// Extends the path to the first difference; leaves it unchanged for equal values.
    private func differs(from other: JSONValue, at path: inout [String]) -> Bool {
        switch (self, other) {
        case (.object(let members), .object(let others)):
            for (key, value) in members.members {
                path.append(key)
                guard let counterpart = others[key] else { return true }
                if value.differs(from: counterpart, at: &path) { return true }
                path.removeLast()
            }
            guard let added = others.members.first(where: { !members.contains($0.key) }) else { return false }
            path.append(added.key)
            return true
        case (.array(let elements), .array(let others)):
            for (index, (element, counterpart)) in zip(elements, others).enumerated() {
                path.append(String(index))
                if element.differs(from: counterpart, at: &path) { return true }
                path.removeLast()
            }
            guard elements.count != others.count else { return false }
            path.append(String(min(elements.count, others.count)))
            return true
        default: return self != other
        }
    }
}
