package import StateJSON

/// A fault in what a domain declares; the store does not start with it.
public struct DeclarationFault: Error, Sendable, CustomStringConvertible {
    /// One sentence a fault.
    public var description: String
}

/// What a domain does with one type of action.
final class Route<State: Sendable>: Sendable {
    let type: String
    let actionType: any Action.Type
    let handlers: [Declaration<State>.Handler]
    /// Creators of other actions; the first that makes one speaks for all.
    let commands: [Declaration<State>.CommandHandler]
    let effects: [Declaration<State>.EffectHandler]
    let hasEffects: Bool
    /// Whether the action only makes other actions.
    let isCommand: Bool
    /// The slices in which anything handles it.
    let homes: Set<[String]>
    /// The slices that the handlers can change, none inside another.
    let scopes: [[String]]

    fileprivate init(_ type: String, _ draft: RouteDraft<State>) {
        self.type = type
        actionType = draft.actionType
        handlers = draft.handlers
        commands = draft.commands
        effects = draft.effects
        hasEffects = !effects.isEmpty
        isCommand = !commands.isEmpty
        homes = draft.homes
        scopes = Route.outermost(draft.handlers.map(\.scope))
    }

    /// Without repetitions, and without what lies inside another.
    static func outermost(_ scopes: [[String]]) -> [[String]] {
        var found: [[String]] = []
        for scope in scopes where !found.contains(scope) {
            if !scopes.contains(where: { $0.count < scope.count && scope.starts(with: $0) }) { found.append(scope) }
        }
        return found
    }
}

private struct RouteDraft<State: Sendable> {
    let actionType: any Action.Type
    var handlers: [Declaration<State>.Handler] = []
    var commands: [Declaration<State>.CommandHandler] = []
    var effects: [Declaration<State>.EffectHandler] = []
    var homes: Set<[String]> = []
}

/// A domain made ready: which action goes to which reducers, and where each part of the state stands.
package final class Model<State: StateType>: Sendable {
    let place: any Place<State>
    private let routes: [String: Route<State>]
    /// The same, as every action that comes looks for its own.
    private let routesByType: [ObjectIdentifier: Route<State>]
    private let views: [String: ViewMemo<State>]
    package let catalogue: Catalogue
    /// The state that a new history begins with.
    package let initial: State

    /// Reads a domain's declarations.
    ///
    /// - Throws: ``DeclarationFault`` for a forgotten or repeated part, or two Swift types under one action type.
    package init<D: Domain>(_ domain: D) throws(DeclarationFault) where D.State == State {
        var declaration = Declaration<State>()
        domain.reducer.declare(in: &declaration)
        var (place, faults) = declaration.place()
        var drafts: [String: RouteDraft<State>] = [:]
        func route(_ type: String, _ actionType: any Action.Type) -> RouteDraft<State> {
            let route = drafts[type] ?? RouteDraft(actionType: actionType)
            if route.actionType != actionType {
                faults.append("the action type \"\(type)\" is both \(route.actionType) and \(actionType)")
            }
            if type.isEmpty || type.contains(where: { $0 == "," || $0.isWhitespace }) {
                faults.append("\(actionType) has the type \"\(type)\": one without commas and spaces is needed")
            }
            if type.hasPrefix(OwnTypes.prefix), !OwnTypes.handled.contains(type) {
                faults.append("\(actionType) has the type \"\(type)\": \(OwnTypes.prefix) is the store's own")
            }
            return route
        }
        for handler in declaration.handlers {
            var route = route(handler.type, handler.actionType)
            route.handlers.append(handler)
            route.homes.insert(handler.scope)
            drafts[handler.type] = route
        }
        for command in declaration.commands {
            var route = route(command.type, command.actionType)
            route.commands.append(command)
            route.homes.insert(command.scope)
            drafts[command.type] = route
        }
        for effect in declaration.effects {
            var route = route(effect.type, effect.actionType)
            route.effects.append(effect)
            route.homes.insert(effect.scope)
            drafts[effect.type] = route
        }
        for (type, route) in drafts where !route.commands.isEmpty && !(route.handlers.isEmpty && route.effects.isEmpty)
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
        if let fault = Self.encodingFault(place, initial) { faults.append(fault) }
        guard faults.isEmpty else { throw DeclarationFault(description: faults.joined(separator: "; ")) }
        self.place = place
        let routes = Dictionary(uniqueKeysWithValues: drafts.map { ($0, Route($0, $1)) })
        self.routes = routes
        routesByType = Dictionary(uniqueKeysWithValues: routes.values.map { (ObjectIdentifier($0.actionType), $0) })
        self.views = views.mapValues(ViewMemo.init)
        self.initial = initial
        let open = routes.filter { !OwnTypes.handled.contains($0.key) }
        let reads = views.mapValues(\.reads)
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
        catalogue = Catalogue(whole: whole, stores: parts, viewReads: reads, collections: declaration.collections)
    }

    private static func encodingFault(_ place: any Place<State>, _ initial: State) -> String? {
        do {
            _ = try place.text(initial)
            return nil
        } catch { return "the initial state cannot be encoded: \(error)" }
    }

    /// What is done with an action; nil when nothing handles it.
    func route(of action: any Action) -> Route<State>? { routesByType[ObjectIdentifier(type(of: action))] }

    /// What is done with actions of a type; nil when nothing handles them.
    func route(ofType type: String) -> Route<State>? { routes[type] }

    /// The Swift type of an action type, the store's own included; nil when nothing handles it.
    func actionType(of type: String) -> (any Action.Type)? { routes[type]?.actionType }

    /// Whether anything handles actions of a type.
    package func handles(_ type: String) -> Bool { routes[type] != nil }

    /// Whether a commit of this type sets effects off.
    package func startsEffects(_ type: String) -> Bool { routes[type]?.effects.contains { $0.start != nil } == true }

    /// Runs an action's reducers, in the order of their declaration.
    func reduce(_ state: inout State, _ action: any Action) throws(Rejection) {
        guard let route = route(of: action) else { throw Self.unknown(action) }
        try route.reduce(&state, action)
    }

    static func unknown(_ action: any Action) -> Rejection {
        Rejection("unknown-action", "no reducer handles \"\(type(of: action).type)\"", kind: .invalid)
    }

    /// The patch from a state to the one that some actions have made of it: only what their reducers can change is compared.
    ///
    /// - Parameter texts: the encodings that are known of the old state; afterwards, of the new one.
    /// - Throws: `EncodingError` for values that JSON has no number for.
    func patch(
        from old: State, to new: State, by routes: [Route<State>], knowing texts: inout KnownTexts
    ) throws -> JSONPatch {
        var patch = JSONPatch(knowing: texts)
        let scopes = routes.count == 1 ? routes[0].scopes : Route<State>.outermost(routes.flatMap(\.scopes))
        for scope in scopes { try place.compare(old, new, scope: scope[...], into: &patch) }
        texts = patch.takeTexts()
        return patch
    }

    /// What stands at a selection, unless it is put together of more than `countMax` things.
    ///
    /// - Parameter stamps: when what each view reads last changed; nil where that is not known.
    func select(_ selection: Selection, in state: State, stamps: ViewStamps?, countMax: Int) throws -> Selected {
        switch selection {
        case .pointer(let pointer): return try place.select(state, pointer.tokens[...], countMax: countMax)
        case .view(let name):
            guard let view = views[name] else { return .nothing }
            // A view may look at everything.
            guard countMax == .max || place.count(state) <= countMax else { return .tooMuch }
            return .made(try view.text(in: state, stamp: stamps.map { $0[name] ?? 0 }))
        }
    }

    /// The value of a view, or nil when there is none of this name.
    func view(_ name: String, in state: State, stamps: ViewStamps) -> (any Sendable)? {
        views[name]?.value(in: state, stamp: stamps[name] ?? 0).value
    }

    /// Notes which views read something that a commit has touched.
    func stamp(_ stamps: inout ViewStamps, touched: [JSONPointer], at version: Version) {
        for (name, memo) in views where memo.view.reads.contains(where: { touched.contains(where: $0.overlaps) }) {
            stamps[name] = version
        }
    }

    /// Reads a whole state, as ``Snapshot/whole()`` writes it.
    ///
    /// - Throws: ``JSONFault`` with the place where text and domain do not fit.
    package func state(from bytes: [UInt8]) throws(JSONFault) -> State {
        var state = initial
        try place.read(JSONNode(JSONDocument(bytes, depthMax: 1000)), into: &state)
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

extension Model {
    /// The JSON of a whole state.
    ///
    /// - Throws: `EncodingError` for values that JSON has no number for.
    package func text(of state: State) throws -> [UInt8] { try place.text(state) }

    /// The commit that extends a recorded state by what the domain has come to declare since, or nil when they are the same.
    package func upgrade(
        from recorded: [UInt8], to state: State, version: Version, epoch: Epoch, at time: Timestamp
    ) throws -> Commit? {
        let text = try place.text(state)
        guard try JSONValue(parsing: recorded, depthMax: 1000) != JSONValue(parsing: text, depthMax: 1000) else {
            return nil
        }
        var patch = JSONPatch()
        patch.compare(recorded, text)
        return Commit(
            version: version, time: time, id: Cursor(epoch, version).description, types: [Commit.upgradeType],
            action: Array(#"{"type":"\#(Commit.upgradeType)"}"#.utf8), patch: patch.text, touched: patch.touched)
    }
}

extension Route {
    /// Runs an action's reducers, in the order of their declaration.
    func reduce(_ state: inout State, _ action: any Action) throws(Rejection) {
        for handler in handlers { try handler.apply(&state, action) }
    }

    /// The action that a command makes of the state, if any.
    func create(_ command: any Action, in state: State) throws(Rejection) -> (any Action)? {
        for handler in commands {
            if let action = try handler.create(state, command) { return action }
        }
        return nil
    }
}
