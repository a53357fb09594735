package import StateJSON

/// A change of one entity by one commit.
package struct EntityChange: Sendable {
    /// The index of the entity's part in ``Catalogue/parts``.
    package let part: Int
    package let name: EntityName
    /// The value before the commit, or nil for a new entity.
    package let before: JSONValue?
    /// The value after the commit, or nil for a removed entity.
    package let after: JSONValue?
}

/// Turns commits into changes of entities, with the value of each entity at the version of its commit.
///
/// A patch of a nested value says what changes in an entity, not what the entity then is. So this value holds a snapshot and
/// what commits have since made of the entities that they touch: the cost of a commit is that of the entities that it
/// touches, however large the state is. An operation on a whole table costs O(n) in the size of the table.
package struct EntityChanges: Sendable {
    /// The version up to which commits are applied.
    package private(set) var version: Version
    private let parts: [StatePart]
    private let scopes: PointerFilter
    private var snapshot: Snapshot
    private var values: [JSONPointer: JSONValue?] = [:]
    /// The orders that commits have touched, by the index of their part; they stay when the snapshot is renewed.
    private var orders: [Int: EntityOrder] = [:]

    /// Begins with a snapshot of the whole state.
    ///
    /// - Parameters:
    ///   - parts: the parts of the whole state.
    ///   - scopes: the parts of the state whose changes count; the held values are right in these only.
    package init(of parts: [StatePart], in scopes: PointerFilter, at snapshot: Snapshot) {
        self.parts = parts
        self.scopes = scopes
        self.snapshot = snapshot
        version = snapshot.cursor.version
    }

    /// How many values are held beside the snapshot.
    package var heldCount: Int { values.count }

    /// Goes on from a newer snapshot, and forgets what led to it.
    ///
    /// - Precondition: the snapshot has ``version``.
    package mutating func renew(_ snapshot: Snapshot) {
        precondition(snapshot.cursor.version == version, "the snapshot has another version")
        self.snapshot = snapshot
        values = [:]
    }

    /// Takes note that the commits up to a version change nothing in the scopes.
    package mutating func skip(to version: Version) { self.version = max(self.version, version) }

    /// Applies the next commit; commits that change nothing in the scopes may be left out.
    ///
    /// - Returns: the changed entities, each once, in the order in which the patch first touches them.
    /// - Throws: ``JSONFault`` or `EncodingError`, never for a commit and a state that the store has encoded.
    package mutating func apply(_ commit: Commit) throws -> [EntityChange] {
        var touched = TouchedEntities()
        try apply(commit, noting: &touched)
        return touched.changes(to: values).flatMap { parts[$0.part].kind == .value ? $0.ofMembers : [$0] }
    }

    /// Applies the next commit like ``apply(_:)``, and copies and compares no value.
    package mutating func pass(_ commit: Commit) throws {
        var touched = TouchedEntities(isNoting: false)
        try apply(commit, noting: &touched)
    }

    private mutating func apply(_ commit: Commit, noting touched: inout TouchedEntities) throws {
        version = commit.version
        guard commit.isChange, case .array(let operations) = try JSONValue(parsing: commit.patch, depthMax: 1000) else {
            return
        }
        for case .object(let operation) in operations {
            guard case .string(let name)? = operation["op"], case .string(let path)? = operation["path"],
                let pointer = JSONPointer(text: path)
            else { continue }
            for index in parts.indices where counts(pointer, in: parts[index]) {
                let part = parts[index].pointer.tokens
                guard pointer.tokens.count < part.count else {
                    try apply(name, pointer.tokens.dropFirst(part.count), operation["value"], to: index, &touched)
                    continue
                }
                // The operation replaces or removes a value around the part.
                let value = operation["value"]?[pointer: JSONPointer(Array(part.dropFirst(pointer.tokens.count)))]
                try apply(value == nil ? "remove" : "replace", [], value, to: index, &touched)
            }
        }
    }

    /// An operation need not fit the rest of a part, which commits that are left out may have changed.
    private func counts(_ pointer: JSONPointer, in part: StatePart) -> Bool {
        guard part.pointer.overlaps(pointer) else { return false }
        var pointer = pointer
        var entity = part.pointer.tokens.count
        switch part.kind {
        case .entities: entity += 1
        case .members(let others):
            if let name = pointer.tokens.dropFirst(entity).first, others.contains(name) { return false }
            entity += 1
        case .order, .field, .value: break
        }
        // An operation on an element of an array changes the elements behind it, too.
        if pointer.tokens.count > entity, let last = pointer.tokens.last, last == "-" || JSONPointer.index(last) != nil
        {
            pointer.tokens.removeLast()
        }
        return scopes.overlaps(pointer.tokens.count > part.pointer.tokens.count ? pointer : part.pointer)
    }

    private mutating func apply(
        _ operation: String, _ tokens: ArraySlice<String>, _ value: JSONValue?, to index: Int,
        _ touched: inout TouchedEntities
    ) throws {
        let part = parts[index]
        switch part.kind {
        case .order:
            var order = try orders.removeValue(forKey: index) ?? EntityOrder(parsed(part.pointer))
            order.apply(operation, tokens, value) { touched.note(index, .member(JSONKey($0)), $1, $2) }
            orders[index] = order
        case .field, .value: try change(part.pointer, operation, tokens, value, index, .whole, &touched)
        case .entities, .members:
            guard let key = tokens.first else { return try replace(part, with: value, index, &touched) }
            try change(
                part.pointer.appending(key), operation, tokens.dropFirst(), value, index, .member(JSONKey(key)),
                &touched)
        }
    }

    private mutating func change(
        _ pointer: JSONPointer, _ operation: String, _ tokens: ArraySlice<String>, _ value: JSONValue?,
        _ part: Int, _ name: EntityName, _ touched: inout TouchedEntities
    ) throws {
        var held = try current(pointer)
        touched.note(part, name, held, at: pointer)
        // With one reference to the value, the operation copies nothing.
        values[pointer] = nil
        if tokens.isEmpty {
            held = operation == "remove" ? nil : value
        } else {
            guard held?.apply(operation, at: tokens, value) == true else {
                throw PatchMismatch(detail: "cannot \(operation) below \(pointer): there is no such place")
            }
        }
        values[pointer] = .some(held)
    }

    private mutating func replace(
        _ replaced: StatePart, with value: JSONValue?, _ part: Int, _ touched: inout TouchedEntities
    ) throws {
        let pointer = replaced.pointer
        let others: Set<String> = if case .members(let others) = replaced.kind { others } else { [] }
        var keys: [JSONKey] = []
        if case .object(let members)? = try parsed(pointer) { keys = members.members.map { JSONKey($0.key) } }
        let depth = pointer.tokens.count
        keys += values.keys.filter { $0.tokens.count == depth + 1 && $0.overlaps(pointer) }
            .map { JSONKey($0.tokens[depth]) }.sorted { $0.text < $1.text }
        if case .object(let members)? = value { keys += members.members.map { JSONKey($0.key) } }
        var seen: Set<JSONKey> = []
        for key in keys where seen.insert(key).inserted && !others.contains(key.text) {
            let entity = pointer.appending(key.text)
            touched.note(part, .member(key), try current(entity), at: entity)
            let after: JSONValue? = if case .object(let members)? = value { members[key.text] } else { nil }
            values[entity] = .some(after)
        }
    }

    private func current(_ pointer: JSONPointer) throws -> JSONValue? {
        if let held = values[pointer] { return held }
        return try parsed(pointer)
    }

    private func parsed(_ pointer: JSONPointer) throws -> JSONValue? {
        try snapshot.selected(.pointer(pointer), countMax: .max).bytes.map {
            try JSONValue(parsing: $0, depthMax: 1000)
        }
    }
}

private struct TouchedEntities {
    private struct ID: Hashable {
        let part: Int
        let name: EntityName
    }

    private struct Touched {
        let id: ID
        let before: JSONValue?
        /// Where the value is held after the commit; nil for an ID of an order.
        let pointer: JSONPointer?
        var link: JSONValue?
    }

    private let isNoting: Bool
    private var places: [ID: Int] = [:]
    private var touched: [Touched] = []

    init(isNoting: Bool = true) { self.isNoting = isNoting }

    mutating func note(_ part: Int, _ name: EntityName, _ before: JSONValue?, _ after: JSONValue?) {
        note(ID(part: part, name: name), before, nil)
        if let place = places[ID(part: part, name: name)] { touched[place].link = after }
    }

    mutating func note(_ part: Int, _ name: EntityName, _ before: JSONValue?, at pointer: JSONPointer) {
        note(ID(part: part, name: name), before, pointer)
    }

    private mutating func note(_ id: ID, _ before: @autoclosure () -> JSONValue?, _ pointer: JSONPointer?) {
        guard isNoting, places[id] == nil else { return }
        places[id] = touched.count
        touched.append(Touched(id: id, before: before(), pointer: pointer))
    }

    func changes(to values: [JSONPointer: JSONValue?]) -> [EntityChange] {
        touched.compactMap { touched in
            let after = touched.pointer.map { values[$0] ?? nil } ?? touched.link
            guard touched.before != after else { return nil }
            return EntityChange(part: touched.id.part, name: touched.id.name, before: touched.before, after: after)
        }
    }
}

extension EntityChange {
    /// The changes of the members of a slice that is `Codable` as a whole; a value that is no object is one entity.
    fileprivate var ofMembers: [EntityChange] {
        let (old, new) = (Self.members(of: before), Self.members(of: after))
        let (oldValues, newValues) = (Dictionary(old) { first, _ in first }, Dictionary(new) { first, _ in first })
        let added = new.filter { !oldValues.keys.contains($0.0) }
        return (old + added).compactMap { name, _ in
            let (before, after) = (oldValues[name], newValues[name])
            return before == after ? nil : EntityChange(part: part, name: name, before: before, after: after)
        }
    }

    private static func members(of value: JSONValue?) -> [(EntityName, JSONValue)] {
        switch value {
        case .object(let object)?: object.members.map { (.member(JSONKey($0.key)), $0.value) }
        case let value?: [(.whole, value)]
        case nil: []
        }
    }
}
