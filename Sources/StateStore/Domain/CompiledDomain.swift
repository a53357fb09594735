package import StateJSON

/// A fault in what a domain declares; the store does not start with it.
public struct DeclarationFault: Error, Sendable, CustomStringConvertible {
    /// One sentence a fault.
    public var description: String
}

/// A domain made ready: which action goes to which reducers, and where each part of the state stands.
package final class CompiledDomain<State: StateType>: Sendable {
    let layout: any LayoutNode<State>
    private let entries: [String: ActionEntry]
    /// The same, as every action that comes looks for its own.
    private let entriesByType: [ObjectIdentifier: ActionEntry]
    /// What is done with the actions of a entry, by its number.
    private let handlers: [ActionHandlers<State>]
    private let views: [String: ViewMemo<State>]
    /// The viewVersions of a state whose views nobody has asked for yet.
    let initialViewVersions: ViewVersions
    package let catalogue: Catalogue
    /// The state that a new history begins with.
    package let initial: State

    /// Reads a domain's declarations.
    ///
    /// - Throws: ``DeclarationFault`` for a forgotten or repeated part, or two Swift types under one action type.
    package init<D: Domain>(_ domain: D) throws(DeclarationFault) where D.State == State {
        var declaration = Declaration<State>()
        domain.reducer.declare(in: &declaration)
        var (layout, faults) = declaration.layout()
        var drafts: [String: ActionEntryDraft<State>] = [:]
        func entry(_ type: String, _ actionType: any Action.Type) -> ActionEntryDraft<State> {
            let entry = drafts[type] ?? ActionEntryDraft(actionType: actionType)
            if entry.actionType != actionType {
                faults.append("the action type \"\(type)\" is both \(entry.actionType) and \(actionType)")
            }
            if type.isEmpty || type.contains(where: { $0 == "," || $0.isWhitespace }) {
                faults.append("\(actionType) has the type \"\(type)\": one without commas and spaces is needed")
            }
            if type.hasPrefix(OwnTypes.prefix), !OwnTypes.handled.contains(type) {
                faults.append("\(actionType) has the type \"\(type)\": \(OwnTypes.prefix) is the store's own")
            }
            return entry
        }
        for handler in declaration.handlers {
            var entry = entry(handler.type, handler.actionType)
            entry.handlers.append(handler)
            entry.homes.insert(handler.scope)
            drafts[handler.type] = entry
        }
        for command in declaration.commands {
            var entry = entry(command.type, command.actionType)
            entry.commands.append(command)
            entry.homes.insert(command.scope)
            drafts[command.type] = entry
        }
        for effect in declaration.effects {
            var entry = entry(effect.type, effect.actionType)
            entry.effects.append(effect)
            entry.homes.insert(effect.scope)
            drafts[effect.type] = entry
        }
        for (type, entry) in drafts where !entry.commands.isEmpty && !(entry.handlers.isEmpty && entry.effects.isEmpty)
        {
            faults.append("\"\(type)\" is a command, so nothing of it is committed: no reducer or effect can handle it")
        }
        let views = Dictionary(declaration.views.map { ($0.name, $0) }) { first, _ in
            faults.append("there are two views named \"\(first.name)\"")
            return first
        }
        var initial = State()
        do throws(Rejection) {
            for handler in drafts[StoreInit.type]?.handlers ?? [] { try handler.apply(&initial, StoreInit()) }
        } catch { faults.append("\(StoreInit.type) is rejected: \(error.detail)") }
        if let fault = Self.encodingFault(layout, initial) { faults.append(fault) }
        guard faults.isEmpty else { throw DeclarationFault(description: faults.joined(separator: "; ")) }
        self.layout = layout
        let memos = views.values.sorted { $0.name < $1.name }.enumerated().map { ViewMemo($1, number: $0) }
        self.views = Dictionary(uniqueKeysWithValues: memos.map { ($0.view.name, $0) })
        initialViewVersions = Array(repeating: 0, count: memos.count)
        let ordered = drafts.sorted { $0.key < $1.key }
        let reads = memos.map { ActionEntry.Reads(view: $0.number, places: $0.view.reads) }
        let entries = ordered.enumerated().map { ActionEntry($1.key, $1.value, number: $0, reads: reads) }
        handlers = ordered.map { ActionHandlers($0.value) }
        self.entries = Dictionary(uniqueKeysWithValues: entries.map { ($0.type, $0) })
        entriesByType = Dictionary(uniqueKeysWithValues: entries.map { (ObjectIdentifier($0.actionType), $0) })
        self.initial = initial
        let open = self.entries.filter { !OwnTypes.handled.contains($0.key) }
        let whole = Scope(
            name: "", place: .root, actions: open.mapValues(\.actionType),
            views: Dictionary(uniqueKeysWithValues: views.keys.map { ($0, $0) }))
        let parts = declaration.slices.map { slice in
            let name = slice.joined(separator: ".")
            let own = open.filter { $0.value.homes.allSatisfy { $0.starts(with: slice) } }
            let inside = views.keys.filter { $0.hasPrefix(name + ".") }
            return Scope(
                name: name, place: JSONPointer(slice), actions: own.mapValues(\.actionType),
                views: Dictionary(uniqueKeysWithValues: inside.map { (String($0.dropFirst(name.count + 1)), $0) }))
        }
        catalogue = Catalogue(
            whole: whole, stores: parts, viewReads: views.mapValues(\.reads), collections: declaration.collections)
    }

    private static func encodingFault(_ layout: any LayoutNode<State>, _ initial: State) -> String? {
        do {
            _ = try layout.text(initial)
            return nil
        } catch { return "the initial state cannot be encoded: \(error)" }
    }

    /// What is done with an action; nil when nothing handles it.
    func entry(of action: any Action) -> ActionEntry? { entriesByType[ObjectIdentifier(type(of: action))] }

    /// What is done with actions of a type; nil when nothing handles them.
    func entry(ofType type: String) -> ActionEntry? { entries[type] }

    /// The Swift type of an action type, the store's own included; nil when nothing handles it.
    func actionType(of type: String) -> (any Action.Type)? { entries[type]?.actionType }

    /// Whether anything handles actions of a type.
    package func handles(_ type: String) -> Bool { entries[type] != nil }

    /// Whether a commit of this type sets effects off.
    package func startsEffects(_ type: String) -> Bool {
        entry(ofType: type).map { handlers[$0.number].effects.contains { $0.start != nil } } ?? false
    }

    /// Runs an action's reducers, in the order of their declaration.
    func reduce(_ state: inout State, _ action: any Action, by entry: ActionEntry) throws(Rejection) {
        for reduce in handlers[entry.number].reducers { try reduce(&state, action) }
    }

    /// The action that a command makes of the state, if any.
    func create(_ command: any Action, by entry: ActionEntry, in state: State) throws(Rejection) -> (any Action)? {
        for create in handlers[entry.number].creators {
            if let action = try create(state, command) { return action }
        }
        return nil
    }

    /// The effects that an action starts and ends.
    func effects(of entry: ActionEntry) -> [Declaration<State>.EffectHandler] { handlers[entry.number].effects }

    static func unknown(_ action: any Action) -> Rejection {
        Rejection("unknown-action", "no reducer handles \"\(type(of: action).type)\"", kind: .invalid)
    }

    /// The patch from a state to the one that some actions have made of it: only what their reducers can change is compared.
    ///
    /// - Parameter texts: the encodings that are known of the old state; afterwards, of the new one.
    /// - Throws: `EncodingError` for values that JSON has no number for.
    func patch(
        from old: State, to new: State, by entries: [ActionEntry], knowing texts: inout KnownTexts
    ) throws -> JSONPatch {
        var patch = JSONPatch(knowing: texts)
        let scopes = entries.count == 1 ? entries[0].scopes : ActionEntry.outermost(entries.flatMap(\.scopes))
        for scope in scopes { try layout.compare(old, new, scope: scope[...], into: &patch) }
        texts = patch.takeTexts()
        return patch
    }

    /// What stands at a selection, unless it is put together of more than `countMax` things.
    ///
    /// - Parameter viewVersions: when what each view reads last changed; nil where that is not known.
    func select(_ selection: Selection, in state: State, viewVersions: ViewVersions?, countMax: Int) throws
        -> SelectedValue
    {
        switch selection {
        case .pointer(let pointer): return try layout.select(state, pointer.tokens[...], countMax: countMax)
        case .view(let name):
            guard let view = views[name] else { return .nothing }
            // A view may look at everything.
            guard countMax == .max || layout.count(state) <= countMax else { return .overBudget }
            return .encoded(try view.text(in: state, viewVersion: viewVersions?[view.number]))
        }
    }

    /// The value of a view, or nil when there is none of this name.
    func view(_ name: String, in state: State, viewVersions: ViewVersions) -> (any Sendable)? {
        views[name].map { $0.value(in: state, viewVersion: viewVersions[$0.number]).value }
    }

    /// The number of a view among the viewVersions, or nil when there is none of this name.
    func number(ofView name: String) -> Int? { views[name]?.number }

    /// Notes which views read something that a commit has changedPointers, whatever its actions.
    func viewVersion(_ viewVersions: inout ViewVersions, changedPointers: [JSONPointer], at version: Version) {
        for memo in views.values
        where memo.view.reads.contains(where: { read in changedPointers.contains(where: read.overlaps) }) {
            viewVersions[memo.number] = version
        }
    }

    /// Notes which views read something that a commit has changedPointers.
    func viewVersion(
        _ viewVersions: inout ViewVersions, changedPointers: [JSONPointer], by entries: [ActionEntry],
        at version: Version
    ) {
        for entry in entries {
            for reads in entry.reads where changedPointers.contains(where: reads.overlap) {
                viewVersions[reads.view] = version
            }
        }
    }

    /// Reads a whole state, as ``Snapshot/whole()`` writes it.
    ///
    /// - Throws: ``JSONFault`` with the place where text and domain do not fit.
    package func state(from bytes: [UInt8]) throws(JSONFault) -> State {
        var state = initial
        try layout.read(JSONNode(JSONDocument(bytes, depthMax: 1000)), into: &state)
        return state
    }
}

/// A part of the state that can be read, watched and compared.
package enum Selection: Hashable, Sendable {
    /// The value at a place.
    case pointer(JSONPointer)
    /// A named view.
    case view(String)
}

extension CompiledDomain {
    /// The JSON of a whole state.
    ///
    /// - Throws: `EncodingError` for values that JSON has no number for.
    package func text(of state: State) throws -> [UInt8] { try layout.text(state) }

    /// The commit that extends a recorded state by what the domain has come to declare since, or nil when they are the same.
    package func upgrade(
        from recorded: [UInt8], to state: State, version: Version, epoch: Epoch, at time: Timestamp
    ) throws -> Commit? {
        let text = try layout.text(state)
        guard try JSONValue(parsing: recorded, depthMax: 1000) != JSONValue(parsing: text, depthMax: 1000) else {
            return nil
        }
        var patch = JSONPatch()
        patch.compare(recorded, text)
        return Commit(
            version: version, time: time, id: Cursor(epoch, version).description, types: [Commit.upgradeType],
            action: Array(#"{"type":"\#(Commit.upgradeType)"}"#.utf8), patch: patch.text,
            changedPointers: patch.changedPointers)
    }
}
