package import StateJSON

package struct DomainFailure: Error, Sendable {
    package var code: String
    package var detail: String

    package init(_ code: String, _ detail: String) { (self.code, self.detail) = (code, detail) }
}

package enum DomainReload: Sendable {
    case unchanged
    /// The domain works with it from the next turn on.
    case taken
    /// It declares another domain, which can go on from the state: a start takes it.
    case needsRestart
}

/// The hooks of a domain without Swift types: see ``JSONLayout``.
package struct DomainHooks: Sendable {
    /// Makes the state that a server goes on from; it throws the place where the recorded one does not fit, and why.
    ///
    /// Nil if reading the recorded state is enough.
    package var resume: (@Sendable (JSONTree) throws(JSONFault) -> JSONTree)?
    /// Reads again what the domain is made of, for the state that it has now; it throws why it goes on with what it has.
    package var reload: @Sendable (JSONTree) throws -> DomainReload = { _ in .unchanged }
    /// The reason for which the domain can take no action now, or nil.
    package var failure: @Sendable () -> DomainFailure? = { nil }
    /// The reason for which the domain cannot go on from a state that another program has recorded meanwhile, or nil.
    package var declines: @Sendable (JSONTree) -> DomainFailure? = { _ in nil }
    /// Whether any JSON is a state of the domain, also what another domain has recorded.
    var takesAnyState = false

    package init() {}
}

/// The state of a domain that is JSON, whose actions may have declarations instead of Swift types: what a program serves
/// that is not written in Swift.
package struct JSONLayout: Reducer {
    package struct Part: Sendable {
        package var pointer: JSONPointer
        /// The JSON Schema of the part; nil for any JSON.
        package var schema: JSONValue?
        package var isStore: Bool
        /// Whether the part is a table, `{ids, entities}`, whose state stream tells each entity by itself.
        package var isTable: Bool

        package init(_ pointer: JSONPointer, schema: JSONValue? = nil, isStore: Bool = true, isTable: Bool = false) {
            (self.pointer, self.schema, self.isStore, self.isTable) = (pointer, schema, isStore, isTable)
        }

        var stateParts: [StatePart] {
            guard isTable else { return [StatePart(kind: .value, pointer: pointer, schema: schema)] }
            let (ids, entities) = (pointer.appending("ids"), pointer.appending("entities"))
            return [
                StatePart(kind: .members(besides: ["ids", "entities"]), pointer: pointer, schema: schema),
                StatePart(
                    kind: .entities(ids: ids), pointer: entities,
                    schema: schema?[pointer: JSONPointer(["properties", "entities", "additionalProperties"])]),
                StatePart(kind: .order, pointer: ids),
            ]
        }
    }

    package typealias State = JSONTree

    private let initial: JSONTree
    private let parts: [Part]?
    private let hooks: DomainHooks

    /// Any JSON is a state where `parts` is nil.
    package init(initial: JSONTree, parts: [Part]?, hooks: DomainHooks = DomainHooks()) {
        (self.initial, self.parts, self.hooks) = (initial, parts, hooks)
    }

    package func declare(in declaration: inout Declaration<JSONTree>) {
        declaration.initial = initial
        declaration.whole = TreeCodec(parts: parts?.map(\.pointer))
        declaration.hooks = hooks
        declaration.hooks.takesAnyState = parts == nil
        for part in parts ?? [] {
            if part.isStore, !part.pointer.tokens.isEmpty { declaration.slices.append(part.pointer.tokens) }
            declaration.parts += part.stateParts
        }
        if parts == nil { declaration.parts.append(StatePart(kind: .value, pointer: .root)) }
    }

    /// Fits a recorded state to the parts that a domain has: new ones begin with their initial values.
    ///
    /// - Throws: ``JSONFault`` for a part that the domain does not have, unless `dropped` names it.
    package static func fit(
        _ recorded: JSONTree, to parts: [JSONPointer], initial: JSONTree, dropping dropped: [JSONPointer]
    ) throws(JSONFault) -> JSONTree {
        var state = recorded
        for part in dropped { state = state.applying("remove", at: part.tokens[...], nil) ?? state }
        state = try state.with(parts, from: initial)
        if let unknown = state.firstPlace(outside: parts) {
            let names = parts.map(\.description).joined(separator: ", ")
            throw JSONFault(
                .mismatch, at: unknown,
                "the model no longer has this slice; it has \(names). --drop-slice \(unknown.tokens.first ?? "NAME") drops the value, and another version with migrate moves it"
            )
        }
        return state
    }
}

/// Handles an action without a Swift type.
package struct OnDeclared: Reducer {
    package typealias State = JSONTree
    /// Makes the state of an action; the cost is best that of what the action changes.
    package typealias Reduce =
        @Sendable (JSONTree, DeclaredAction, ReducerContext) throws(Rejection) -> JSONTree

    private let handled: DeclaredAction.Declaration
    private let part: JSONPointer?
    private let reduce: Reduce

    /// The store of the `part` dispatches the action; nil for the whole store only.
    package init(
        _ handled: DeclaredAction.Declaration, of part: JSONPointer?, reduce: @escaping Reduce
    ) {
        (self.handled, self.part, self.reduce) = (handled, part, reduce)
    }

    package func declare(in declaration: inout Declaration<JSONTree>) {
        let work = Declaration<JSONTree>.Handler.Work.reduce { [reduce] (state, action, context) throws(Rejection) in
            guard let action = action.declared else {
                throw Rejection("type-confusion", "\(action.typeName) was dispatched as a Swift type")
            }
            state = try reduce(state, action, context)
        }
        declaration.handlers.append(.init(actionType: ActionType(handled), home: part?.tokens ?? [], work: work))
    }
}

extension JSONTree: StateType {
    package convenience init() { self.init(text: Array("{}".utf8)) }
}

struct TreeCodec: PartCodec {
    let parts: [JSONPointer]?

    func tree(of state: JSONTree, after _: JSONTree?, _: JSONEncodingSession) -> JSONTree { state }

    /// A part that the JSON does not have keeps its initial value, so that a domain can declare new parts.
    ///
    /// A part that the domain does not declare stays: a past state may have had it.
    func read(_ node: JSONNode, into state: inout JSONTree) throws(JSONFault) {
        state = try JSONTree(node.value).with(parts ?? [], from: state)
    }

    func read(_ tree: JSONTree, after _: JSONTree, into state: inout JSONTree) -> JSONTree {
        state = tree
        return tree
    }
}

extension JSONTree {
    package func adding(_ value: JSONTree, at pointer: JSONPointer) -> JSONTree? {
        var changed = self
        for length in 1..<max(1, pointer.tokens.count) where changed.tree(at: pointer.tokens[..<length]) == nil {
            guard let wider = changed.applying("add", at: pointer.tokens[..<length], .emptyObject) else { return nil }
            changed = wider
        }
        return changed.applying("add", at: pointer.tokens[...], value)
    }

    func with(_ parts: [JSONPointer], from initial: JSONTree) throws(JSONFault) -> JSONTree {
        var tree = self
        for part in parts where tree.tree(at: part.tokens[...]) == nil {
            guard let value = initial.tree(at: part.tokens[...]), let wider = tree.adding(value, at: part) else {
                throw JSONFault(.mismatch, at: part, "expected an object above the part of this name")
            }
            tree = wider
        }
        return tree
    }

    func firstPlace(outside parts: [JSONPointer], at place: JSONPointer = .root) -> JSONPointer? {
        if parts.contains(place) { return nil }
        guard isArray == false, parts.contains(where: { $0.overlaps(place) }) else { return place }
        for (name, value) in members {
            if let found = value.firstPlace(outside: parts, at: place.appending(name)) { return found }
        }
        return nil
    }
}
