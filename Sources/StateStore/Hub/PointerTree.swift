internal import StateJSON

/// Elements by JSON Pointer, found by a pointer that overlaps theirs.
///
/// A search costs O(depth of the pointer + elements found), however many elements the tree has.
struct PointerTree<Element: Hashable & Sendable>: Sendable {
    private var children: [JSONKey: PointerTree] = [:]
    private var elements: Set<Element> = []

    private var isEmpty: Bool { children.isEmpty && elements.isEmpty }

    mutating func insert(_ element: Element, at pointer: JSONPointer) {
        insert(element, pointer.tokens[...])
    }

    private mutating func insert(_ element: Element, _ tokens: ArraySlice<String>) {
        guard let token = tokens.first else {
            elements.insert(element)
            return
        }
        children[JSONKey(token), default: PointerTree()].insert(element, tokens.dropFirst())
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
        children[key]?.remove(element, tokens.dropFirst())
        if children[key]?.isEmpty == true { children[key] = nil }
    }

    /// Adds the elements at a pointer, above it and below it to a set.
    func collect(overlapping pointer: JSONPointer, into found: inout Set<Element>) {
        var tree = self
        for token in pointer.tokens {
            found.formUnion(tree.elements)
            guard let child = tree.children[JSONKey(token)] else { return }
            tree = child
        }
        tree.collectAll(into: &found)
    }

    private func collectAll(into found: inout Set<Element>) {
        found.formUnion(elements)
        for child in children.values { child.collectAll(into: &found) }
    }
}
