/// An action creator that is declared under an action type, so that clients can dispatch it.
///
/// The command passes the middleware. The action that its creator makes of the state passes the middleware again, and the
/// store records only that action. Where the creator makes none, the store commits nothing.
///
/// ```swift
/// Command(DoubleIfSmall.self) { state, _ in
///     state.value < 5 ? Add(amount: state.value) : nil
/// }
/// ```
public struct Command<State: Sendable, Handled: Action>: Reducer {
    private let create: @Sendable (State, Handled) throws(Rejection) -> (any Action)?

    /// Declares a creator, which must be pure, as a reducer is.
    public init(
        _ type: Handled.Type, create: @escaping @Sendable (State, Handled) throws(Rejection) -> (any Action)?
    ) {
        self.create = create
    }

    /// Adds the creator to a declaration.
    public func declare(in declaration: inout Declaration<State>) {
        declaration.commands.append(
            .init(type: Handled.type, actionType: .typed(Handled.self), scope: []) {
                [create] (state: State, action: any Action) throws(Rejection) in
                guard let action = action as? Handled else { return nil }
                return try create(state, action)
            })
    }
}

extension Declaration {
    struct CommandHandler: Sendable {
        let type: String
        let actionType: ActionType
        var scope: [String]
        let create: @Sendable (State, any Action) throws(Rejection) -> (any Action)?
    }
}
