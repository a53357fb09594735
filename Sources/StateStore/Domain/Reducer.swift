internal import StateJSON

/// A state as the store begins with it.
public protocol StateType: Sendable {
    /// The initial state.
    init()
}

/// A state, the actions that change it, and the reducers that do.
public protocol Domain: Sendable {
    /// The state. A struct whose parts are declared in ``reducer-swift.property``, or one that is `Codable` as a whole.
    associatedtype State: StateType
    /// What ``reducer-swift.property`` builds.
    associatedtype Body: Reducer<State>

    /// The slices, tables and fields of the state, a handler for each type of action, and views.
    @ReducerBuilder<State> var reducer: Body { get }
}

/// Something that takes part in reducing a state: a handler, a slice, a table, a field, or several of them.
public protocol Reducer<State>: Sendable {
    /// The state that it reduces.
    associatedtype State: Sendable

    /// Enters what this reducer handles and where its parts stand in the JSON.
    func declare(in declaration: inout Declaration<State>)
}

/// What the reducers of a state have declared.
public struct Declaration<State: Sendable>: Sendable {
    struct Handler: Sendable {
        let type: String
        let actionType: any Action.Type
        /// The slice that it belongs to: names from the root.
        var scope: [String]
        let apply: @Sendable (inout State, any Action) throws(Rejection) -> Void
    }

    var handlers: [Handler] = []
    var commands: [CommandHandler] = []
    var effects: [EffectHandler] = []
    var views: [View<State>] = []
    /// The slices, as names from the root.
    var slices: [[String]] = []
    /// The tables.
    var collections: [Collection] = []
    var members: [LayoutField<State>] = []
    /// Where the declared parts lie in the state's memory, to find those that were forgotten.
    var offsets: Set<Int> = []
    /// Faults of the declaration itself, found at start.
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

/// Handles one type of action.
///
/// ```swift
/// On(Add.self) { state, action in
///     guard state.tasks[action.id] == nil else { throw Rejection("tasks.duplicate", "task \(action.id) exists") }
///     state.tasks[action.id] = Task(title: action.title)
/// }
/// ```
public struct On<State: Sendable, Handled: Action>: Reducer {
    private let reduce: @Sendable (inout State, Handled) throws(Rejection) -> Void

    /// Handles an action: pure, without I/O, and without traps: what does not fit is rejected.
    public init(
        _ type: Handled.Type, reduce: @escaping @Sendable (inout State, Handled) throws(Rejection) -> Void
    ) {
        self.reduce = reduce
    }

    /// Enters the handler.
    public func declare(in declaration: inout Declaration<State>) {
        declaration.handlers.append(
            .init(type: Handled.type, actionType: Handled.self, scope: []) {
                [reduce] (state: inout State, action: any Action) throws(Rejection) in
                guard let action = action as? Handled else {
                    throw Rejection("type-confusion", "\(Handled.type) was dispatched as another Swift type")
                }
                try reduce(&state, action)
            })
    }
}

/// A part of the state with reducers of its own, under a name of its own in the JSON.
public struct Slice<State: Sendable, Part: StateType>: Reducer {
    private let name: String
    private let path: any WritableKeyPath<State, Part> & Sendable
    private let declaration: Declaration<Part>

    /// Declares the part at `path` as the member `name`.
    public init(
        _ name: String, _ path: any WritableKeyPath<State, Part> & Sendable,
        @ReducerBuilder<Part> reducer: () -> ReducerList<Part>
    ) {
        self.name = name
        self.path = path
        var declaration = Declaration<Part>()
        reducer().declare(in: &declaration)
        self.declaration = declaration
    }

    /// Enters the part's handlers, lifted, and its place.
    public func declare(in outer: inout Declaration<State>) {
        let (node, faults) = declaration.layout()
        outer.faults += faults
        outer.add(name, node, at: path)
        outer.slices += [[name]] + declaration.slices.map { [name] + $0 }
        outer.collections += declaration.collections.map { $0.lifted(into: name) }
        for handler in declaration.handlers {
            outer.handlers.append(
                .init(type: handler.type, actionType: handler.actionType, scope: [name] + handler.scope) {
                    [path] (state: inout State, action: any Action) throws(Rejection) in
                    try handler.apply(&state[keyPath: path], action)
                })
        }
        for command in declaration.commands {
            outer.commands.append(
                .init(type: command.type, actionType: command.actionType, scope: [name] + command.scope) {
                    [path] (state: State, action: any Action) throws(Rejection) in
                    try command.create(state[keyPath: path], action)
                })
        }
        for effect in declaration.effects {
            let start = effect.start.map { start in
                { @Sendable [path] (action: any Action, state: State) in start(action, state[keyPath: path]) }
            }
            outer.effects.append(
                .init(
                    type: effect.type, actionType: effect.actionType, scope: [name] + effect.scope,
                    id: effect.id.map { "\(name).\($0)" }, start: start))
        }
        outer.views += declaration.views.map { $0.lifted(into: name, path) }
    }
}

/// A table of entities: two members, the entities by ID and the IDs in order.
public struct Entities<State: Sendable, ID: EntityID, Entity: Codable & Sendable>: Reducer {
    private let names: [String]
    private let path: any WritableKeyPath<State, EntityTable<ID, Entity>> & Sendable

    /// Declares the table at `path` as the members `name` and `ids`.
    public init(
        _ name: String, ids: String = "ids", _ path: any WritableKeyPath<State, EntityTable<ID, Entity>> & Sendable
    ) {
        names = [name, ids]
        self.path = path
    }

    /// Enters the two places.
    public func declare(in declaration: inout Declaration<State>) {
        declaration.add(names[0], EntitiesNode<ID, Entity>(), at: path)
        declaration.add(names[1], OrderNode<ID, Entity>(), at: path)
        declaration.collections.append(
            Collection(entities: JSONPointer([names[0]]), ids: JSONPointer([names[1]])) { token in
                // A token that is no ID cannot be in the table; an ID always has a text.
                ID(token: token).flatMap { try? JSON.encode($0) } ?? JSONValue.string(token).text
            })
    }
}

/// A plain part of the state under a name of its own in the JSON.
public struct Field<State: Sendable, Part: Codable & Sendable>: Reducer {
    private let name: String
    private let path: any WritableKeyPath<State, Part> & Sendable

    /// Declares the part at `path` as the member `name`.
    public init(_ name: String, _ path: any WritableKeyPath<State, Part> & Sendable) {
        self.name = name
        self.path = path
    }

    /// Enters the place.
    public func declare(in declaration: inout Declaration<State>) {
        declaration.add(name, ValueNode<Part>(), at: path)
    }
}

/// Several reducers of one state, in order.
public struct ReducerList<State: Sendable>: Reducer {
    let reducers: [any Reducer<State>]

    /// Enters each.
    public func declare(in declaration: inout Declaration<State>) {
        for reducer in reducers { reducer.declare(in: &declaration) }
    }
}

/// Collects the reducers of a state.
@resultBuilder
public enum ReducerBuilder<State: Sendable> {
    /// Takes a reducer.
    public static func buildExpression(_ reducer: some Reducer<State>) -> any Reducer<State> { reducer }
    /// Takes a domain of the same state.
    public static func buildExpression<Inner: Domain>(_ domain: Inner) -> any Reducer<State>
    where Inner.State == State {
        domain.reducer
    }
    /// Lists them.
    public static func buildBlock(_ reducers: any Reducer<State>...) -> ReducerList<State> {
        ReducerList(reducers: reducers)
    }
}

extension Declaration {
    /// Where the state stands in the JSON, and what is wrong with the declaration.
    func layout() -> (any LayoutNode<State>, [String]) {
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

    /// A place for the whole of a state that is Codable.
    private static func wholeNode(_ type: State.Type) -> (any LayoutNode<State>)? {
        func node<Value: Codable & Sendable>(_ type: Value.Type) -> any LayoutNode { ValueNode<Value>() }
        guard let codable = type as? any (Codable & Sendable).Type else { return nil }
        return node(codable) as? any LayoutNode<State>
    }

    /// Stored properties that no part declares: they would be lost at a restart.
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

    /// How a stored property lies in memory: Swift lays them out in order, each at its alignment.
    private static func layout(of value: Any) -> (size: Int, alignment: Int) {
        func measure<Value>(_ type: Value.Type) -> (size: Int, alignment: Int) {
            (MemoryLayout<Value>.size, MemoryLayout<Value>.alignment)
        }
        return _openExistential(type(of: value) as Any.Type, do: measure)
    }
}
