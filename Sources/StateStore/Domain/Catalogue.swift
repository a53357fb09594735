package import StateJSON

/// What clients may name: action types and views, in the whole store and in the derived ones.
package struct Catalogue: Sendable {
    /// The whole store.
    package let whole: Scope
    /// A derived store for each slice, under the slice's name, of slices in slices with dots between.
    package let stores: [Scope]
    /// What each view reads.
    package let viewReads: [String: [JSONPointer]]
    /// The tables.
    package let collections: [Collection]

    /// The Swift type of each action type.
    package var actions: [String: any Action.Type] { whole.actions }

    /// The action types, sorted.
    package var types: [String] { whole.types }
}

/// A store as a client sees it: the whole, or a slice as a world of its own.
package struct Scope: Sendable {
    /// Empty for the whole.
    package let name: String
    /// Where it stands in the whole state.
    package let place: JSONPointer
    /// The Swift type of each action type that is handled here and nowhere else.
    package let actions: [String: any Action.Type]
    /// The names of its views in the whole store, by the names that they have here.
    package let views: [String: String]

    /// The action types, sorted.
    package var types: [String] { actions.keys.sorted() }

    /// Whether this is the whole store.
    package var isWhole: Bool { name.isEmpty }

    /// A place of this store, in the whole one.
    package func outer(_ pointer: JSONPointer) -> JSONPointer {
        isWhole ? pointer : JSONPointer(place.tokens + pointer.tokens)
    }

    /// A place of the whole store, in this one; nil where it lies outside.
    package func inner(_ pointer: JSONPointer) -> JSONPointer? {
        guard !isWhole else { return pointer }
        let depth = place.tokens.count
        guard pointer.tokens.count >= depth, pointer.overlaps(place) else { return nil }
        return JSONPointer(Array(pointer.tokens.dropFirst(depth)))
    }

    /// Which commits belong to it.
    package var filter: ChangesFilter.Within? {
        isWhole ? nil : ChangesFilter.Within(place: place, types: Set(actions.keys))
    }
}

/// A table of entities in the JSON.
package struct Collection: Sendable {
    /// The object of the entities by ID.
    package let entities: JSONPointer
    /// The array of the IDs in order.
    package let ids: JSONPointer
    /// The JSON of the ID that stands for a member of the object.
    package let id: @Sendable (_ token: String) -> [UInt8]

    func lifted(into slice: String) -> Collection {
        Collection(
            entities: JSONPointer([slice] + entities.tokens), ids: JSONPointer([slice] + ids.tokens), id: id)
    }
}
