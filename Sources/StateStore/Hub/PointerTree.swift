package import StateJSON

/// Elements by JSON Pointer, found by a pointer that overlaps theirs in O(depth of the pointer + elements found): a
/// node has an element or at least two children, so there are at most two nodes for each element.
struct PointerTree<Element: Hashable & Sendable>: Sendable {
    private var label: [String] = []
    private var children: [JSONKey: PointerTree] = [:]
    private var elements: Set<Element> = []

    init() {}

    private init(label: ArraySlice<String>) { self.label = Array(label) }

    mutating func insert(_ element: Element, at pointer: JSONPointer) {
        insert(element, pointer.tokens[...])
    }

    private mutating func insert(_ element: Element, _ tokens: ArraySlice<String>) {
        guard let token = tokens.first else {
            elements.insert(element)
            return
        }
        children[JSONKey(token), default: PointerTree(label: tokens)].insert(element, behindLabelOf: tokens)
    }

    /// Inserts an element below this node's parent, at tokens that have at least the first one in common with the label.
    private mutating func insert(_ element: Element, behindLabelOf tokens: ArraySlice<String>) {
        let count = commonCount(tokens)
        if count < label.count { split(after: count) }
        insert(element, tokens.dropFirst(count))
    }

    private mutating func split(after count: Int) {
        var below = self
        below.label = Array(label[count...])
        self = PointerTree(label: label[..<count])
        children[JSONKey(below.label[0])] = below
    }

    mutating func remove(_ element: Element, at pointer: JSONPointer) {
        remove(element, pointer.tokens[...])
    }

    private mutating func remove(_ element: Element, _ tokens: ArraySlice<String>) {
        guard let token = tokens.first else {
            elements.remove(element)
            return
        }
        let key = JSONKey(token)
        children[key]?.remove(element, behindLabelOf: tokens)
        if children[key]?.isEmpty == true { children[key] = nil }
    }

    private var isEmpty: Bool { elements.isEmpty && children.isEmpty }

    private mutating func remove(_ element: Element, behindLabelOf tokens: ArraySlice<String>) {
        guard commonCount(tokens) == label.count else { return }
        remove(element, tokens.dropFirst(label.count))
        guard elements.isEmpty, children.count == 1, var only = children.first?.value else { return }
        // A node with one child and no element of its own is no branch: the child takes its place.
        only.label = label + only.label
        self = only
    }

    private func commonCount(_ tokens: ArraySlice<String>) -> Int {
        var count = 0
        for (own, other) in zip(label, tokens) {
            guard JSONPointer.sameBytes(own, other) else { break }
            count += 1
        }
        return count
    }

    var nodesCount: Int { children.values.reduce(1) { $0 + $1.nodesCount } }

    enum Overlap {
        case none
        case below
        case above
    }

    func overlap(_ pointer: JSONPointer) -> Overlap { overlap(pointer.tokens[...]) }

    private func overlap(_ tokens: ArraySlice<String>) -> Overlap {
        guard elements.isEmpty else { return .above }
        // Every node below the root leads to an element.
        guard let token = tokens.first else { return children.isEmpty ? .none : .below }
        guard let child = children[JSONKey(token)] else { return .none }
        let count = child.commonCount(tokens)
        if count == child.label.count { return child.overlap(tokens.dropFirst(count)) }
        return count == tokens.count ? .below : .none
    }

    func collect(overlapping pointer: JSONPointer, into found: inout Set<Element>) {
        var tree = self
        var tokens = pointer.tokens[...]
        while let token = tokens.first {
            found.formUnion(tree.elements)
            guard let child = tree.children[JSONKey(token)] else { return }
            let count = child.commonCount(tokens)
            tokens = tokens.dropFirst(count)
            // Where the pointer ends inside the label, the child is below it; where they differ, the child is elsewhere.
            guard count == child.label.count || tokens.isEmpty else { return }
            tree = child
        }
        tree.collectAll(into: &found)
    }

    private func collectAll(into found: inout Set<Element>) {
        found.formUnion(elements)
        for child in children.values { child.collectAll(into: &found) }
    }
}

/// JSON Pointers, none of which lies inside another; a search costs O(depth of the pointer).
///
/// It is an object with a hash of its own, because the filters of a client's requests share it.
package final class PointerSet: Sendable {
    /// The pointers, those of fewer tokens first.
    package let pointers: [JSONPointer]
    private let tree: PointerTree<Int>
    private let hash: Int

    /// O(n log n) in the number of pointers.
    package init(_ pointers: [JSONPointer]) {
        var (tree, kept) = (PointerTree<Int>(), [JSONPointer]())
        for pointer in pointers.sorted(by: { $0.tokens.count < $1.tokens.count })
        where tree.overlap(pointer) != .above {
            tree.insert(kept.count, at: pointer)
            kept.append(pointer)
        }
        (self.tree, self.pointers, hash) = (tree, kept, kept.hashValue)
    }

    package func covers(_ pointer: JSONPointer) -> Bool { tree.overlap(pointer) == .above }

    package func overlaps(_ pointer: JSONPointer) -> Bool { tree.overlap(pointer) != .none }

    package func overlapping(_ pointer: JSONPointer) -> [JSONPointer] {
        var found: Set<Int> = []
        tree.collect(overlapping: pointer, into: &found)
        return found.sorted().map { pointers[$0] }
    }
}

extension PointerSet: Hashable {
    package static func == (left: PointerSet, right: PointerSet) -> Bool {
        left === right || left.hash == right.hash && left.pointers == right.pointers
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}

/// The part of the state at a pointer, or what of it lies in a set.
package struct PointerFilter: Hashable, Sendable {
    private let path: JSONPointer
    /// The rest, without a pointer at the path or above it.
    private let parts: PointerSet?

    package init(_ path: JSONPointer) { (self.path, parts) = (path, nil) }

    package init(_ path: JSONPointer, in set: PointerSet) {
        (self.path, parts) = (path, set.covers(path) ? nil : set)
    }

    package static let nothing = PointerFilter(.root, in: PointerSet([]))

    package func overlaps(_ pointer: JSONPointer) -> Bool {
        guard path.overlaps(pointer) else { return false }
        return parts?.overlaps(pointer.tokens.count > path.tokens.count ? pointer : path) ?? true
    }
}
