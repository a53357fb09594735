package import StateJSON

package struct StateEntity: Sendable {
    package let part: Int
    package let name: EntityName
    package let value: [UInt8]
}

/// Some of the entities of a snapshot, in the order in which a state stream sends them.
package struct EntityPage: Sendable {
    package private(set) var entities: [StateEntity] = []
    /// How many of the sent entities of the snapshot lie before the end of the page.
    package private(set) var end: Int
    package private(set) var isMore = false

    /// Reads entities until their values have about `bytesMax` bytes; O(n) in the number of IDs of the tables that it
    /// looks at.
    ///
    /// Nothing depends on entities that are not visible.
    package init(
        of snapshot: Snapshot, _ parts: [StatePart], in scope: JSONPointer, from start: Int, bytesMax: Int,
        isVisible: ((JSONPointer) -> Bool)? = nil
    ) throws {
        end = start
        var (passed, bytes) = (0, 0)
        for index in parts.indices where parts[index].isInside(scope) {
            let (names, value) = try Self.entities(of: parts[index], in: snapshot)
            let visible = names.indices.filter { isVisible?(parts[index].pointer(of: names[$0])) ?? true }
            defer { passed += visible.count }
            for place in visible.dropFirst(max(0, start - passed)) {
                guard bytes < bytesMax else {
                    isMore = true
                    return
                }
                defer { end += 1 }
                // A model may have an ID without an entity.
                guard let value = try value(place) else { continue }
                entities.append(StateEntity(part: index, name: names[place], value: value))
                bytes += value.count
            }
        }
    }

    private static func entities(
        of part: StatePart, in snapshot: Snapshot
    ) throws -> (names: [EntityName], value: (Int) throws -> [UInt8]?) {
        let bytes = { (pointer: JSONPointer) in try snapshot.selected(.pointer(pointer), countMax: .max).bytes }
        let parsed = { (pointer: JSONPointer) in
            try bytes(pointer).map { try JSONValue(parsing: $0, depthMax: 1000) }
        }
        switch part.kind {
        case .field: return ([.whole], { _ in try bytes(part.pointer) })
        case .entities(let ids):
            let keys = EntityOrder(try parsed(ids)).keys
            return (keys.map { .member(JSONKey($0)) }, { try bytes(part.pointer.appending(keys[$0])) })
        case .order:
            let order = EntityOrder(try parsed(part.pointer))
            return (order.keys.map { .member(JSONKey($0)) }, { order.link(at: $0).text })
        case .value, .members:
            let value = try parsed(part.pointer)
            guard case .object(let object)? = value else {
                return part.kind == .value && value != nil ? ([.whole], { _ in value?.text }) : ([], { _ in nil })
            }
            var members = object.members
            if case .members(let others) = part.kind { members.removeAll { others.contains($0.key) } }
            return (members.map { .member(JSONKey($0.key)) }, { members[$0].value.text })
        }
    }
}

/// The order of an entity table as links to the ID before, of which an insertion, a removal or a move changes a few.
struct EntityOrder: Sendable {
    struct Link: Codable {
        var after: String?
    }

    private(set) var keys: [String]

    init(_ ids: JSONValue?) {
        keys = if case .array(let elements)? = ids { elements.map(Self.key) } else { [] }
    }

    private static func key(_ id: JSONValue) -> String {
        if case .string(let text) = id { text } else { String(decoding: id.text, as: UTF8.self) }
    }

    func link(at index: Int) -> JSONValue { ["after": index > 0 ? .string(keys[index - 1]) : .null] }

    /// Applies an operation, whose `tokens` lie behind the pointer to the order; O(n) where it replaces the order.
    ///
    /// A link is nil for an ID that is not there.
    mutating func apply(
        _ operation: String, _ tokens: ArraySlice<String>, _ value: JSONValue?,
        note: (_ key: String, _ before: JSONValue?, _ after: JSONValue?) -> Void
    ) {
        guard let token = tokens.first else { return replace(with: operation == "remove" ? nil : value, note) }
        guard let index = token == "-" ? keys.count : JSONPointer.index(token) else { return }
        if operation != "add", keys.indices.contains(index) {
            let key = keys[index]
            let link = link(at: index)
            if index + 1 < keys.count { note(keys[index + 1], self.link(at: index + 1), link) }
            keys.remove(at: index)
            note(key, link, nil)
        }
        if operation != "remove", let value, index <= keys.count {
            let key = Self.key(value)
            let next = keys.indices.contains(index) ? Optional(link(at: index)) : nil
            keys.insert(key, at: index)
            note(key, nil, link(at: index))
            if let next { note(keys[index + 1], next, link(at: index + 1)) }
        }
    }

    private mutating func replace(with ids: JSONValue?, _ note: (String, JSONValue?, JSONValue?) -> Void) {
        for index in keys.indices { note(keys[index], link(at: index), nil) }
        self = EntityOrder(ids)
        for index in keys.indices { note(keys[index], nil, link(at: index)) }
    }
}
