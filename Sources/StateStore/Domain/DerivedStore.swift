/// A part of a store as a store of its own: its holder reads only that part and dispatches only its actions.
///
/// A derived store has no state; each of its methods calls the one store. Over HTTP every slice is a derived store, under
/// `/v1/stores/<name>`.
public struct DerivedStore<Root: StateType, State: Sendable, LocalAction: Sendable>: Sendable {
    let root: Store<Root>
    let deriveState: @Sendable (Root) -> State
    let embedAction: @Sendable (LocalAction) -> any Action

    /// The part's state after the last turn.
    public var state: State { deriveState(root.state) }

    /// The version of the whole store.
    public var version: Version { root.version }

    /// Dispatches an action of this part and returns after its turn, as ``Store/dispatch(_:id:awaiting:)`` does.
    ///
    /// - Throws: ``DispatchError``; the state is then unchanged.
    @discardableResult
    public func dispatch(_ action: LocalAction) throws(DispatchError) -> Dispatched {
        try root.dispatch(embedAction(action))
    }

    /// Dispatches an action of this part and returns after its turn, without blocking a thread.
    ///
    /// - Throws: ``DispatchError``; the state is then unchanged.
    @discardableResult
    public func dispatch(_ action: LocalAction) async throws(DispatchError) -> Dispatched {
        try await root.dispatch(embedAction(action))
    }

    /// Subscribes to a part of this part, without repeats where ``Store/automaticallySkipsRepeats`` is true.
    ///
    /// - Returns: the token that keeps the subscription alive.
    public func subscribe<Value: Equatable & Sendable>(
        _ transform: (Subscription<Root, State>) -> Subscription<Root, Value>,
        newState notify: @escaping @Sendable (Value) -> Void
    ) -> SubscriptionToken {
        root.subscribe({ transform($0.select(deriveState)) }, newState: notify)
    }

    /// Subscribes to the whole of this part, without repeats where ``Store/automaticallySkipsRepeats`` is true.
    ///
    /// - Returns: the token that keeps the subscription alive.
    public func subscribe(newState notify: @escaping @Sendable (State) -> Void) -> SubscriptionToken
    where State: Equatable {
        subscribe({ $0 }, newState: notify)
    }

    /// Makes a derived store of a part of this part.
    public func derived<Part: Sendable, PartAction: Sendable>(
        deriveState: @escaping @Sendable (State) -> Part,
        embedAction: @escaping @Sendable (PartAction) -> LocalAction
    ) -> DerivedStore<Root, Part, PartAction> {
        .init(
            root: root, deriveState: { [inner = self.deriveState] in deriveState(inner($0)) },
            embedAction: { [outer = self.embedAction] in outer(embedAction($0)) })
    }
}

extension Store {
    /// Makes a derived store of a part of this store.
    ///
    /// - Parameters:
    ///   - deriveState: makes the part's state from the whole state.
    ///   - embedAction: makes an action of the whole store from an action of the part.
    public func derived<Part: Sendable, LocalAction: Sendable>(
        deriveState: @escaping @Sendable (State) -> Part,
        embedAction: @escaping @Sendable (LocalAction) -> any Action
    ) -> DerivedStore<State, Part, LocalAction> {
        .init(root: self, deriveState: deriveState, embedAction: embedAction)
    }
}
