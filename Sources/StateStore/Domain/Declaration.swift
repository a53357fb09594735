internal import StateJSON

/// What the reducers of a state declare, collected before the domain is compiled.
public struct Declaration<State: Sendable>: Sendable {
    struct Handler: Sendable {
        /// The type of the handled action; nil for a handler of every action.
        let type: String?
        let actionType: ActionType?
        /// The slice that the handler can change, as names from the root.
        var scope: [String]
        /// The slice whose store dispatches the action; nil for that of `scope`.
        var home: [String]?
        let apply: @Sendable (inout State, any Action, ReducerContext) throws(Rejection) -> Void
    }

    var handlers: [Handler] = []
    var commands: [CommandHandler] = []
    var effects: [EffectHandler] = []
    var views: [View<State>] = []
    /// The slices, as names from the root.
    var slices: [[String]] = []
    /// The entity tables.
    var collections: [Collection] = []
    /// The parts that are no slices; empty for a state that is `Codable` as a whole.
    var parts: [StatePart] = []
    var members: [LayoutField<State>] = []
    /// The layout of a state that is not made of members.
    var whole: (any LayoutNode<State>)?
    /// The initial state, where it is not the one that the type makes.
    var initial: State?
    /// Makes the state that a server goes on from of a recorded one; nil where reading it is enough.
    var resume: (@Sendable ([UInt8]) throws(JSONFault) -> State)?
    /// Reads again what the domain is made of, for the state that it has now; nil where it is made of Swift.
    var reload: (@Sendable (State) throws -> DomainReload)?
    /// Why the domain can take no action now.
    var failure: @Sendable () -> DomainFailure? = { nil }
    /// Why the domain cannot go on from a state that another program has recorded meanwhile; nil where it can from any.
    var declines: (@Sendable (State) -> DomainFailure?)?
    /// Whether any JSON is a state of the domain, also what another domain has recorded.
    var takesAnyState = false
    /// The memory offsets of the declared parts, by which the declaration finds undeclared stored properties.
    var offsets: Set<Int> = []
    /// The faults of the declaration, for which the store does not start.
    var faults: [String] = []

    init() {}

    mutating func add<Part: Sendable>(
        _ name: String, _ node: some LayoutNode<Part>, at path: any WritableKeyPath<State, Part> & Sendable
    ) {
        if members.contains(where: { $0.name == name }) {
            faults.append("\(State.self) declares \"\(name)\" twice")
        }
        members.append(LayoutField(name, path, node))
        if let offset = MemoryLayout<State>.offset(of: path) { offsets.insert(offset) }
    }
}

extension Declaration {
    /// The parts of the state, with those of its slices.
    var allParts: [StatePart] {
        members.isEmpty && whole == nil
            ? [StatePart(.value, at: .root, of: State.self as? any (Decodable & Sendable).Type)] : parts
    }

    /// The views with the pointers of all that they read, and a fault for each part that is not declared.
    func resolvedViews() -> (views: [View<State>], faults: [String]) {
        let resolved = views.map { $0.resolved(by: members) }
        return (resolved.map(\.view), resolved.flatMap(\.faults))
    }

    /// The root node of the state's layout, and the faults of the declaration.
    func layout() -> (any LayoutNode<State>, [String]) {
        if let whole { return (whole, faults) }
        if members.isEmpty {
            guard let whole = Self.wholeNode(State.self) else {
                return (
                    ObjectNode<State>(members: []),
                    faults + [
                        "\(State.self) is not Codable and declares no Slice, Entities or Field: declare its parts"
                    ]
                )
            }
            return (whole, faults)
        }
        return (ObjectNode(members: members), faults + forgotten)
    }

    /// The node for a state that is `Codable` as a whole; nil for another state.
    private static func wholeNode(_ type: State.Type) -> (any LayoutNode<State>)? {
        func node<Value: Codable & Sendable>(_ type: Value.Type) -> any LayoutNode { ValueNode<Value>() }
        guard let codable = type as? any (Codable & Sendable).Type else { return nil }
        return node(codable) as? any LayoutNode<State>
    }

    /// A fault for each stored property that no reducer declares, which a restart would lose.
    private var forgotten: [String] {
        guard let initial = (State.self as? any StateType.Type)?.init() else { return [] }
        var offset = 0
        return Mirror(reflecting: initial).children.compactMap { child in
            let (size, alignment) = Self.layout(of: child.value)
            offset = (offset + alignment - 1) / alignment * alignment
            defer { offset += size }
            guard !offsets.contains(offset), size > 0 else { return nil }
            return "\(State.self).\(child.label ?? "?") is not declared: add a Slice, Entities or Field for it"
        }
    }

    /// The size and alignment of a stored property: Swift lays properties out in order, each at its alignment.
    private static func layout(of value: Any) -> (size: Int, alignment: Int) {
        func measure<Value>(_ type: Value.Type) -> (size: Int, alignment: Int) {
            (MemoryLayout<Value>.size, MemoryLayout<Value>.alignment)
        }
        return _openExistential(type(of: value) as Any.Type, do: measure)
    }
}
