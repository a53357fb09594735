package import StateJSON

package struct Catalogue: Sendable {
    package let whole: Scope
    /// The derived stores: one for each slice under the slice's name; the names of nested slices are joined by dots.
    package let stores: [Scope]
    package let views: [String: View<StateBox>]
    package let collections: [Collection]
    package let parts: [StatePart]

    package var types: [String] { whole.types }
}

/// A store as a client sees it; an object, so that each request to the store has it without a copy.
package final class Scope: Sendable {
    /// The name of the derived store; empty for the whole store.
    package let name: String
    package let pointer: JSONPointer
    /// The actions that only reducers of this store handle, by the bytes of the names of their types.
    package let entries: ActionTable
    package let types: [String]
    /// The actions that clients may dispatch, sorted by their types: not the internal ones.
    package let open: [ActionEntry]
    /// The names of the store's views in the whole store, by their names in this one.
    package let views: [String: String]

    init(name: String, pointer: JSONPointer, entries: [ActionEntry], views: [String: String]) {
        self.name = name
        self.pointer = pointer
        let entries = entries.sorted { $0.type < $1.type }
        self.entries = ActionTable(entries)
        types = entries.map(\.type)
        open = entries.filter { !$0.actionType.isInternal }
        self.views = views
    }

    package var isWhole: Bool { name.isEmpty }

    package func outer(_ pointer: JSONPointer) -> JSONPointer {
        isWhole ? pointer : JSONPointer(self.pointer.tokens + pointer.tokens)
    }

    /// Turns a pointer into the whole state into one into this store's state, or nil for one outside.
    package func inner(_ pointer: JSONPointer) -> JSONPointer? {
        guard !isWhole else { return pointer }
        let depth = self.pointer.tokens.count
        guard pointer.tokens.count >= depth, pointer.overlaps(self.pointer) else { return nil }
        return JSONPointer(Array(pointer.tokens.dropFirst(depth)))
    }

    package var filter: ChangesFilter.Within? {
        isWhole ? nil : ChangesFilter.Within(pointer: pointer, types: Set(types))
    }
}

package struct Collection: Sendable {
    package let entities: JSONPointer
    package let ids: JSONPointer
    /// Makes the UTF-8 JSON of an ID from the entity's key in the object.
    package let id: @Sendable (_ token: String) -> [UInt8]

    func lifted(into slice: [String]) -> Collection {
        Collection(entities: JSONPointer(slice + entities.tokens), ids: JSONPointer(slice + ids.tokens), id: id)
    }
}
