internal import StateJSON
package import StateStore

extension VisibleStore {
    /// A commit as a client sees it, besides its version, cursor and time.
    struct VisibleCommit {
        /// The commit's ID; its cursor where the client may not see the action.
        var id: String
        var cause: String?
        var root: String?
        var by: String?
        var trace: String?
        /// UTF-8 JSON: the action, an array for a batch, or `null` where the client sees none of it.
        var action: [UInt8]
        var patch: [UInt8]
    }

    /// Whether the client gets commits as they are recorded: nothing has to be parsed to cut them.
    private var copiesCommits: Bool { isWhole && access.isUnlimited }

    /// A commit of which nothing is left has an empty patch and no action.
    func visible(_ commit: Commit, epoch: Epoch) -> VisibleCommit {
        guard !copiesCommits else {
            return VisibleCommit(
                id: commit.id, cause: commit.cause, root: commit.root, by: commit.by, trace: commit.trace,
                action: commit.action, patch: commit.patch)
        }
        let action = action(of: commit)
        let isSeen = action != nil || access.isUnlimited
        let seesCauses = access.isUnlimited || isSeen && access.seesEveryAction
        return VisibleCommit(
            id: isSeen ? commit.id : Cursor(epoch, commit.version).description,
            cause: seesCauses ? commit.cause : nil, root: seesCauses ? commit.root : nil, by: isSeen ? commit.by : nil,
            trace: isSeen ? commit.trace : nil,
            action: action ?? Array("null".utf8), patch: patch(commit.patch))
    }

    /// The answer to a client that names a commit by an ID.
    package enum Finding: Sendable {
        /// The commit as the client sees it.
        case commit
        /// The receipt: the client has dispatched the action with this ID, and may not see it.
        case receipt
    }

    /// The commit that a client names by the ID of an action, or by the commit's cursor, as far as the client may know
    /// it.
    package func finding(_ id: String, _ commit: Commit) -> Finding? {
        guard scope.filter?.holds(commit) ?? true else { return nil }
        if access.isUnlimited || seesAction(id, of: commit) { return .commit }
        let isOwn = access.subject != nil && commit.has(clientID: id, by: access.subject)
        return isOwn ? .receipt : nil
    }

    /// Whether the client sees the action of a commit that an ID names; for a cursor, whether it sees any of them.
    private func seesAction(_ id: String, of commit: Commit) -> Bool {
        guard let action = action(of: commit) else { return false }
        // Where all actions are seen, so is this one, also where a middleware has replaced it by others.
        if commit.types.allSatisfy(isSeen) || Cursor(text: id) != nil { return true }
        guard case .array(let seen)? = try? JSONValue(parsing: action, depthMax: 1000) else { return false }
        return seen.contains { element in
            guard case .object(let members) = element, case .string(let own)? = members["id"] else { return false }
            return JSONPointer.sameBytes(own, id)
        }
    }

    private func isSeen(_ type: String) -> Bool {
        (isWhole || scope.entries[type] != nil) && (access.isUnlimited || access.sees(type: type))
    }

    private func action(of commit: Commit) -> [UInt8]? {
        guard access.sees(actionsBy: commit.by) else { return nil }
        if commit.types.allSatisfy(isSeen) { return commit.action }
        guard commit.types.contains(where: isSeen) else { return nil }
        // The store has encoded every recorded action, so the action parses.
        guard case .array(let all)? = try? JSONValue(parsing: commit.action, depthMax: 1000) else { return nil }
        return JSONValue.array(
            all.filter { element in
                guard case .object(let action) = element, case .string(let type)? = action["type"] else { return false }
                return isSeen(type)
            }
        ).text
    }

    func patch(_ patch: [UInt8]) -> [UInt8] {
        if copiesCommits { return patch }
        // The store has encoded every recorded patch, so the patch parses.
        guard case .array(let operations)? = try? JSONValue(parsing: patch, depthMax: 1000) else {
            return Array("[]".utf8)
        }
        return JSONValue.array(operations.flatMap(isWhole ? seen : own)).text
    }

    private func own(_ operation: JSONValue) -> [JSONValue] {
        guard case .object(var members) = operation, let pointer = Self.pointer(of: members),
            pointer.overlaps(self.pointer)
        else { return [] }
        if let inner = inner(pointer) {
            members["path"] = .string(inner.description)
            return [.object(members)]
        }
        // The operation replaces a value around this store: only the part for this store concerns the client.
        let rest = JSONPointer(Array(self.pointer.tokens.dropFirst(pointer.tokens.count)))
        guard let value = members["value"]?[pointer: rest] else { return [] }
        return [Self.operation("replace", .root, value)]
    }

    private func seen(_ operation: JSONValue) -> [JSONValue] {
        guard case .object(let members) = operation, let pointer = Self.pointer(of: members) else { return [] }
        guard let parts = access.parts(of: pointer) else { return [operation] }
        // The operation replaces or removes a value around these parts.
        return parts.flatMap { part in
            let rest = JSONPointer(Array(part.tokens.dropFirst(pointer.tokens.count)))
            if let value = members["value"]?[pointer: rest] { return [Self.operation("add", part, value)] }
            // Whether the part was there before is not known here; after both operations it is not there.
            var removal = JSONObject()
            removal["op"] = .string("remove")
            removal["path"] = .string(part.description)
            return [Self.operation("add", part, .null), .object(removal)]
        }
    }

    private static func pointer(of members: JSONObject) -> JSONPointer? {
        guard case .string(let path)? = members["path"] else { return nil }
        return JSONPointer(text: path)
    }

    private static func operation(_ name: String, _ pointer: JSONPointer, _ value: JSONValue) -> JSONValue {
        var members = JSONObject()
        members["op"] = .string(name)
        members["path"] = .string(pointer.description)
        members["value"] = value
        return .object(members)
    }

    func visible(_ value: [UInt8]?, at pointer: JSONPointer) -> [(pointer: JSONPointer, value: [UInt8]?)] {
        guard let parts = access.parts(of: pointer) else { return [(pointer, value)] }
        let whole = value.flatMap { try? JSONValue(parsing: $0, depthMax: 1000) }
        return parts.map { part in
            (part, whole?[pointer: JSONPointer(Array(part.tokens.dropFirst(pointer.tokens.count)))]?.text)
        }
    }

    /// The state of this store as UTF-8 JSON; for a client that may see parts of it, an object with these parts.
    ///
    /// The objects around the parts are there, so that the patches of later commits apply.
    ///
    /// - Throws: `EncodingError`, never for a committed state.
    package func state(in snapshot: Snapshot) throws -> [UInt8] {
        guard let parts = access.parts(of: pointer) else {
            return try snapshot.selected(.pointer(pointer), countMax: .max).bytes ?? Array("null".utf8)
        }
        var writer = JSONWriter()
        try write(parts, depth: pointer.tokens.count, of: snapshot, to: &writer)
        return writer.bytes
    }

    private func write(
        _ parts: [JSONPointer], depth: Int, of snapshot: Snapshot, to writer: inout JSONWriter
    ) throws {
        var isFirst = true
        writer.byte(UInt8(ascii: "{"))
        let members = Dictionary(grouping: parts) { JSONKey($0.tokens[depth]) }
        let sorted = members.sorted { $0.key.text.utf8.lexicographicallyPrecedes($1.key.text.utf8) }
        for (name, parts) in sorted {
            if parts.count == 1, parts[0].tokens.count == depth + 1 {
                guard let value = try snapshot.selected(.pointer(parts[0]), countMax: .max).bytes else { continue }
                write(name, to: &writer, &isFirst)
                writer.raw(value)
            } else {
                write(name, to: &writer, &isFirst)
                try write(parts, depth: depth + 1, of: snapshot, to: &writer)
            }
        }
        writer.byte(UInt8(ascii: "}"))
    }

    private func write(_ name: JSONKey, to writer: inout JSONWriter, _ isFirst: inout Bool) {
        writer.separator(&isFirst)
        writer.string(name.text)
        writer.byte(UInt8(ascii: ":"))
    }
}
