package import StateJSON

extension JSONTree: StateType {
    package convenience init() { self.init(text: Array("{}".utf8)) }
}

struct TreeCodec: PartCodec {
    let parts: [JSONPointer]?

    func tree(of state: JSONTree, after _: JSONTree?, _: JSONEncodingSession) -> JSONTree { state }

    /// A part that the JSON does not have keeps its initial value, so that a domain can declare new parts.
    ///
    /// A part that the domain does not declare stays: a past state may have had it.
    func read(_ node: JSONNode, into state: inout JSONTree) throws(JSONFault) {
        state = try JSONTree(node.value).with(parts ?? [], from: state)
    }

    func read(_ tree: JSONTree, after _: JSONTree, into state: inout JSONTree) -> JSONTree {
        state = tree
        return tree
    }
}

extension JSONTree {
    package func adding(_ value: JSONTree, at pointer: JSONPointer) -> JSONTree? {
        var changed = self
        for length in 1..<max(1, pointer.tokens.count) where changed.tree(at: pointer.tokens[..<length]) == nil {
            guard let wider = changed.applying("add", at: pointer.tokens[..<length], .emptyObject) else { return nil }
            changed = wider
        }
        return changed.applying("add", at: pointer.tokens[...], value)
    }

    func with(_ parts: [JSONPointer], from initial: JSONTree) throws(JSONFault) -> JSONTree {
        var tree = self
        for part in parts where tree.tree(at: part.tokens[...]) == nil {
            guard let value = initial.tree(at: part.tokens[...]), let wider = tree.adding(value, at: part) else {
                throw JSONFault(.mismatch, at: part, "expected an object above the part of this name")
            }
            tree = wider
        }
        return tree
    }

    func firstPlace(outside parts: [JSONPointer], at place: JSONPointer = .root) -> JSONPointer? {
        if parts.contains(place) { return nil }
        guard isArray == false, parts.contains(where: { $0.overlaps(place) }) else { return place }
        for (name, value) in members {
            if let found = value.firstPlace(outside: parts, at: place.appending(name)) { return found }
        }
        return nil
    }
}
