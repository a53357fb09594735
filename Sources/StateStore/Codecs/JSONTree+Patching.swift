package import StateJSON

extension JSONTree {
    /// The tree after the operations of a patch (RFC 6902): add, remove and replace.
    ///
    /// The cost is that of the ways to the places, of the new values, and of the leaves that are changed. Of a tree that a codec has
    /// made the codec makes its part: see ``PartCodec/read(_:after:into:)``.
    ///
    /// - Throws: ``PatchMismatch`` for an operation that names a value that is not there, and ``JSONFault`` for an entity or an ID
    ///   that does not fit its type.
    package func applying(patch: JSONValue) throws -> JSONTree {
        guard case .array(let operations) = patch else { throw PatchMismatch(detail: "a patch is an array") }
        return try operations.reduce(self) { tree, operation in
            guard case .object(let members) = operation, case .string(let name)? = members["op"],
                case .string(let path)? = members["path"], let pointer = JSONPointer(text: path),
                name == "remove" || ["add", "replace"].contains(name) && members["value"] != nil
            else { throw PatchMismatch(detail: "an operation is add, remove or replace, with a path") }
            let value = name == "remove" ? nil : members["value"]
            guard let changed = try tree.patched(name, at: pointer.tokens[...], value) else {
                throw PatchMismatch(detail: "cannot \(name) at \(path): there is no such place")
            }
            return changed
        }
    }

    /// Does what ``applying(_:at:_:)`` does, also for the shapes that codecs make.
    private func patched(_ operation: String, at tokens: ArraySlice<String>, _ new: JSONValue?) throws -> JSONTree? {
        guard let token = tokens.first else { return new.map { JSONTree($0) } }
        switch shape {
        case .text, .object, .array: return applying(operation, at: tokens, new.map { JSONTree($0) })
        case .leaf:
            var value = value
            return value.apply(operation, at: tokens, new) ? JSONTree(leaf: value.text) : nil
        case .record(let members):
            guard let index = names.index(of: token) else { return nil }
            return try members[index].patched(operation, at: tokens.dropFirst(), new).map { replacing(index, by: $0) }
        case .entities(let table): return try table.patched(operation, token, tokens.dropFirst(), new)
        case .order(let table): return tokens.count == 1 ? try table.patched(operation, token, new) : nil
        }
    }
}

extension TableTree<EntityKey, any AnyObject & Sendable> {
    fileprivate func patched(
        _ operation: String, _ token: String, _ rest: ArraySlice<String>, _ new: JSONValue?
    ) throws -> JSONTree? {
        guard let key = form.key(token) else { return nil }
        let old = map[key]
        guard old != nil || rest.isEmpty && new != nil else { return nil }
        var value = new
        if !rest.isEmpty, let old {
            var known = try JSONValue(parsing: try form.entity(old), depthMax: 1000)
            guard known.apply(operation, at: rest, new) else { return nil }
            value = known
        }
        var map = map
        if let value { map.set(key, try form.entry(value, old)) } else { map.remove(key) }
        return JSONTree(entities: map, form)
    }
}

extension TableTree<Ranks.Rank, EntityKey> {
    fileprivate func patched(_ operation: String, _ token: String, _ new: JSONValue?) throws -> JSONTree? {
        guard let index = token == "-" ? map.count : JSONPointer.index(token) else { return nil }
        var map = map
        let key = try new.map(form.keyOfID)
        if operation == "add", let key, index <= map.count {
            map.insert(key, at: index)
        } else {
            guard index < map.count else { return nil }
            let rank = map[at: index].key
            if let key { map.set(rank, key) } else { map.remove(rank) }
        }
        return JSONTree(order: map, form)
    }
}
