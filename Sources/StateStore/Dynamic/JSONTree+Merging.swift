package import StateJSON

extension JSONTree {
    /// The value with another one merged into it (RFC 7396): a member that is null is removed.
    ///
    /// The cost is O(m log n) for a patch of m members, or O(n + m) where that is less.
    package func merging(_ patch: JSONValue) -> JSONTree {
        guard case .object(let patch) = patch else { return JSONTree(patch) }
        let old = isArray == false ? self : .emptyObject
        guard case .object(let members) = old.shape, members.count / 16 > patch.members.count else {
            return old.mergingAll(patch)
        }
        var merged = old
        for (name, value) in patch.members {
            let before = members[Self.key(name)].map(Self.tree)
            if value != .null {
                merged = merged.applying("add", at: [name], (before ?? .emptyObject).merging(value)) ?? merged
            } else if before != nil {
                merged = merged.applying("remove", at: [name], nil) ?? merged
            }
        }
        return merged
    }

    /// Merges by one walk through the members of both.
    private func mergingAll(_ patch: JSONObject) -> JSONTree {
        var old: ArraySlice<(EntityKey, JSONTree)> = []
        if case .object(let members)? = opened?.shape { members.visit { old.append(($0, Self.tree($1))) } }
        var changes = patch.members.map { (Self.key($0.key), $0.value) }
        changes.sort { $0.0 < $1.0 }
        var merged: [(EntityKey, JSONTree)] = []
        merged.reserveCapacity(old.count + changes.count)
        for (key, value) in changes {
            while let next = old.first, next.0 < key { merged.append(old.removeFirst()) }
            let before = old.first.flatMap { $0.0 == key ? $0.1 : nil }
            if before != nil { old.removeFirst() }
            if value != .null { merged.append((key, (before ?? .emptyObject).merging(value))) }
        }
        merged += old
        return JSONTree(members: merged).normalized
    }
}
