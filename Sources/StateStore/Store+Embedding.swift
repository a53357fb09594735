internal import FoundationEssentials

extension Store {
    /// Makes a store of a domain, in memory, for use inside this process.
    ///
    /// - Parameters:
    ///   - state: the state that it begins with; nil for the domain's own, to which ``StoreInit`` has been applied.
    ///   - middleware: the steps that every action passes, in order.
    ///   - automaticallySkipsRepeats: whether subscriptions to `Equatable` values skip repeats.
    ///   - now: the clock that commits are stamped with.
    ///   - report: hears of what was dispatched inside a turn and refused, and of effects that failed.
    /// - Throws: ``DeclarationFault`` for a forgotten or repeated part, or two Swift types under one action type.
    public convenience init<D: Domain>(
        _ domain: D, state: State? = nil, middleware: [Middleware<State>] = [.validation],
        limits: StoreLimits = StoreLimits(), automaticallySkipsRepeats: Bool = true,
        now: @escaping @Sendable () -> Timestamp = Timestamp.now,
        report: @escaping @Sendable (StoreEvent) -> Void = { _ in }
    ) throws(DeclarationFault) where D.State == State {
        let model = try CompiledDomain(domain)
        self.init(
            model: model, middleware: middleware, limits: limits, origin: state.map { Origin(state: $0) },
            automaticallySkipsRepeats: automaticallySkipsRepeats, now: now, report: report)
    }
}

extension Timestamp {
    /// What the system's clock says.
    ///
    /// The only place that looks at it; everybody else is given the time.
    public static func now() -> Timestamp {
        Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    }
}
