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
