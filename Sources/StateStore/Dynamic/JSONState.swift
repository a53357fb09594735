package import StateJSON

/// The state of a domain without Swift types.
package struct JSONState: StateType {
    package var tree: JSONTree

    /// The empty object.
    package init() { tree = .emptyObject }

    package init(_ tree: JSONTree) { self.tree = tree }
}

/// The node of a state that is one tree.
struct TreeNode: LayoutNode {
    typealias Root = JSONState

    /// The parts that the state has, and no others; nil where it is any JSON.
    let slices: [JSONPointer]?

    func write(_ state: JSONState, to writer: inout JSONWriter) { state.tree.write(to: &writer) }

    func select(_ state: JSONState, _ tokens: ArraySlice<String>, countMax: Int) -> SelectedValue {
        guard let tree = state.tree.tree(at: tokens) else { return .nothing }
        return tree.partsCount > countMax ? .overBudget : .encoded(tree.text)
    }

    func count(_ state: JSONState) -> Int { state.tree.partsCount }

    func compare(_ old: JSONState, _ new: JSONState, scope: ArraySlice<String>, into patch: inout JSONPatch) {
        // What two states share costs nothing, so no scope makes it cheaper.
        JSONTree.compare(old.tree, new.tree, into: &patch)
    }

    /// A part that the JSON does not have keeps its initial value, so that a domain can declare new parts.
    func read(_ node: JSONNode, into state: inout JSONState) throws(JSONFault) {
        let read = JSONTree(node.value)
        guard let slices else { return state.tree = read }
        var merged = read
        for slice in slices where read.tree(at: slice.tokens[...]) == nil {
            guard let initial = state.tree.tree(at: slice.tokens[...]), let wider = merged.adding(initial, at: slice)
            else {
                throw JSONFault(.mismatch, at: slice, "expected an object above the part of this name")
            }
            merged = wider
        }
        if let unknown = merged.value.firstPlace(outside: slices) {
            let names = slices.map(\.description).joined(separator: ", ")
            throw JSONFault(.mismatch, at: unknown, "the domain declares no such member; it declares \(names)")
        }
        state.tree = merged
    }

    func apply(_ operations: [PatchOperation], to state: inout JSONState) throws {
        for operation in operations {
            let value = operation.value.map { JSONTree($0) }
            guard let changed = state.tree.applying(operation.name, at: operation.tokens, value) else {
                throw operation.mismatch
            }
            state.tree = changed
        }
    }
}

extension JSONTree {
    /// The value with another one at a pointer, and objects on the way there; nil where something else is in the way.
    package func adding(_ value: JSONTree, at pointer: JSONPointer) -> JSONTree? {
        var changed = self
        for length in 1..<max(1, pointer.tokens.count) where changed.tree(at: pointer.tokens[..<length]) == nil {
            guard let wider = changed.applying("add", at: pointer.tokens[..<length], .emptyObject) else { return nil }
            changed = wider
        }
        return changed.applying("add", at: pointer.tokens[...], value)
    }
}

extension JSONValue {
    /// The pointer to a value that is neither in one of some parts nor an object around them.
    fileprivate func firstPlace(outside parts: [JSONPointer], at place: JSONPointer = .root) -> JSONPointer? {
        if parts.contains(where: { $0.tokens == place.tokens }) { return nil }
        guard parts.contains(where: { $0.overlaps(place) }), case .object(let object) = self else { return place }
        for (key, value) in object.members {
            if let found = value.firstPlace(outside: parts, at: place.appending(key)) { return found }
        }
        return nil
    }
}
