internal import StateJSON

/// The declarations of the reducers of a state, collected before the domain is compiled.
public struct Declaration<State: Sendable>: Sendable {
    struct Handler: Sendable {
        /// Nil for every action.
        let type: String?
        let actionType: ActionType?
        var scope: [String]
        /// The slice whose store dispatches the action, if it is not `scope`.
        var home: [String]?
        let apply: @Sendable (inout State, any Action, ReducerContext) throws(Rejection) -> Void
    }

    var handlers: [Handler] = []
    var commands: [CommandHandler] = []
    var effects: [EffectHandler] = []
    var views: [View<State>] = []
    var slices: [[String]] = []
    var collections: [Collection] = []
    /// The parts that are no slices; empty for a state that is `Codable` as a whole.
    var parts: [StatePart] = []
    var members: [SliceMember<State>] = []
    var whole: (any PartCodec<State>)?
    var initial: State?
    /// Makes the state that a server goes on from of a recorded one, if reading it is not enough.
    var resume: (@Sendable ([UInt8]) throws(JSONFault) -> State)?
    var reload: (@Sendable (State) throws -> DomainReload)?
    var failure: @Sendable () -> DomainFailure? = { nil }
    /// The reason for which the domain cannot go on from a state that another program has recorded meanwhile, or nil.
    var declines: (@Sendable (State) -> DomainFailure?)?
    /// Whether any JSON is a state of the domain, also what another domain has recorded.
    var takesAnyState = false
    var offsets: Set<Int> = []
    var faults: [String] = []

    init() {}

    mutating func add<Part: Sendable>(
        _ name: String, _ codec: some PartCodec<Part>, at path: any WritableKeyPath<State, Part> & Sendable
    ) {
        if members.contains(where: { $0.name == name }) {
            faults.append("\(State.self) declares \"\(name)\" twice")
        }
        members.append(SliceMember(name, path, codec))
        if let offset = MemoryLayout<State>.offset(of: path) { offsets.insert(offset) }
    }
}

extension Declaration {
    var allParts: [StatePart] {
        members.isEmpty && whole == nil
            ? [StatePart(.value, at: .root, of: State.self as? any (Decodable & Sendable).Type)] : parts
    }

    func resolvedViews() -> (views: [View<State>], faults: [String]) {
        let resolved = views.map { $0.resolved(by: members) }
        return (resolved.map(\.view), resolved.flatMap(\.faults))
    }

    func codec() -> (any PartCodec<State>, [String]) {
        if let whole { return (whole, faults) }
        if members.isEmpty {
            guard let whole = Self.wholeCodec(State.self) else {
                return (
                    SliceCodec<State>(members: []),
                    faults + [
                        "\(State.self) is not Codable and declares no Slice, Entities or Field: declare its parts"
                    ]
                )
            }
            return (whole, faults)
        }
        return (SliceCodec(members: members), faults + forgotten)
    }

    private static func wholeCodec(_ type: State.Type) -> (any PartCodec<State>)? {
        func codec<Value: Codable & Sendable>(_ type: Value.Type) -> any PartCodec { ValueCodec<Value>() }
        guard let codable = type as? any (Codable & Sendable).Type else { return nil }
        return codec(codable) as? any PartCodec<State>
    }

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
