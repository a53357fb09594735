internal import StateJSON

package enum SelectedValue: Sendable {
    case nothing
    /// UTF-8 JSON.
    case encoded([UInt8])
    /// The value has more parts than the caller allows.
    case overBudget

    package var bytes: [UInt8]? { if case .encoded(let bytes) = self { bytes } else { nil } }
}

extension JSONTree {
    /// The smallest tree around the value at some tokens, and those left in its text; nil without such a place.
    private func holder(of tokens: ArraySlice<String>) throws -> (tree: JSONTree, rest: ArraySlice<String>)? {
        var (tree, rest) = (self, tokens)
        while let token = rest.first {
            let next: JSONTree?
            switch tree.shape {
            case .text, .leaf: return tree.isArray == nil ? nil : (tree, rest)
            case .object(let members): next = members[Self.key(token)].map(Self.tree)
            case .array(let elements):
                next = JSONPointer.index(token).flatMap { $0 < elements.count ? elements[$0] : nil }
            case .record(let members): next = tree.names.index(of: token).map { members[$0] }
            case .entities(let table):
                next = try table.form.key(token).flatMap { table.map[$0] }.map {
                    JSONTree(leaf: try table.form.entity($0))
                }
            case .order(let table):
                next = try JSONPointer.index(token).flatMap { $0 < table.map.count ? table.map[at: $0].value : nil }
                    .map { JSONTree(leaf: try table.form.text(of: $0)) }
            }
            guard let next else { return nil }
            (tree, rest) = (next, rest.dropFirst())
        }
        return (tree, rest)
    }

    /// The value at some tokens, unless it lies in more than `countMax` parts.
    ///
    /// The cost is O(n) in the size of the value, or of the leaf around it.
    package func selected(_ tokens: ArraySlice<String>, countMax: Int = .max) throws -> SelectedValue {
        guard let (tree, rest) = try holder(of: tokens) else { return .nothing }
        guard countMax == .max || tree.partsCount <= countMax else { return .overBudget }
        return rest.isEmpty
            ? .encoded(try tree.encoded()) : JSONText.select(rest, in: tree.text).map(SelectedValue.encoded) ?? .nothing
    }

    package func tree(at tokens: ArraySlice<String>) -> JSONTree? {
        // Losing the error is right: a committed state can be encoded.
        guard let (tree, rest) = try? holder(of: tokens) else { return nil }
        guard !rest.isEmpty else { return tree }
        let isLeaf = if case .leaf = tree.shape { true } else { false }
        return JSONText.select(rest, in: tree.text).map { isLeaf ? JSONTree(leaf: $0) : JSONTree(text: $0) }
    }

    /// Whether a place may have a value in another state of the same domain, of which this is the tree.
    func declares(_ place: JSONPointer) -> Bool {
        var tree = self
        for token in place.tokens {
            guard case .record(let members) = tree.shape else { return true }
            guard let index = tree.names.index(of: token) else { return false }
            tree = members[index]
        }
        return true
    }

    /// Nil where the order is not the same at every version.
    var memberOrder: MemberOrder? {
        switch shape {
        case .text where isArray == false, .object: { Self.key($0) }
        case .entities(let table): table.form.key
        case .text, .array, .leaf, .record, .order: nil
        }
    }
}
