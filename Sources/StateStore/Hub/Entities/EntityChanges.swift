package import StateJSON

package struct EntityChange: Sendable {
    /// The index of the entity's part in ``Catalogue/parts``.
    package let part: Int
    package let name: EntityName
    package let before: JSONValue?
    package let after: JSONValue?

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

/// Turns commits into changes of entities, whose values a patch need not have: this holds a snapshot and what commits
/// have since made of the entities that they touch.
///
/// A commit costs these entities, and an operation on a whole table O(n) in its size.
package struct EntityChanges: Sendable {
    package private(set) var version: Version
    private let parts: [StatePart]
    private let scopes: PointerFilter
    private var snapshot: Snapshot
    private var values: [JSONPointer: JSONValue?] = [:]
    /// The orders that commits have touched, by the index of their part; they stay when the snapshot is renewed.
    private var orders: [Int: EntityOrder] = [:]

    /// The held values are right in `scopes` only.
    package init(of parts: [StatePart], in scopes: PointerFilter, at snapshot: Snapshot) {
        self.parts = parts
        self.scopes = scopes
        self.snapshot = snapshot
        version = snapshot.cursor.version
    }

    /// Goes on from a newer snapshot, which has ``version``.
    package mutating func renew(_ snapshot: Snapshot) {
        precondition(snapshot.cursor.version == version, "the snapshot has another version")
        self.snapshot = snapshot
        values = [:]
    }

    /// The commits up to the version must change nothing in the scopes.
    package mutating func skip(to version: Version) { self.version = max(self.version, version) }

    /// The changed entities, each once, as the patch first touches them.
    ///
    /// Commits outside the scopes may be left out.
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
        guard commit.isChange else { return }
        for operation in try PatchOperation.all(in: commit.patch) {
            let pointer = operation.pointer
            for index in parts.indices where counts(pointer, in: parts[index]) {
                try apply(operation.inside(parts[index].pointer), to: index, &touched)
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
        _ operation: PatchOperation, to index: Int, _ touched: inout TouchedEntities
    ) throws {
        let part = parts[index]
        switch part.kind {
        case .order:
            var order = try orders.removeValue(forKey: index) ?? EntityOrder(parsed(part.pointer))
            order.apply(operation.name, operation.tokens, operation.value) {
                touched.note(index, .member(JSONKey($0)), $1, after: $2)
            }
            orders[index] = order
        case .field, .value: try change(part.pointer, operation, index, .whole, &touched)
        case .entities, .members:
            guard let key = operation.tokens.first else { return try replace(part, by: operation, index, &touched) }
            try change(part.pointer.appending(key), operation.inner, index, .member(JSONKey(key)), &touched)
        }
    }

    private mutating func change(
        _ pointer: JSONPointer, _ operation: PatchOperation, _ part: Int, _ name: EntityName,
        _ touched: inout TouchedEntities
    ) throws {
        var held: JSONValue? = try values[pointer] ?? parsed(pointer)
        touched.note(part, name, held, at: pointer)
        // With one reference to the value, the operation copies nothing.
        values[pointer] = nil
        let isWhole = operation.tokens.isEmpty
        guard isWhole || held?.apply(operation.name, at: operation.tokens, operation.value) == true else {
            throw operation.mismatch
        }
        values[pointer] = .some(isWhole ? operation.value : held)
    }

    private mutating func replace(
        _ replaced: StatePart, by operation: PatchOperation, _ part: Int, _ touched: inout TouchedEntities
    ) throws {
        let pointer = replaced.pointer
        let others: Set<String> = if case .members(let others) = replaced.kind { others } else { [] }
        var keys: [JSONKey] = []
        if case .object(let members)? = try parsed(pointer) { keys = members.members.map { JSONKey($0.key) } }
        let depth = pointer.tokens.count
        keys += values.keys.filter { $0.tokens.count == depth + 1 && $0.overlaps(pointer) }
            .map { JSONKey($0.tokens[depth]) }.sorted { $0.text < $1.text }
        // An array has no entities, also where a key reads like one of its indices.
        let members: JSONObject? = if case .object(let members)? = operation.value { members } else { nil }
        if let members { keys += members.members.map { JSONKey($0.key) } }
        var seen: Set<JSONKey> = []
        for key in keys where seen.insert(key).inserted && !others.contains(key.text) {
            let entity = pointer.appending(key.text)
            touched.note(part, .member(key), try values[entity] ?? parsed(entity), at: entity)
            values[entity] = .some(members?[key.text])
        }
    }

    private func parsed(_ pointer: JSONPointer) throws -> JSONValue? {
        try snapshot.selected(.pointer(pointer), countMax: .max).bytes.map {
            try JSONValue(parsing: $0, depthMax: 1000)
        }
    }
}

private struct TouchedEntities {
    struct ID: Hashable {
        let part: Int
        let name: EntityName
    }

    var isNoting = true
    var places: [ID: Int] = [:]
    /// With where the value is held after the commit, or with the link of an ID of an order.
    var touched: [(id: ID, before: JSONValue?, pointer: JSONPointer?, link: JSONValue?)] = []

    mutating func note(
        _ part: Int, _ name: EntityName, _ before: JSONValue?, at pointer: JSONPointer? = nil, after: JSONValue? = nil
    ) {
        let id = ID(part: part, name: name)
        guard isNoting else { return }
        if let place = places[id] {
            touched[place].link = after
        } else {
            places[id] = touched.count
            touched.append((id, before, pointer, after))
        }
    }

    func changes(to values: [JSONPointer: JSONValue?]) -> [EntityChange] {
        touched.compactMap { touched in
            let after = touched.pointer.map { values[$0] ?? nil } ?? touched.link
            guard touched.before != after else { return nil }
            return EntityChange(part: touched.id.part, name: touched.id.name, before: touched.before, after: after)
        }
    }
}
