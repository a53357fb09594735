package import StateJSON

package final class ActionEntry: Sendable {
    package let type: String
    /// An array of just ``type``, which a commit of one action uses without making its own.
    let types: [String]
    package let actionType: ActionType
    let number: Int
    let hasEffects: Bool
    let isCommand: Bool
    let validate: (@Sendable (any Action) throws(Rejection) -> Void)?
    let reduce: Declaration<StateBox>.Reduce
    let step: TreeStep<StateBox>
    let creators: [@Sendable (StateBox, any Action) throws(Rejection) -> (any Action)?]
    let effects: [ActionEntryDraft.Effect]
    /// The slices that declare a handler, a command or an effect for the action type.
    let homes: Set<[String]>
    /// The slices that the handlers can change, none inside another.
    let scopes: [[String]]
    let reads: [Reads]

    struct Reads: Sendable {
        let view: Int
        let pointers: [JSONPointer]

        /// Whether the view reads all that the reducers can change, so that each of their changes concerns it.
        var isOfAll = false

        /// Where the action `isAlone`, nothing else has changed something.
        func overlap(_ changed: [JSONPointer], isAlone: Bool = false) -> Bool {
            if isOfAll, isAlone { return !changed.isEmpty }
            return pointers.contains { pointer in changed.contains { pointer.overlaps($0) } }
        }

        fileprivate func of(_ scopes: [[String]]) -> Reads? {
            guard overlap(scopes.map { JSONPointer($0) }) else { return nil }
            let isOfAll = scopes.allSatisfy { scope in
                pointers.contains { $0.tokens.count <= scope.count && $0.overlaps(JSONPointer(scope)) }
            }
            return Reads(view: view, pointers: pointers, isOfAll: isOfAll)
        }
    }

    init(
        _ type: String, _ draft: ActionEntryDraft, of codec: any PartCodec<StateBox>, number: Int, reads: [Reads]
    ) {
        self.type = type
        types = [type]
        actionType = draft.actionType
        self.number = number
        hasEffects = !draft.effects.isEmpty
        isCommand = !draft.creators.isEmpty
        validate =
            if let type = actionType.type as? any ValidatedAction.Type { Self.validator(of: type) } else { nil }
        homes = draft.homes
        let scopes = OwnTypes.scheduling.contains(type) ? [] : ActionEntry.outermost(draft.reducers.map(\.scope))
        self.scopes = scopes
        self.reads = reads.compactMap { $0.of(scopes) }
        let reducers = draft.reducers
        // Nearly every action has one reducer; a function that comes from a list is wrapped once more.
        if reducers.count == 1, case .reduce(let only) = reducers[0].work {
            reduce = only
        } else {
            reduce = { (state, action, context) throws(Rejection) in
                for reducer in reducers {
                    if case .reduce(let apply) = reducer.work { try apply(&state, action, context) }
                }
            }
        }
        if scopes.count == 1 {
            step = codec.step(at: scopes[0][...])
        } else {
            let steps = scopes.map { codec.step(at: $0[...]) }
            step = { state, tree, encoder, patch in
                try steps.reduce(tree) { tree, step in try step(state, tree, encoder, &patch) }
            }
        }
        creators = draft.creators
        effects = draft.effects
    }

    /// It asks for the type itself, because to look for a protocol's conformance takes long.
    private static func validator<Validated: ValidatedAction>(
        of type: Validated.Type
    ) -> @Sendable (any Action) throws(Rejection) -> Void {
        { action throws(Rejection) in try (action as? Validated)?.validate() }
    }

    static func outermost(_ scopes: [[String]]) -> [[String]] {
        var found: [[String]] = []
        for scope in scopes where !found.contains(scope) {
            if !scopes.contains(where: { $0.count < scope.count && scope.starts(with: $0) }) { found.append(scope) }
        }
        return found
    }
}

struct ActionEntryDraft {
    let actionType: ActionType
    var reducers: [Declaration<StateBox>.Handler] = []
    var creators: [@Sendable (StateBox, any Action) throws(Rejection) -> (any Action)?] = []
    var effects: [Effect] = []
    var homes: Set<[String]> = []

    typealias Effect = (id: String?, start: (@Sendable (any Action, StateBox) -> EffectWork?)?)

    func takesAnyHandler(_ type: String) -> Bool { creators.isEmpty && !type.hasPrefix(OwnTypes.prefix) }
}

/// Entries by the bytes of the names of their types: a client's text is looked up without a string of it.
package struct ActionTable: Sendable {
    /// A power of two, at most a quarter of it in use.
    private var slots: [ActionEntry?]

    init(_ entries: [ActionEntry]) {
        slots = Array(repeating: nil, count: 1 << (Int.bitWidth - (4 * entries.count + 3).leadingZeroBitCount))
        for entry in entries { slots[entry.type.withBytes { place(of: $0).slot }] = entry }
    }

    package subscript(name: UnsafeBufferPointer<UInt8>) -> ActionEntry? { place(of: name).entry }

    package subscript(name: String) -> ActionEntry? { name.withBytes { self[$0] } }

    private func place(of name: UnsafeBufferPointer<UInt8>) -> (slot: Int, entry: ActionEntry?) {
        // FNV-1a.
        var hash: UInt32 = 2_166_136_261
        for byte in name { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
        var slot = Int(hash) & (slots.count - 1)
        while let entry = slots[slot] {
            if entry.type.withBytes(name.hasBytes) { return (slot, entry) }
            slot = (slot + 1) & (slots.count - 1)
        }
        return (slot, nil)
    }
}

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
