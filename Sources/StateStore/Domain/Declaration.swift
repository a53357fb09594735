package import StateJSON

/// The declarations of the reducers of a state, collected before the domain is compiled.
public struct Declaration<State: Sendable>: Sendable {
    typealias Reduce = Box<State>.Reduce

    struct Handler: Sendable {
        enum Work: Sendable {
            case reduce(Reduce)
            case create(@Sendable (State, any Action) throws(Rejection) -> (any Action)?)
            /// The start is nil for a handler that only cancels an effect.
            case effect(id: String?, start: (@Sendable (any Action, State) -> EffectWork?)?)
        }

        /// Nil for every action.
        let actionType: ActionType?
        var scope: [String] = []
        /// The slice whose store dispatches the action, if it is not `scope`.
        var home: [String]?
        let work: Work
    }

    var handlers: [Handler] = []
    var views: [View<State>] = []
    var slices: [[String]] = []
    var collections: [Collection] = []
    /// The parts that are no slices; empty for a state that is `Codable` as a whole.
    var parts: [StatePart] = []
    var members: [SliceMember<State>] = []
    var whole: (any PartCodec<State>)?
    var initial: State?
    var hooks = DomainHooks()
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

    /// Adds what a part of the state declares, which is a slice, or the state itself without a name.
    mutating func add<Part: Sendable>(
        _ part: Declaration<Part>, in slice: [String], get: @escaping @Sendable (State) -> Part,
        reducer: (@escaping Declaration<Part>.Reduce) -> Reduce
    ) {
        slices += part.slices.map { slice + $0 }
        collections += part.collections.map { $0.lifted(into: slice) }
        parts += part.allParts.map { $0.lifted(into: slice) }
        let prefix = slice.map { $0 + "." }.joined()
        handlers += part.handlers.map { handler in
            let work: Handler.Work
            switch handler.work {
            case .reduce(let reduce): work = .reduce(reducer(reduce))
            case .create(let create):
                work = .create { (state, action) throws(Rejection) in try create(get(state), action) }
            case .effect(let id, let start):
                let start = start.map { start in { @Sendable (action, state) in start(action, get(state)) } }
                work = .effect(id: id.map { prefix + $0 }, start: start)
            }
            return Handler(
                actionType: handler.actionType, scope: slice + handler.scope, home: handler.home, work: work)
        }
        for view in part.views {
            let (view, unread) = view.resolved(by: part.members)
            faults += unread
            views.append(view.lifted(into: slice, named: prefix + view.name, get))
        }
    }

    var allParts: [StatePart] {
        members.isEmpty && whole == nil
            ? [StatePart(kind: .value, pointer: .root, valueType: State.self as? any (Decodable & Sendable).Type)]
            : parts
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

struct BoxCodec<Codec: PartCodec>: PartCodec where Codec.Part: Sendable {
    let codec: Codec

    func tree(of box: StateBox, after earlier: JSONTree?, _ encoder: JSONEncodingSession) throws -> JSONTree {
        try codec.tree(of: value(of: box), after: earlier, encoder)
    }

    func step(at place: ArraySlice<String>) -> TreeStep<StateBox> { Box.step(codec.step(at: place)) }

    func read(_ json: JSONNode, into box: inout StateBox) throws(JSONFault) {
        var state = value(of: box)
        try codec.read(json, into: &state)
        box = .of(state)
    }

    func read(_ tree: JSONTree, after earlier: JSONTree, into box: inout StateBox) throws -> JSONTree {
        var state = value(of: box)
        let tree = try codec.read(tree, after: earlier, into: &state)
        box = .of(state)
        return tree
    }

    @inline(__always)
    private func value(of box: StateBox) -> Codec.Part { box.box(of: Codec.Part.self).value }
}

extension Declaration where State: StateType {
    func boxed() -> Declaration<StateBox> {
        var boxed = Declaration<StateBox>()
        let (codec, faults) = codec()
        boxed.faults = faults
        boxed.whole = Self.boxed(codec)
        boxed.initial = .of(initial ?? State())
        boxed.hooks = hooks
        boxed.add(self, in: [], get: { $0.state() }, reducer: Box.reducer)
        return boxed
    }

    private static func boxed(_ codec: some PartCodec<State>) -> any PartCodec<StateBox> { BoxCodec(codec: codec) }
}

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
