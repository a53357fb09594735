/// A sorted map whose copies share their common subtrees.
///
/// The map is a weight-balanced tree (Adams 1993; Hirai and Yamamoto 2011 for the parameters). An operation on one key
/// is O(log n), a copy O(1), and a comparison of two maps skips every subtree that is the same object.
struct PersistentMap<Key: Comparable & Sendable, Value: Sendable>: Sendable {
    /// A node of the tree; in a table's map of entries it has 64 bytes, one cache line for each step of a search.
    final class Node: Sendable {
        let key: Key
        /// The size comes after the key, where it takes the room of the padding.
        private let size: UInt32
        let value: Value
        let left: Node?
        let right: Node?

        var count: Int { Int(size) }

        init(_ left: Node?, _ key: Key, _ value: Value, _ right: Node?) {
            self.left = left
            self.key = key
            self.value = value
            self.right = right
            size = (left?.size ?? 0) + 1 + (right?.size ?? 0)
        }
    }

    private(set) var root: Node?

    init() {}

    private init(root: Node?) {
        self.root = root
    }

    /// The cost is O(n); the keys increase strictly.
    init(sorted elements: [(Key, Value)]) {
        root = Self.build(elements[...])
    }

    private static func build(_ elements: ArraySlice<(Key, Value)>) -> Node? {
        guard !elements.isEmpty else { return nil }
        let middle = elements.startIndex + elements.count / 2
        let (key, value) = elements[middle]
        return Node(build(elements[..<middle]), key, value, build(elements[(middle + 1)...]))
    }

    var count: Int { root?.count ?? 0 }
    var isEmpty: Bool { root == nil }
    var first: (key: Key, value: Value)? { isEmpty ? nil : self[at: 0] }
    var last: (key: Key, value: Value)? { isEmpty ? nil : self[at: count - 1] }

    subscript(key: Key) -> Value? { Self.value(of: key, in: root) }

    /// The search counts no references, because to write the count of a node that no cache has costs more than to read it.
    private static func value(of key: Key, in root: Node?) -> Value? {
        guard let root else { return nil }
        // unsafe: the root, which the caller owns, keeps all nodes below it.
        return withExtendedLifetime(root) {
            var node = Unmanaged.passUnretained(root)
            while true {
                let next: Unmanaged<Node>?
                if node._withUnsafeGuaranteedRef({ key < $0.key }) {
                    next = node._withUnsafeGuaranteedRef { $0.left.map(Unmanaged.passUnretained) }
                } else if node._withUnsafeGuaranteedRef({ $0.key < key }) {
                    next = node._withUnsafeGuaranteedRef { $0.right.map(Unmanaged.passUnretained) }
                } else {
                    return node._withUnsafeGuaranteedRef { $0.value }
                }
                guard let next else { return nil }
                node = next
            }
        }
    }

    subscript(at position: Int) -> (key: Key, value: Value) {
        precondition((0..<count).contains(position), "position \(position) is not in a map of \(count)")
        var position = position
        var node = root
        while let here = node {
            let before = here.left?.count ?? 0
            if position < before {
                node = here.left
            } else if position > before {
                position -= before + 1
                node = here.right
            } else {
                return (here.key, here.value)
            }
        }
        preconditionFailure("a tree's count is the number of its nodes")
    }

    func position(of key: Key) -> Int {
        var position = 0
        var node = root
        while let here = node {
            if here.key < key {
                position += (here.left?.count ?? 0) + 1
                node = here.right
            } else {
                node = here.left
            }
        }
        return position
    }

    mutating func set(_ key: Key, _ value: Value) {
        root = Self.inserting(key, value, into: root)
    }

    mutating func remove(_ key: Key) {
        root = Self.removing(key, from: root)
    }

    func visit<Failure: Error>(_ body: (Key, Value) throws(Failure) -> Void) throws(Failure) {
        guard let root else { return }
        try PersistentMap(root: root.left).visit(body)
        try body(root.key, root.value)
        try PersistentMap(root: root.right).visit(body)
    }

    func map<Result>(_ transform: (Key, Value) -> Result) -> [Result] {
        var results: [Result] = []
        results.reserveCapacity(count)
        visit { results.append(transform($0, $1)) }
        return results
    }

    private static func inserting(_ key: Key, _ value: Value, into node: Node?) -> Node {
        guard let node else { return Node(nil, key, value, nil) }
        if key < node.key {
            return balanced(inserting(key, value, into: node.left), node.key, node.value, node.right)
        }
        if node.key < key {
            return balanced(node.left, node.key, node.value, inserting(key, value, into: node.right))
        }
        return Node(node.left, key, value, node.right)
    }

    private static func removing(_ key: Key, from node: Node?) -> Node? {
        guard let node else { return nil }
        if key < node.key {
            return balanced(removing(key, from: node.left), node.key, node.value, node.right)
        }
        if node.key < key {
            return balanced(node.left, node.key, node.value, removing(key, from: node.right))
        }
        return glued(node.left, node.right)
    }

    private static func glued(_ left: Node?, _ right: Node?) -> Node? {
        guard let left else { return right }
        guard let right else { return left }
        let (key, value, rest) = removingFirst(right)
        return balanced(left, key, value, rest)
    }

    private static func removingFirst(_ node: Node) -> (Key, Value, Node?) {
        guard let left = node.left else { return (node.key, node.value, node.right) }
        let (key, value, rest) = removingFirst(left)
        return (key, value, balanced(rest, node.key, node.value, node.right))
    }

    private static func weight(_ node: Node?) -> Int { (node?.count ?? 0) + 1 }

    /// The two subtrees may be out of balance by one insertion or removal; the parameters of the balance are 3 and 2.
    private static func balanced(_ left: Node?, _ key: Key, _ value: Value, _ right: Node?) -> Node {
        if let right, weight(left) * 3 < weight(right) {
            if let inner = right.left, weight(inner) >= weight(right.right) * 2 {
                return Node(
                    Node(left, key, value, inner.left), inner.key, inner.value,
                    Node(inner.right, right.key, right.value, right.right))
            }
            return Node(Node(left, key, value, right.left), right.key, right.value, right.right)
        }
        if let left, weight(right) * 3 < weight(left) {
            if let inner = left.right, weight(inner) >= weight(left.left) * 2 {
                return Node(
                    Node(left.left, left.key, left.value, inner.left), inner.key, inner.value,
                    Node(inner.right, key, value, right))
            }
            return Node(left.left, left.key, left.value, Node(left.right, key, value, right))
        }
        return Node(left, key, value, right)
    }

    private static func joined(_ left: Node?, _ key: Key, _ value: Value, _ right: Node?) -> Node {
        if let right, weight(left) * 3 < weight(right) {
            return balanced(joined(left, key, value, right.left), right.key, right.value, right.right)
        }
        if let left, weight(right) * 3 < weight(left) {
            return balanced(left.left, left.key, left.value, joined(left.right, key, value, right))
        }
        return Node(left, key, value, right)
    }

    private static func split(_ node: Node?, at key: Key) -> (Node?, Value?, Node?) {
        guard let node else { return (nil, nil, nil) }
        if key < node.key {
            let (left, value, right) = split(node.left, at: key)
            return (left, value, joined(right, node.key, node.value, node.right))
        }
        if node.key < key {
            let (left, value, right) = split(node.right, at: key)
            return (joined(node.left, node.key, node.value, left), value, right)
        }
        return (node.left, node.value, node.right)
    }

    /// The walk visits copied nodes with unchanged values, too; O(k log n) for k changes between the maps.
    static func visitDifferences<Failure: Error>(
        _ old: PersistentMap, _ new: PersistentMap, _ body: (Key, Value?, Value?) throws(Failure) -> Void
    ) throws(Failure) {
        guard old.root !== new.root else { return }
        guard let node = old.root else {
            return try new.visit { (key, value) throws(Failure) in try body(key, nil, value) }
        }
        guard let other = new.root else {
            return try old.visit { (key, value) throws(Failure) in try body(key, value, nil) }
        }
        if node.key == other.key {
            try visitDifferences(PersistentMap(root: node.left), PersistentMap(root: other.left), body)
            try body(node.key, node.value, other.value)
            try visitDifferences(PersistentMap(root: node.right), PersistentMap(root: other.right), body)
        } else {
            let (left, value, right) = split(other, at: node.key)
            try visitDifferences(PersistentMap(root: node.left), PersistentMap(root: left), body)
            try body(node.key, node.value, value)
            try visitDifferences(PersistentMap(root: node.right), PersistentMap(root: right), body)
        }
    }
}
