internal import StateJSON
internal import StateStore

/// The commits of the whole store, as a client of a derived store sees them.
extension Scope {
    /// The actions of a commit that belong to this store, as UTF-8 JSON: an action, an array for a batch, or `null` where
    /// none belongs to this store.
    func action(of commit: Commit) -> [UInt8] {
        guard commit.types.contains(where: { actions[$0] == nil }) else { return commit.action }
        // The store has encoded every recorded action, so the action parses.
        guard case .array(let all)? = try? JSONValue(parsing: commit.action, depthMax: 1000) else {
            return Array("null".utf8)
        }
        let own = all.filter { element in
            guard case .object(let action) = element, case .string(let type)? = action["type"] else { return false }
            return actions[type] != nil
        }
        return own.isEmpty ? Array("null".utf8) : JSONValue.array(own).text
    }

    /// The operations of a patch that concern this store, with pointers that begin at this store.
    func patch(_ patch: [UInt8]) -> [UInt8] {
        // The store has encoded every recorded patch, so the patch parses.
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
        // The operation replaces a value around this store: only the part for this store concerns the client.
        let rest = JSONPointer(Array(self.pointer.tokens.dropFirst(pointer.tokens.count)))
        guard let value = members["value"]?[pointer: rest] else { return nil }
        var replacing = JSONObject()
        replacing["op"] = .string("replace")
        replacing["path"] = .string("")
        replacing["value"] = value
        return .object(replacing)
    }
}
