extension Store {
    /// Makes a store of a domain for use inside this process.
    ///
    /// The store keeps its history in memory, within the limits, and refuses an action that leads to a state that JSON does
    /// not have, such as one with a number that is infinite. So does a server.
    ///
    /// - Parameters:
    ///   - state: the initial state; nil for the domain's own, to which the store has applied ``StoreInit``.
    ///   - middleware: the middleware that every action passes, in order.
    ///   - automaticallySkipsRepeats: whether subscriptions to `Equatable` values skip repeats.
    ///   - now: the clock that gives the commits their times.
    ///   - report: the function that the store calls for a refused follow-up and a failed effect, on any thread.
    /// - Throws: ``DeclarationFault`` for a part of the state that the domain does not declare or declares twice, and
    ///   for two Swift types under one action type.
    public convenience init<D: Domain>(
        _ domain: D, state: State? = nil, middleware: [Middleware<State>] = [.validation],
        limits: StoreLimits = StoreLimits(), automaticallySkipsRepeats: Bool = true,
        now: @escaping @Sendable () -> Timestamp = Timestamp.now,
        report: @escaping @Sendable (StoreEvent) -> Void = { _ in }
    ) throws(DeclarationFault) where D.State == State {
        self.init(
            domain: try CompiledDomain(domain), middleware: middleware, limits: limits,
            origin: state.map { Origin(state: $0) }, automaticallySkipsRepeats: automaticallySkipsRepeats, now: now,
            report: report)
        beginFiring()
    }
}
