package import StateJSON

/// A change of one entity by one commit.
package struct EntityChange: Sendable {
    /// The index of the entity's part in ``Catalogue/parts``.
    package let part: Int
    package let name: EntityName
    /// The value before the commit; nil where the entity was not there.
    package let before: JSONValue?
    /// The value after the commit; nil where the entity is no longer there.
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
    private let scope: JSONPointer
    private var snapshot: any AnySnapshot
    /// What commits since the snapshot have touched: entities of tables, fields and values, by their pointers.
    private var values: [JSONPointer: JSONValue?] = [:]
    /// The orders that commits have touched, by the index of their part; they stay when the snapshot is renewed.
    private var orders: [Int: EntityOrder] = [:]

    /// Begins with a snapshot of the whole state.
    ///
    /// - Parameters:
    ///   - parts: the parts of the whole state.
    ///   - scope: the part of the state whose changes count.
    package init(of parts: [StatePart], in scope: JSONPointer, at snapshot: any AnySnapshot) {
        self.parts = parts
        self.scope = scope
        self.snapshot = snapshot
        version = snapshot.cursor.version
    }

    /// How many values are held beside the snapshot.
    package var heldCount: Int { values.count }

    /// Goes on from a newer snapshot, and forgets what led to it.
    ///
    /// - Precondition: the snapshot has ``version``.
    package mutating func renew(_ snapshot: any AnySnapshot) {
        precondition(snapshot.cursor.version == version, "the snapshot has another version")
        self.snapshot = snapshot
        values = [:]
    }

    /// Takes note that the commits up to a version change nothing in the scope.
    package mutating func skip(to version: Version) { self.version = max(self.version, version) }

    /// Applies the next commit; commits that change nothing in the scope may be left out.
    ///
    /// - Returns: the changed entities, each once, in the order in which the patch first touches them.
    /// - Throws: ``JSONFault`` or `EncodingError`, never for a commit and a state that the store has encoded.
    package mutating func apply(_ commit: Commit) throws -> [EntityChange] {
        version = commit.version
        guard commit.isChange, case .array(let operations) = try JSONValue(parsing: commit.patch, depthMax: 1000) else {
            return []
        }
        var touched = TouchedEntities()
        for case .object(let operation) in operations {
            guard case .string(let name)? = operation["op"], case .string(let path)? = operation["path"],
                let pointer = JSONPointer(text: path)
            else { continue }
            for index in parts.indices {
                let part = parts[index].pointer
                guard parts[index].isInside(scope), part.overlaps(pointer) else { continue }
                let isAround = pointer.tokens.count < part.tokens.count
                // The operation replaces or removes a value around the part.
                let rest = JSONPointer(Array(part.tokens.dropFirst(pointer.tokens.count)))
                try apply(
                    isAround && operation["value"]?[pointer: rest] == nil ? "remove" : isAround ? "replace" : name,
                    pointer.tokens.dropFirst(part.tokens.count),
                    isAround ? operation["value"]?[pointer: rest] : operation["value"], to: index, &touched)
            }
        }
        return touched.changes
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
        case .field:
            try change(part.pointer, operation, tokens, value) { touched.note(index, .whole, $0, $1) }
        case .value:
            try change(part.pointer, operation, tokens, value) { before, after in
                touched.note(index, membersOf: before, after)
            }
        case .entities(let ids):
            if let key = tokens.first {
                try change(part.pointer.appending(key), operation, tokens.dropFirst(), value) {
                    touched.note(index, .member(JSONKey(key)), $0, $1)
                }
            } else {
                try replace(part.pointer, ids, with: value) { touched.note(index, .member(JSONKey($0)), $1, $2) }
            }
        }
    }

    /// Applies an operation to one held value.
    private mutating func change(
        _ pointer: JSONPointer, _ operation: String, _ tokens: ArraySlice<String>, _ value: JSONValue?,
        note: (_ before: JSONValue?, _ after: JSONValue?) -> Void
    ) throws {
        let before = try current(pointer)
        var after = before
        if tokens.isEmpty {
            after = operation == "remove" ? nil : value
        } else {
            guard after?.apply(operation, at: tokens, value) == true else {
                throw PatchMismatch(detail: "cannot \(operation) below \(pointer): there is no such place")
            }
        }
        values[pointer] = .some(after)
        note(before, after)
    }

    /// Replaces a whole table.
    private mutating func replace(
        _ pointer: JSONPointer, _ ids: JSONPointer, with value: JSONValue?,
        note: (_ key: String, _ before: JSONValue?, _ after: JSONValue?) -> Void
    ) throws {
        var keys: [JSONKey] = []
        if case .object(let members)? = try parsed(pointer) { keys = members.members.map { JSONKey($0.key) } }
        let depth = pointer.tokens.count
        keys += values.keys.filter { $0.tokens.count == depth + 1 && $0.overlaps(pointer) }
            .map { JSONKey($0.tokens[depth]) }.sorted { $0.text < $1.text }
        if case .object(let members)? = value { keys += members.members.map { JSONKey($0.key) } }
        var seen: Set<JSONKey> = []
        for key in keys where seen.insert(key).inserted {
            let entity = pointer.appending(key.text)
            let before = try current(entity)
            let after: JSONValue? = if case .object(let members)? = value { members[key.text] } else { nil }
            values[entity] = .some(after)
            note(key.text, before, after)
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

/// The entities that a commit touches, each with its value before the first operation and after the last.
private struct TouchedEntities {
    private struct ID: Hashable {
        let part: Int
        let name: EntityName
    }

    private var places: [ID: Int] = [:]
    private var touched: [EntityChange] = []

    mutating func note(_ part: Int, _ name: EntityName, _ before: JSONValue?, _ after: JSONValue?) {
        let id = ID(part: part, name: name)
        if let place = places[id] {
            touched[place] = EntityChange(part: part, name: name, before: touched[place].before, after: after)
        } else {
            places[id] = touched.count
            touched.append(EntityChange(part: part, name: name, before: before, after: after))
        }
    }

    /// Notes the members of a value that differ; a value that is no object is one entity.
    mutating func note(_ part: Int, membersOf before: JSONValue?, _ after: JSONValue?) {
        let (old, new) = (Self.entities(of: before), Self.entities(of: after))
        for (name, value) in old { note(part, name, value, nil) }
        for (name, value) in new { note(part, name, nil, value) }
    }

    /// The entities of a slice that is `Codable` as a whole.
    private static func entities(of value: JSONValue?) -> [(name: EntityName, value: JSONValue)] {
        switch value {
        case .object(let object)?: object.members.map { (.member(JSONKey($0.key)), $0.value) }
        case let value?: [(.whole, value)]
        case nil: []
        }
    }

    /// The entities whose values differ.
    var changes: [EntityChange] { touched.filter { $0.before != $0.after } }
}
