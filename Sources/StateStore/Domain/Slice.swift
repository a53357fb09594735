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

    /// Adds the part's handlers, commands, effects, views and layout to the declaration of the larger state.
    public func declare(in outer: inout Declaration<State>) {
        let (node, faults) = declaration.layout()
        outer.faults += faults
        outer.add(name, node, at: path)
        outer.slices += [[name]] + declaration.slices.map { [name] + $0 }
        outer.collections += declaration.collections.map { $0.lifted(into: name) }
        outer.parts += declaration.allParts.map { $0.lifted(into: name) }
        for handler in declaration.handlers {
            outer.handlers.append(
                .init(type: handler.type, actionType: handler.actionType, scope: [name] + handler.scope) {
                    [path] (state: inout State, action: any Action, context: ReducerContext) throws(Rejection) in
                    try handler.apply(&state[keyPath: path], action, context)
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
        let (views, unread) = declaration.resolvedViews()
        outer.faults += unread
        outer.views += views.map { $0.lifted(into: name, path) }
    }
}
