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
        let work = Declaration<State>.Handler.Work.create { [create] (state, action) throws(Rejection) in
            guard let action = action as? Handled else { return nil }
            return try create(state, action)
        }
        declaration.handlers.append(.init(actionType: ActionType(Handled.self), work: work))
    }
}
