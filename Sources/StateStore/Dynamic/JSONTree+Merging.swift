internal import StateJSON

extension JSONTree {
    /// The value with another one merged into it (RFC 7396): a member that is null is removed.
    ///
    /// The cost is O(m log n) for a patch of m members, or O(n + m) where that is less.
    package func merging(_ patch: JSONTree) -> JSONTree {
        guard patch.isArray == false, case .object(let changes)? = patch.opened?.shape else { return patch }
        let old = isArray == false ? self : .emptyObject
        guard case .object(let members) = old.shape, members.count / 16 > changes.count else {
            return old.mergingAll(changes)
        }
        var merged = old
        changes.visit { key, value in
            let (before, value) = (members[key].map(Self.tree), Self.tree(value))
            if !value.isNull {
                merged = merged.applying("add", at: [key.token], (before ?? .emptyObject).merging(value)) ?? merged
            } else if before != nil {
                merged = merged.applying("remove", at: [key.token], nil) ?? merged
            }
        }
        return merged
    }

    package var isNull: Bool { bytesCount == 4 && equals(.null) }

    /// The members of an object in their order; none of another value.
    package var members: [(name: String, value: JSONTree)] {
        guard isArray == false, case .object(let members)? = opened?.shape else { return [] }
        var found: [(String, JSONTree)] = []
        members.visit { found.append(($0.token, Self.tree($1))) }
        return found
    }

    private func mergingAll(_ changes: PersistentMap<EntityKey, any AnyObject & Sendable>) -> JSONTree {
        var old: ArraySlice<(EntityKey, JSONTree)> = []
        if case .object(let members)? = opened?.shape { members.visit { old.append(($0, Self.tree($1))) } }
        var merged: [(EntityKey, JSONTree)] = []
        merged.reserveCapacity(old.count + changes.count)
        changes.visit { key, value in
            let value = Self.tree(value)
            while let next = old.first, next.0 < key { merged.append(old.removeFirst()) }
            let before = old.first.flatMap { $0.0 == key ? $0.1 : nil }
            if before != nil { old.removeFirst() }
            if !value.isNull { merged.append((key, (before ?? .emptyObject).merging(value))) }
        }
        merged += old
        return JSONTree(members: merged).normalized
    }
}
