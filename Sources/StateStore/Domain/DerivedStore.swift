/// A part of a store as a store of its own: its holder sees that part as the whole world and dispatches only its actions.
///
/// It keeps no state: whatever it shows and takes goes through the one store. Over HTTP every slice is one, under
/// `/v1/stores/<name>`.
public struct DerivedStore<Root: StateType, State: Sendable, LocalAction: Sendable>: Sendable {
    let root: Store<Root>
    let deriveState: @Sendable (Root) -> State
    let embedAction: @Sendable (LocalAction) -> any Action

    /// The part's state after the last turn.
    public var state: State { deriveState(root.state) }

    /// The version of the whole store.
    public var version: Version { root.version }

    /// Dispatches an action of this part and returns after its turn, as ``Store/dispatch(_:id:)`` does.
    ///
    /// - Throws: ``DispatchError``: nothing has happened.
    @discardableResult
    public func dispatch(_ action: LocalAction) throws(DispatchError) -> Dispatched {
        try root.dispatch(embedAction(action))
    }

    /// Dispatches an action of this part and returns after its turn.
    ///
    /// - Throws: ``DispatchError``: nothing has happened.
    @discardableResult
    public func dispatch(_ action: LocalAction) async throws(DispatchError) -> Dispatched {
        try await root.dispatch(embedAction(action))
    }

    /// Subscribes to a part of this part; repeats are skipped where the store does so by itself.
    ///
    /// - Returns: what keeps the subscription alive.
    public func subscribe<Value: Equatable & Sendable>(
        _ transform: (Subscription<Root, State>) -> Subscription<Root, Value>,
        newState tell: @escaping @Sendable (Value) -> Void
    ) -> SubscriptionToken {
        root.subscribe({ transform($0.select(deriveState)) }, newState: tell)
    }

    /// Subscribes to the whole of this part; repeats are skipped where the store does so by itself.
    ///
    /// - Returns: what keeps the subscription alive.
    public func subscribe(newState tell: @escaping @Sendable (State) -> Void) -> SubscriptionToken
    where State: Equatable {
        subscribe({ $0 }, newState: tell)
    }

    /// A part of this part.
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
    /// A part of this store as a store of its own.
    ///
    /// - Parameters:
    ///   - deriveState: the part, or what is to be seen of it.
    ///   - embedAction: what an action of the part is for the whole.
    public func derived<Part: Sendable, LocalAction: Sendable>(
        deriveState: @escaping @Sendable (State) -> Part,
        embedAction: @escaping @Sendable (LocalAction) -> any Action
    ) -> DerivedStore<State, Part, LocalAction> {
        .init(root: self, deriveState: deriveState, embedAction: embedAction)
    }
}
