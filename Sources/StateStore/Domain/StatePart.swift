package import StateJSON

/// A part of the state that a state stream tells as entities: each has a type, a key and a value.
package struct StatePart: Sendable {
    package enum Kind: Sendable, Equatable {
        case entities(ids: JSONPointer)
        /// The order of an entity table: each ID is an entity, whose value names the ID before it.
        case order
        case field
        /// A slice that is `Codable` as a whole: each member of its object is an entity, and any other value is one.
        case value
        /// An object whose members are entities, except the members that are parts of their own.
        case members(besides: Set<String>)
    }

    package let kind: Kind
    package let pointer: JSONPointer
    /// The Swift type of an entity's value, or of the whole slice, or nil if it cannot be read from JSON.
    package private(set) var valueType: (any (Decodable & Sendable).Type)?
    /// The JSON Schema of the part, or nil if its Swift type says enough.
    package private(set) var schema: JSONValue?

    func lifted(into slice: [String]) -> StatePart {
        let lift = { (pointer: JSONPointer) in JSONPointer(slice + pointer.tokens) }
        let kind: Kind = if case .entities(let ids) = kind { .entities(ids: lift(ids)) } else { kind }
        return StatePart(kind: kind, pointer: lift(pointer), valueType: valueType, schema: schema)
    }

    package func isInside(_ scope: JSONPointer) -> Bool {
        pointer.tokens.count >= scope.tokens.count && pointer.overlaps(scope)
    }

    /// The pointer to an entity of the part in the whole state; for the place of an ID, the pointer to the whole order.
    package func pointer(of name: EntityName) -> JSONPointer {
        switch (kind, name) {
        case (.entities, .member(let key)), (.value, .member(let key)), (.members, .member(let key)):
            pointer.appending(key.text)
        case _: pointer
        }
    }
}

package enum EntityName: Hashable, Sendable {
    case whole
    /// A member of the part's object, or an ID of an order.
    case member(JSONKey)
}
