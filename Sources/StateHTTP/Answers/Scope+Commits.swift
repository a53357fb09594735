internal import StateJSON
internal import StateStore

/// What a derived store's client sees of what has happened in the whole store.
extension Scope {
    /// The JSON of a commit's actions that are this store's own: one, or an array of those in a batch, or `null` where what
    /// changed this part was no action of this store.
    func action(of commit: Commit) -> [UInt8] {
        guard commit.types.contains(where: { actions[$0] == nil }) else { return commit.action }
        // What is recorded is JSON that this program has written.
        guard case .array(let all)? = try? JSONValue(parsing: commit.action, depthMax: 1000) else {
            return Array("null".utf8)
        }
        let own = all.filter { element in
            guard case .object(let action) = element, case .string(let type)? = action["type"] else { return false }
            return actions[type] != nil
        }
        return own.isEmpty ? Array("null".utf8) : JSONValue.array(own).text
    }

    /// The operations of a patch that concern this store, with its own places.
    func patch(_ patch: [UInt8]) -> [UInt8] {
        // What is recorded is JSON that this program has written.
        guard case .array(let operations)? = try? JSONValue(parsing: patch, depthMax: 1000) else { return patch }
        return JSONValue.array(operations.compactMap(own)).text
    }

    private func own(_ operation: JSONValue) -> JSONValue? {
        guard case .object(var members) = operation, case .string(let path)? = members["path"],
            let pointer = JSONPointer(text: path), pointer.overlaps(self.pointer)
        else { return nil }
        if let inner = inner(pointer) {
            members["path"] = .string(inner.description)
            return .object(members)
        }
        // Something around this store was set as a whole: what it brings for this store is what counts.
        let rest = JSONPointer(Array(self.pointer.tokens.dropFirst(pointer.tokens.count)))
        guard let value = members["value"]?[pointer: rest] else { return nil }
        var replacing = JSONObject()
        replacing["op"] = .string("replace")
        replacing["path"] = .string("")
        replacing["value"] = value
        return .object(replacing)
    }
}
