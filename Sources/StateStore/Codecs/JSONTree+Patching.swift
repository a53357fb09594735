package import StateJSON

extension JSONTree {
    /// The tree after the operations of a patch (RFC 6902): add, remove and replace.
    ///
    /// The cost is that of the ways to the places, of the new values, and of the leaves that are changed. Of a tree that a codec
    /// has made the codec makes its part: see ``PartCodec/read(_:after:into:)``.
    package func applying(patch: JSONValue) throws -> JSONTree {
        try patched(by: PatchOperation.all(of: patch)[...])
    }

    fileprivate func patched(by operations: ArraySlice<PatchOperation>) throws -> JSONTree {
        switch shape {
        case .text, .object, .array:
            return try operations.reduce(self) { tree, operation in
                let value = operation.value.map { JSONTree($0) }
                guard let changed = tree.applying(operation.name, at: operation.tokens, value) else {
                    throw operation.mismatch
                }
                return changed
            }
        case .leaf:
            // A leaf is read and written once, and its members keep their order.
            var value = value
            for operation in operations { try operation.apply(to: &value) }
            return JSONTree(leaf: value.text)
        case .record, .entities, .order:
            let inner = operations.prefix { !$0.tokens.isEmpty }
            let tree =
                switch shape {
                case .entities(let table): JSONTree(.entities(try table.patched(by: inner)))
                case .order(let table): JSONTree(.order(try table.patched(by: inner)))
                default: try patchedMembers(by: inner)
                }
            guard let whole = operations.dropFirst(inner.count).first else { return tree }
            guard let value = whole.value else { throw whole.mismatch }
            return try JSONTree(leaf: value.text).patched(by: operations.dropFirst(inner.count + 1))
        }
    }

    private func patchedMembers(by operations: ArraySlice<PatchOperation>) throws -> JSONTree {
        let members = record
        var lists = Array(repeating: [PatchOperation](), count: members.count)
        for operation in operations {
            guard let token = operation.tokens.first, let index = names.index(of: token) else {
                throw operation.mismatch
            }
            lists[index].append(operation.inner)
        }
        return try lists.indices.filter { !lists[$0].isEmpty }.reduce(self) { tree, index in
            tree.replacing(index, by: try members[index].patched(by: lists[index][...]))
        }
    }

    /// The value with another one merged into it (RFC 7396): a null member is removed; O(m log n) for m members.
    package func merging(_ patch: JSONTree) -> JSONTree {
        guard patch.isArray == false, case .object(let changes)? = patch.opened?.shape else { return patch }
        let old = isArray == false ? self : .emptyObject
        guard let old = old.opened, case .object(var members) = old.shape, var sizes = old.sizes else { return patch }
        changes.visit { key, change in
            let (before, change) = (members[key].map(Self.tree), Self.tree(change))
            let merged = change.isNull ? nil : (before ?? .emptyObject).merging(change)
            if let merged { members.set(key, merged) } else { members.remove(key) }
            sizes.replace(before, by: merged, named: key)
        }
        return JSONTree(.object(members), sizes).normalized
    }

    package var isNull: Bool { bytesCount == 4 && equals(.null) }

    package var members: [(name: String, value: JSONTree)] {
        guard isArray == false, case .object(let members)? = opened?.shape else { return [] }
        var found: [(String, JSONTree)] = []
        members.visit { found.append(($0.token, Self.tree($1))) }
        return found
    }
}

extension PatchOperation {
    static func all(in patch: [UInt8]) throws -> [PatchOperation] {
        try all(of: JSONValue(parsing: patch, depthMax: 1000))
    }
}

extension TableTree<EntityKey, any AnyObject & Sendable> {
    fileprivate func patched(by operations: ArraySlice<PatchOperation>) throws -> TableTree {
        let map = try operations.reduce(into: map) { map, operation in
            let inner = operation.inner
            guard let key = operation.tokens.first.flatMap(form.key) else { throw operation.mismatch }
            let old = map[key]
            var value = operation.value
            if !inner.tokens.isEmpty {
                guard let old else { throw operation.mismatch }
                var known = try JSONValue(parsing: try form.entity(old), depthMax: 1000)
                try inner.apply(to: &known)
                value = known
            }
            if let value {
                map.set(key, try form.entry(value, old))
            } else {
                guard old != nil else { throw operation.mismatch }
                map.remove(key)
            }
        }
        return TableTree(map, form)
    }
}

extension TableTree<Ranks.Rank, EntityKey> {
    fileprivate func patched(by operations: ArraySlice<PatchOperation>) throws -> TableTree {
        let map = try operations.reduce(into: map) { map, operation in
            guard operation.tokens.count == 1, let token = operation.tokens.first,
                let index = token == "-" ? map.count : JSONPointer.index(token)
            else { throw operation.mismatch }
            let key = try operation.value.map(form.keyOfID)
            if operation.name == "add", let key, index <= map.count {
                map.insert(key, at: index)
            } else {
                guard index < map.count else { throw operation.mismatch }
                let rank = map[at: index].key
                if let key { map.set(rank, key) } else { map.remove(rank) }
            }
        }
        return TableTree(map, form)
    }
}
