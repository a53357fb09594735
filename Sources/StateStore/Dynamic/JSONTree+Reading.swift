internal import StateJSON

/// The result of a selection.
package enum SelectedValue: Sendable {
    case nothing
    /// UTF-8 JSON.
    case encoded([UInt8])
    /// The value has more parts than the caller allows.
    case overBudget

    /// The UTF-8 JSON, or nil without a value and over budget.
    package var bytes: [UInt8]? { if case .encoded(let bytes) = self { bytes } else { nil } }
}

extension JSONTree {
    /// The smallest tree around the value at some tokens, and the tokens that are left in its text; nil without such a place.
    ///
    /// - Throws: as ``encoded()``.
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
    ///
    /// - Throws: as ``encoded()``.
    package func selected(_ tokens: ArraySlice<String>, countMax: Int = .max) throws -> SelectedValue {
        guard let (tree, rest) = try holder(of: tokens) else { return .nothing }
        guard countMax == .max || tree.partsCount <= countMax else { return .overBudget }
        return rest.isEmpty
            ? .encoded(try tree.encoded()) : JSONText.select(rest, in: tree.text).map(SelectedValue.encoded) ?? .nothing
    }

    /// The tree of the value at some tokens, or nil.
    package func tree(at tokens: ArraySlice<String>) -> JSONTree? {
        // Losing the error is right: a committed state can be encoded.
        guard let (tree, rest) = try? holder(of: tokens) else { return nil }
        guard !rest.isEmpty else { return tree }
        let isLeaf = if case .leaf = tree.shape { true } else { false }
        return JSONText.select(rest, in: tree.text).map { isLeaf ? JSONTree(leaf: $0) : JSONTree(text: $0) }
    }

    /// The order of the members of an object, where it is the same at every version; nil elsewhere.
    var memberOrder: MemberOrder? {
        switch shape {
        case .text where isArray == false, .object: { Self.key($0) }
        case .entities(let table): table.form.key
        case .text, .array, .leaf, .record, .order: nil
        }
    }
}

/// The names of the members of a slice, which all its trees share.
final class MemberNames: Sendable {
    static let none = MemberNames([])

    let all: [String]
    /// The names as ``JSONPatch/enter(_:)`` takes them.
    let paths: [[UInt8]]

    init(_ names: [String]) { (all, paths) = (names, names.map(JSONPatch.path)) }

    func index(of name: String) -> Int? { all.firstIndex { JSONPointer.sameBytes($0, name) } }
}

/// A map of a table, as a tree has it.
final class TableTree<Key: Comparable & Sendable, Value: Sendable>: Sendable {
    let map: PersistentMap<Key, Value>
    let form: TableForm

    init(_ map: PersistentMap<Key, Value>, _ form: TableForm) { (self.map, self.form) = (map, form) }
}

/// Trees as codecs make them, and look into those that they have made.
extension JSONTree {
    convenience init(leaf text: [UInt8]) { self.init(.leaf(text)) }

    convenience init(entities map: PersistentMap<EntityKey, any AnyObject & Sendable>, _ form: TableForm) {
        self.init(.entities(TableTree(map, form)))
    }

    convenience init(order map: PersistentMap<Ranks.Rank, EntityKey>, _ form: TableForm) {
        self.init(.order(TableTree(map, form)))
    }

    var leaf: [UInt8] {
        guard case .leaf(let text) = shape else { preconditionFailure("a codec made this tree, a leaf") }
        return text
    }

    var entities: PersistentMap<EntityKey, any AnyObject & Sendable> {
        guard case .entities(let table) = shape else { preconditionFailure("a codec made this tree, of entities") }
        return table.map
    }

    var order: PersistentMap<Ranks.Rank, EntityKey> {
        guard case .order(let table) = shape else { preconditionFailure("a codec made this tree, of an order") }
        return table.map
    }

    func member(_ index: Int) -> JSONTree {
        guard case .record(let members) = shape else { preconditionFailure("a codec made this tree, of members") }
        return members[index]
    }

    /// The record with another member, or the same one for the same member.
    func replacing(_ index: Int, by tree: JSONTree) -> JSONTree {
        guard case .record(var members) = shape else { preconditionFailure("a codec made this tree, of members") }
        guard members[index] !== tree else { return self }
        members[index] = tree
        return JSONTree(record: members, names)
    }
}
