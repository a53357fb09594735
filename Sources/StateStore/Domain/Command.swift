/// A registered action creator: an action that clients dispatch, and that the state at that moment turns into another.
///
/// It passes the middleware as it came; what it makes passes the middleware again and is what is recorded. It may make
/// nothing, and then nothing is committed.
///
/// ```swift
/// Command(DoubleIfSmall.self) { state, _ in
///     state.value < 5 ? Add(amount: state.value) : nil
/// }
/// ```
public struct Command<State: Sendable, Handled: Action>: Reducer {
    private let create: @Sendable (State, Handled) throws(Rejection) -> (any Action)?

    /// Registers a creator; it is pure, as a reducer is.
    public init(
        _ type: Handled.Type, create: @escaping @Sendable (State, Handled) throws(Rejection) -> (any Action)?
    ) {
        self.create = create
    }

    /// Enters the creator.
    public func declare(in declaration: inout Declaration<State>) {
        declaration.commands.append(
            .init(type: Handled.type, actionType: Handled.self, scope: []) {
                [create] (state: State, action: any Action) throws(Rejection) in
                guard let action = action as? Handled else { return nil }
                return try create(state, action)
            })
    }
}

extension Declaration {
    struct CommandHandler: Sendable {
        let type: String
        let actionType: any Action.Type
        /// The slice that it belongs to: names from the root.
        var scope: [String]
        let create: @Sendable (State, any Action) throws(Rejection) -> (any Action)?
    }
}
