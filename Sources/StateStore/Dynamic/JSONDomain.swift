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

/// A domain whose state is JSON and whose actions have declarations instead of Swift types: what a program serves that is
/// not written in Swift.
package struct JSONDomain: Domain {
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
            guard isTable else { return [StatePart(.value, at: pointer, of: nil, schema: schema)] }
            let (ids, entities) = (pointer.appending("ids"), pointer.appending("entities"))
            return [
                StatePart(.members(besides: ["ids", "entities"]), at: pointer, of: nil, schema: schema),
                StatePart(
                    .entities(ids: ids), at: entities, of: nil,
                    schema: schema?[pointer: JSONPointer(["properties", "entities", "additionalProperties"])]),
                StatePart(.order, at: ids, of: nil),
            ]
        }
    }

    /// An action, and the part whose store dispatches it, or nil for the whole store only.
    package typealias Handled = (declaration: DeclaredAction.Declaration, part: JSONPointer?)

    /// Makes the state of an action; the cost is best that of what the action changes.
    package typealias Reduce =
        @Sendable (JSONTree, DeclaredAction, ReducerContext) throws(Rejection) -> JSONTree
    package typealias Look = @Sendable (JSONTree, ViewArguments) throws(ViewFault) -> [UInt8]

    /// Makes the state that a server goes on from; it throws the place where the recorded one does not fit, and why.
    package typealias Resume = @Sendable (JSONTree) throws(JSONFault) -> JSONTree

    /// Reads again what the domain is made of, for the state that it has now; it throws why it goes on with what it has.
    package typealias Reload = @Sendable (JSONTree) throws -> DomainReload

    package var layout: JSONLayout
    package var actions: [Handled]
    package var views: [View<JSONState>]
    package var reduce: Reduce
    /// The reason for which the domain can take no action now, or nil.
    package var failure: @Sendable () -> DomainFailure?
    /// The reason for which the domain cannot go on from a state that another program has recorded meanwhile, or nil.
    package var declines: @Sendable (JSONTree) -> DomainFailure?

    package init(
        _ layout: JSONLayout, actions: [Handled], views: [View<JSONState>],
        failure: @escaping @Sendable () -> DomainFailure?,
        declines: @escaping @Sendable (JSONTree) -> DomainFailure?, reduce: @escaping Reduce
    ) {
        (self.layout, self.actions, self.views) = (layout, actions, views)
        (self.failure, self.declines, self.reduce) = (failure, declines, reduce)
    }

    package var reducer: some Reducer<JSONState> {
        layout
        JSONHandlers(domain: self)
    }
}

package struct JSONLayout: Reducer {
    package typealias State = JSONState
    package let initial: JSONTree
    private let parts: [JSONDomain.Part]?
    private let resume: JSONDomain.Resume
    private let reload: JSONDomain.Reload

    /// Any JSON is a state where `parts` is nil.
    package init(
        initial: JSONTree, parts: [JSONDomain.Part]?, resume: @escaping JSONDomain.Resume = { $0 },
        reload: @escaping JSONDomain.Reload = { _ in .unchanged }
    ) {
        (self.initial, self.parts, self.resume, self.reload) = (initial, parts, resume, reload)
    }

    package func declare(in declaration: inout Declaration<JSONState>) {
        declaration.initial = JSONState(initial)
        declaration.hooks.takesAnyState = parts == nil
        declaration.whole = TreeCodec(parts: parts?.map(\.pointer))
        declaration.hooks.resume = { [resume] bytes throws(JSONFault) in
            .of(JSONState(try resume(JSONTree(try JSONValue(parsing: bytes, depthMax: 1000)))))
        }
        declaration.hooks.reload = { [reload] in try reload($0.state(as: JSONState.self).tree) }
        for part in parts ?? [] {
            if part.isStore, !part.pointer.tokens.isEmpty { declaration.slices.append(part.pointer.tokens) }
            declaration.parts += part.stateParts
        }
        if parts == nil { declaration.parts.append(StatePart(.value, at: .root, of: nil)) }
    }
}

private struct JSONHandlers: Reducer {
    let domain: JSONDomain

    func declare(in declaration: inout Declaration<JSONState>) {
        declaration.hooks.failure = domain.failure
        declaration.hooks.declines = { [declines = domain.declines] in declines($0.state(as: JSONState.self).tree) }
        for (handled, part) in domain.actions {
            declaration.handlers.append(
                .init(actionType: ActionType(handled), home: part?.tokens ?? []) {
                    [reduce = domain.reduce] (state, action, context) throws(Rejection) in
                    guard let action = action.declared else {
                        throw Rejection("type-confusion", "\(action.typeName) was dispatched as a Swift type")
                    }
                    state.tree = try reduce(state.tree, action, context)
                })
        }
        declaration.views += domain.views
    }
}

extension JSONDomain {
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
