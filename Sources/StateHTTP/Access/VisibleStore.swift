package import StateJSON
package import StateStore

package struct VisibleStore: Sendable {
    let scope: Scope
    package let access: Access
    /// The path of the whole store, without a slash at the end.
    var root = "/v1"

    package var name: String { scope.name }
    package var pointer: JSONPointer { scope.pointer }
    var isWhole: Bool { scope.isWhole }
    var isFork: Bool { root != "/v1" }
    var path: String { isWhole ? root : "\(root)/stores/\(name)" }
    func outer(_ pointer: JSONPointer) -> JSONPointer { scope.outer(pointer) }
    func inner(_ pointer: JSONPointer) -> JSONPointer? { scope.inner(pointer) }

    var views: [String: String] {
        access.isUnlimited ? scope.views : scope.views.filter { access.sees(view: $0.value) }
    }

    var types: [String] { scope.open.map(\.type).filter(access.dispatches) }
    func dispatches(_ type: String) -> Bool { type.withBytes(entry(named:)) != nil }

    func entry(named type: UnsafeBufferPointer<UInt8>) -> ActionEntry? {
        guard let entry = scope.entries[type], !entry.actionType.isInternal || access.dispatchesInternal(entry.type),
            access.isUnlimited || access.dispatches(entry.type)
        else { return nil }
        return entry
    }

    func fault(inPlacesOf action: any Action) -> (name: JSONPointer, fault: String)? {
        guard let (name, place) = access.hiddenPlace(of: action, at: outer) else { return nil }
        return (
            name,
            "this credential may not see \(place.tokens.isEmpty ? "all of the document" : place.shown), and so it may not change or use it"
        )
    }

    var restores: Bool { isWhole && !isFork && access.restores }

    func sees(type: String) -> Bool {
        (scope.entries[type] != nil || isWhole && Commit.isOfTheStore(type)) && access.sees(type: type)
    }

    /// A name means a type, or with a `*` at its end every type that begins so.
    func typesSeen(by name: String) -> [String] {
        guard name.utf8.last == UInt8(ascii: "*") else { return sees(type: name) ? [name] : [] }
        let all = scope.types + (isWhole ? Commit.typesOfTheStore : [])
        return all.filter { $0.utf8.starts(with: name.utf8.dropLast()) && access.sees(type: $0) }
    }

    /// The subjects among whose commits an ID is sought, in order, since other IDs are as unknown; nil stands for all.
    package var subjectsSought: [String?] {
        guard let subject = access.subject else { return [nil] }
        return access.seesOthers ? [subject, nil] : [subject]
    }

    /// The part of the whole state at a pointer; a part that the client may not see is never there.
    func selection(_ pointer: JSONPointer) -> Selection { access.sees(pointer) ? .pointer(pointer) : .hidden(pointer) }

    /// The filter sees what the client sees: it passes no commit because of something that is hidden from the client.
    func filter(path: JSONPointer?, types: [String], by subject: String?) -> ChangesFilter {
        var filter = ChangesFilter(types: types)
        filter.paths = path.map { access.filter($0) }
        let subject = ExactText(optional: subject)
        filter.by = subject
        let own = access.seesOthers ? nil : ExactText(access.subject ?? "")
        if subject != nil, types.isEmpty, !access.seesEveryAction {
            // A commit whose action is hidden has no subject to be found by.
            filter.types = scope.types.filter(sees(type:))
            if filter.types.isEmpty { filter.paths = .nothing }
        }
        if !types.isEmpty || subject != nil, let own {
            // Actions of others are hidden, so that no filter finds them.
            if let subject, subject != own { filter.paths = .nothing }
            filter.by = own
        }
        filter.within = scope.filter.map { within in
            access.isUnlimited
                ? within : .init(pointer: within.pointer, types: within.types.filter(access.sees(type:)), by: own)
        }
        return filter
    }
}

extension VisibleStore: Hashable {
    package static func == (left: VisibleStore, right: VisibleStore) -> Bool {
        left.scope === right.scope && left.access == right.access && left.root == right.root
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(access) }

    // MARK: Commits

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
        let action = copiesCommits ? commit.action : action(of: commit)
        let isSeen = action != nil || access.isUnlimited
        let seesCauses = access.isUnlimited || isSeen && access.seesEveryAction
        return VisibleCommit(
            id: isSeen ? commit.id : Cursor(epoch, commit.version).description, cause: seesCauses ? commit.cause : nil,
            root: seesCauses ? commit.root : nil, by: isSeen ? commit.by : nil, trace: isSeen ? commit.trace : nil,
            action: action ?? Array("null".utf8), patch: patch(commit.patch))
    }

    package enum Finding: Sendable {
        case commit
        /// The receipt: the client has dispatched the action with this ID, and may not see it.
        case receipt
    }

    /// The commit with the ID or the cursor that a client names, as far as the client may know it.
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
        return Self.elements(of: action).contains { element in
            if case .string(let own) = element["id"] { JSONPointer.sameBytes(own, id) } else { false }
        }
    }

    /// The elements of a recorded array: the store has encoded each action and each patch, so they parse.
    private static func elements(of json: [UInt8]) -> [JSONValue] {
        (try? JSONValue(parsing: json, depthMax: 1000))?.elements ?? []
    }

    private func isSeen(_ type: String) -> Bool {
        (isWhole || scope.entries[type] != nil) && (access.isUnlimited || access.sees(type: type))
    }

    private func action(of commit: Commit) -> [UInt8]? {
        guard access.sees(actionsBy: commit.by) else { return nil }
        if commit.types.allSatisfy(isSeen) { return commit.action }
        guard commit.types.contains(where: isSeen) else { return nil }
        let seen = Self.elements(of: commit.action).filter { element in
            if case .string(let type) = element["type"] { isSeen(type) } else { false }
        }
        return JSONValue.array(seen).text
    }

    func patch(_ patch: [UInt8]) -> [UInt8] {
        if copiesCommits { return patch }
        return JSONValue.array(Self.elements(of: patch).flatMap(isWhole ? seen : own)).text
    }

    private func own(_ operation: JSONValue) -> [JSONValue] {
        guard let pointer = Self.pointer(of: operation), pointer.overlaps(self.pointer) else { return [] }
        if let inner = inner(pointer) {
            var operation = operation
            operation["path"] = .string(inner.description)
            return [operation]
        }
        // The operation replaces a value around this store: only the part for this store concerns the client.
        guard let value = operation.members["value"]?[pointer: self.pointer.below(pointer)] else { return [] }
        return [Self.operation("replace", .root, value)]
    }

    private func seen(_ operation: JSONValue) -> [JSONValue] {
        guard let pointer = Self.pointer(of: operation) else { return [] }
        guard let parts = access.parts(of: pointer) else { return [operation] }
        // The operation replaces or removes a value around these parts.
        return parts.flatMap { part in
            if let value = operation.members["value"]?[pointer: part.below(pointer)] {
                return [Self.operation("add", part, value)]
            }
            // Whether the part was there before is not known here; after both operations it is not there.
            return [Self.operation("add", part, .null), ["op": "remove", "path": .string(part.description)]]
        }
    }

    private static func pointer(of operation: JSONValue) -> JSONPointer? {
        if case .string(let path) = operation["path"] { JSONPointer(text: path) } else { nil }
    }

    private static func operation(_ name: String, _ pointer: JSONPointer, _ value: JSONValue) -> JSONValue {
        ["op": .string(name), "path": .string(pointer.description), "value": value]
    }

    func visible(_ value: [UInt8]?, at pointer: JSONPointer) -> [(pointer: JSONPointer, value: [UInt8]?)] {
        guard let parts = access.parts(of: pointer) else { return [(pointer, value)] }
        let whole = value.flatMap { try? JSONValue(parsing: $0, depthMax: 1000) }
        return parts.map { ($0, whole?[pointer: $0.below(pointer)]?.text) }
    }

    /// Whether the client sees some of the value at a pointer; nil for a client that sees everything.
    package var visibility: ((JSONPointer) -> Bool)? {
        guard !access.sees(pointer) else { return nil }
        return { [access] in access.seesSome(of: $0) }
    }

    func visible(_ value: JSONValue?, at pointer: JSONPointer) -> JSONValue? {
        guard let value, let parts = access.parts(of: pointer) else { return value }
        var seen: JSONValue?
        for part in parts.map({ $0.below(pointer) }) {
            guard let found = value[pointer: part] else { continue }
            var whole = seen ?? [:]
            whole.insert(found, at: part.tokens[...])
            seen = whole
        }
        return seen
    }

    /// The state of this store as UTF-8 JSON, or the visible parts with the objects around them, so that patches apply.
    package func state(in snapshot: Snapshot) throws -> [UInt8] {
        guard let parts = access.parts(of: pointer) else {
            return try snapshot.selected(.pointer(pointer), countMax: .max).bytes ?? Array("null".utf8)
        }
        var writer = JSONWriter()
        try write(parts, depth: pointer.tokens.count, of: snapshot, to: &writer)
        return writer.bytes
    }

    private func write(_ parts: [JSONPointer], depth: Int, of snapshot: Snapshot, to writer: inout JSONWriter) throws {
        let members = Dictionary(grouping: parts) { JSONKey($0.tokens[depth]) }
        let sorted = members.sorted { $0.key.text.utf8.lexicographicallyPrecedes($1.key.text.utf8) }
        try writer.object { writer in
            for (name, parts) in sorted {
                if parts.count == 1, parts[0].tokens.count == depth + 1 {
                    guard let value = try snapshot.selected(.pointer(parts[0]), countMax: .max).bytes else { continue }
                    writer.key(escaping: name.text)
                    writer.raw(value)
                } else {
                    writer.key(escaping: name.text)
                    try write(parts, depth: depth + 1, of: snapshot, to: &writer)
                }
            }
        }
    }
}

extension JSONPointer {
    func below(_ other: JSONPointer) -> JSONPointer { JSONPointer(Array(tokens.dropFirst(other.tokens.count))) }
}
