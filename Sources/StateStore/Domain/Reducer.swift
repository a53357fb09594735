internal import StateJSON
internal import Synchronization

/// A type of state with an initial value.
public protocol StateType: Sendable {
    /// Makes the initial state.
    init()
}

/// The declaration of an adopter: a type of state and the reducers of its actions.
public protocol Domain: Sendable {
    /// A struct whose parts ``reducer-swift.property`` declares, or a type that is `Codable` as a whole.
    ///
    /// A type that is `Codable` as a whole is encoded at each commit. ``EntityTable`` is for many elements: a commit
    /// encodes only changed ones. The store takes the encoding of a value to depend on the value alone.
    associatedtype State: StateType
    /// The type of ``reducer-swift.property``, which Swift infers.
    associatedtype Body: Reducer<State>

    /// The slices, tables and fields of the state, a handler for each type of action, and views.
    @ReducerBuilder<State> var reducer: Body { get }
}

/// A part of a domain's declaration: a handler, a slice, an entity table, a field, a view, an effect, or several of them.
public protocol Reducer<State>: Sendable {
    /// The type of the state that the reducer declares a part of.
    associatedtype State: Sendable

    /// Adds the handlers and the parts of this reducer to a declaration.
    func declare(in declaration: inout Declaration<State>)
}

/// Handles one type of action.
///
/// ```swift
/// On(Add.self) { state, action throws(Rejection) in
///     guard state.tasks[action.id] == nil else { throw Rejection("tasks.duplicate", "task \(action.id) exists") }
///     state.tasks[action.id] = Task(title: action.title)
/// }
/// ```
public struct On<State: Sendable, Handled: Action>: Reducer {
    private let reduce: @Sendable (inout State, Handled, ReducerContext) throws(Rejection) -> Void

    /// Declares the handler of an action type: a pure function that does no I/O and rejects what it cannot apply.
    ///
    /// A trap in the handler, such as an integer overflow, ends the process.
    public init(
        _ type: Handled.Type, reduce: @escaping @Sendable (inout State, Handled) throws(Rejection) -> Void
    ) {
        self.reduce = { state, action, _ throws(Rejection) in try reduce(&state, action) }
    }

    /// Declares the handler of an action type that also depends on who dispatches the action.
    ///
    /// ```swift
    /// On(Rename.self) { state, action, context throws(Rejection) in
    ///     guard state.owner == context.subject else { throw Rejection("notes.owner", "only the owner renames a note") }
    ///     state.name = action.name
    /// }
    /// ```
    public init(
        _ type: Handled.Type,
        reduce: @escaping @Sendable (inout State, Handled, ReducerContext) throws(Rejection) -> Void
    ) {
        self.reduce = reduce
    }

    /// Adds the handler to a declaration.
    public func declare(in declaration: inout Declaration<State>) {
        let work = Declaration<State>.Handler.Work.reduce { [reduce] (state, action, context) throws(Rejection) in
            guard Swift.type(of: action) == Handled.self else {
                throw Rejection("type-confusion", "\(Handled.type) was dispatched as another Swift type")
            }
            try reduce(&state, action.asItself(), context)
        }
        declaration.handlers.append(.init(actionType: ActionType(Handled.self), work: work))
    }
}

extension Action {
    /// The action under another name of its type, `Same`; a cast would look for common conformances of the two types.
    fileprivate func asItself<Same: Action>() -> Same {
        precondition(Self.self == Same.self, "an action is of its own type")
        return unsafeBitCast(self, to: Same.self)
    }
}

/// Handles every action that the domain declares, whatever its type.
///
/// ```swift
/// OnAny { state, action in state.log.append(type(of: action).type) }
/// ```
///
/// It runs among the handlers of the action in the order of the declaration. The store's own actions, and commands, which only
/// make other actions, do not reach it. It changes a part of the state with each action, so each commit compares that part.
public struct OnAny<State: Sendable>: Reducer {
    private let reduce: @Sendable (inout State, any Action) throws(Rejection) -> Void

    /// Declares the handler: a pure function that does no I/O and rejects what it cannot apply.
    public init(reduce: @escaping @Sendable (inout State, any Action) throws(Rejection) -> Void) {
        self.reduce = reduce
    }

    /// Adds the handler to a declaration.
    public func declare(in declaration: inout Declaration<State>) {
        declaration.handlers.append(
            .init(
                actionType: nil,
                work: .reduce { [reduce] (state, action, _) throws(Rejection) in try reduce(&state, action) }))
    }
}

/// The circumstances of an action beside its payload; the journal records all of them.
public struct ReducerContext: Sendable {
    /// The subject that dispatches the action, or nil if the server knows no subjects, and for an action of the
    /// process.
    ///
    /// A follow-up has the subject of the commit that caused it, and a replay the recorded one.
    public internal(set) var subject: String?
    /// The name of the action in the journal, or nil if nothing is recorded.
    package internal(set) var name: ActionName?
    /// The work that the transaction may still do; nil in a replay, which has no bound.
    package internal(set) var work: WorkMeter?
    var schedule = ActionSchedule()
    /// Nil in a replay, which schedules nothing.
    var scheduling: Scheduling?
}

package struct ActionName: Sendable {
    package let time: Timestamp
    /// The cursor of its commit; nil where the ID is known.
    private let cursor: Cursor?
    private let own: String?
    private let index: Int

    init(_ cursor: Cursor, at time: Timestamp, own: String?, index: Int) {
        (self.cursor, self.time, self.own, self.index) = (cursor, time, own, index)
    }

    init(of recorded: Commit, own: String?, index: Int) {
        (cursor, time, self.index) = (nil, recorded.time, index)
        self.own = own ?? Self.id(index, of: recorded.id)
    }

    /// The ID that the client gave to the action, or else that of its commit; behind it, in a batch, a solidus and the position
    /// of the action from 1 on.
    package var id: String { own ?? Self.id(index, of: cursor?.description ?? "") }

    private static func id(_ index: Int, of commit: String) -> String { index == 0 ? commit : "\(commit)/\(index)" }
}

/// A named part of the state with reducers of its own: a member of the JSON object of the state.
///
/// A handler belongs to the slice that declares it, so a commit compares only the slices whose handlers ran. Parts are
/// declared by hand: a macro would save a line for each, and cost one to two minutes of every build for swift-syntax.
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

    /// Adds the part's handlers, commands, effects, views and codec to the declaration of the larger state.
    public func declare(in outer: inout Declaration<State>) {
        let (codec, faults) = declaration.codec()
        outer.faults += faults
        outer.add(name, codec, at: path)
        outer.slices.append([name])
        outer.add(declaration, in: [name], get: { [path] in $0[keyPath: path] }) { [path] apply in
            { (state, action, context) throws(Rejection) in try apply(&state[keyPath: path], action, context) }
        }
    }
}

/// The declaration of an entity table: two members of the JSON, the entities by ID and the IDs in order.
public struct Entities<State: Sendable, ID: EntityID, Entity: Codable & Sendable>: Reducer {
    private let names: [String]
    private let path: any WritableKeyPath<State, EntityTable<ID, Entity>> & Sendable

    /// Declares the table at `path` as the members `name` and `ids`.
    public init(
        _ name: String, ids: String = "ids", _ path: any WritableKeyPath<State, EntityTable<ID, Entity>> & Sendable
    ) {
        (names, self.path) = ([name, ids], path)
    }

    /// Adds the two members to a declaration.
    public func declare(in declaration: inout Declaration<State>) {
        declaration.add(names[0], EntitiesCodec<ID, Entity>(), at: path)
        declaration.add(names[1], OrderCodec<ID, Entity>(), at: path)
        let (entities, ids) = (JSONPointer([names[0]]), JSONPointer([names[1]]))
        declaration.collections.append(
            Collection(entities: entities, ids: ids) { token in
                // Losing the error is right: a table has no key that is not an ID, and every ID can be encoded.
                ID(token: token).flatMap { try? JSON.encode($0) } ?? JSONValue.string(token).text
            })
        declaration.parts.append(StatePart(kind: .entities(ids: ids), pointer: entities, valueType: Entity.self))
        declaration.parts.append(StatePart(kind: .order, pointer: ids, valueType: EntityOrder.Link.self))
    }
}

/// A member of the state that is plain data, without reducers of its own.
public struct Field<State: Sendable, Part: Codable & Sendable>: Reducer {
    private let name: String
    private let path: any WritableKeyPath<State, Part> & Sendable

    /// Declares the part at `path` as the member `name`.
    public init(_ name: String, _ path: any WritableKeyPath<State, Part> & Sendable) {
        self.name = name
        self.path = path
    }

    /// Adds the member to a declaration.
    public func declare(in declaration: inout Declaration<State>) {
        declaration.add(name, ValueCodec<Part>(), at: path)
        declaration.parts.append(StatePart(kind: .field, pointer: JSONPointer([name]), valueType: Part.self))
    }
}

/// Several reducers of one state, in order.
public struct ReducerList<State: Sendable>: Reducer {
    let reducers: [any Reducer<State>]

    /// Adds each reducer to a declaration.
    public func declare(in declaration: inout Declaration<State>) {
        for reducer in reducers { reducer.declare(in: &declaration) }
    }
}

/// Makes a list of the reducers in a ``Domain/reducer-swift.property`` or a ``Slice``.
@resultBuilder
public enum ReducerBuilder<State: Sendable> {
    /// Takes a reducer as it is.
    public static func buildExpression(_ reducer: some Reducer<State>) -> any Reducer<State> { reducer }
    /// Takes the reducers of a domain of the same state.
    public static func buildExpression<Inner: Domain>(_ domain: Inner) -> any Reducer<State>
    where Inner.State == State {
        domain.reducer
    }
    /// Takes the reducers of an `if` without `else`, or none.
    public static func buildOptional(_ reducers: ReducerList<State>?) -> any Reducer<State> {
        reducers ?? ReducerList(reducers: [])
    }
    /// Takes the reducers of an `if` or of the first cases of a `switch`.
    public static func buildEither(first reducers: ReducerList<State>) -> any Reducer<State> { reducers }
    /// Takes the reducers of an `else` or of the other cases of a `switch`.
    public static func buildEither(second reducers: ReducerList<State>) -> any Reducer<State> { reducers }
    /// Takes the reducers of a `for`, in order.
    public static func buildArray(_ reducers: [ReducerList<State>]) -> any Reducer<State> {
        ReducerList(reducers: reducers)
    }
    /// Makes a list of reducers, in order.
    public static func buildBlock(_ reducers: any Reducer<State>...) -> ReducerList<State> {
        ReducerList(reducers: reducers)
    }
}

/// The work that the actions of one transaction may do, counted the same on every machine.
///
/// A domain whose clients decide how much a reducer does spends from the meter before it works. A replay has no meter: what
/// is recorded is not refused.
package final class WorkMeter: Sendable {
    /// The places that one transaction may look at, remove, or change: some 30 ms of a processor.
    package static let placesMax = 20_000
    /// The bytes of JSON that one transaction may move, copy or compare.
    package static let bytesMax = 4 << 20

    private let places = Atomic(0)
    private let bytes = Atomic(0)

    init() {}

    /// Counts work; returns false where the transaction then would have done more than it may.
    package func spend(places: Int = 1, bytes: Int = 0) -> Bool {
        self.places.add(places, ordering: .relaxed).newValue <= Self.placesMax
            && self.bytes.add(bytes, ordering: .relaxed).newValue <= Self.bytesMax
    }

    var isUsed: Bool { places.load(ordering: .relaxed) > 0 || bytes.load(ordering: .relaxed) > 0 }

    func reset() {
        places.store(0, ordering: .relaxed)
        bytes.store(0, ordering: .relaxed)
    }
}
