/// One authoritative state, changed only by actions, one turn after another on a serial queue.
///
/// Any thread may call any method, also inside a notification. A reader never waits for a turn.
///
/// ```swift
/// let store = try Store(Counter())
/// let token = store.subscribe(\.value) { print($0) }
/// try store.dispatch(Counter.Add(amount: 2))
/// ```
public final class Store<State: StateType>: Sendable {
    package let untyped: UntypedStore
    /// Whether a subscription to an `Equatable` value skips a commit after which the value equals the one before.
    public let automaticallySkipsRepeats: Bool

    private init(_ untyped: UntypedStore, automaticallySkipsRepeats: Bool) {
        (self.untyped, self.automaticallySkipsRepeats) = (untyped, automaticallySkipsRepeats)
    }

    /// Makes the typed form of a store; nil where its state is of another type.
    package convenience init?(_ untyped: UntypedStore) {
        guard untyped.latest.state.isOf(State.self) else { return nil }
        self.init(untyped, automaticallySkipsRepeats: true)
    }

    /// The state after the last turn that has landed.
    public var state: State { untyped.latest.state.state() }

    /// The version of ``state``.
    public var version: Version { untyped.version }

    /// The middleware that every action passes, in order; a new value applies from the next turn on.
    public var middleware: [Middleware<State>] {
        get { untyped.steps.map { Middleware($0) } }
        set { untyped.steps = newValue.map(\.step) }
    }

    /// Whether the calling thread is inside a turn of any store, where a dispatch is queued for a later turn.
    public static var isInTurn: Bool { TurnMark.current != nil }

    /// Cancels the running effect with an ID.
    ///
    /// - Returns: false when no effect with this ID runs.
    @discardableResult
    public func cancel(effect id: String) -> Bool { untyped.effects.cancel(id) }

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
    /// - Throws: ``DeclarationFault`` for a part of the state that the domain does not declare or declares twice, for two Swift
    ///   types under one action type, and for a state that JSON does not have.
    public convenience init<D: Domain>(
        _ domain: D, state: State? = nil, middleware: [Middleware<State>] = [.validation],
        limits: StoreLimits = StoreLimits(), automaticallySkipsRepeats: Bool = true,
        now: @escaping @Sendable () -> Timestamp = Timestamp.now,
        report: @escaping @Sendable (StoreEvent) -> Void = { _ in }
    ) throws(DeclarationFault) where D.State == State {
        let domain = try CompiledDomain(domain)
        var origin: UntypedStore.Origin?
        do {
            if let state {
                origin = .init(state: .of(state))
                _ = try domain.bytes(of: .of(state))
            }
        } catch { throw DeclarationFault(description: "the initial state cannot be encoded: \(error)") }
        let untyped = UntypedStore(
            domain: domain, middleware: middleware.map(\.step), limits: limits, origin: origin, now: now,
            report: report)
        self.init(untyped, automaticallySkipsRepeats: automaticallySkipsRepeats)
        untyped.beginFiring()
    }
}

/// The limits of a store.
public struct StoreLimits: Sendable {
    /// How many transactions may wait for a turn or its landing; the store refuses more at once.
    public var mailboxMax: Int
    /// How many idempotency keys the store keeps; above it, the store refuses a transaction with a new key.
    package var idempotencyKeysMax = 1_000_000
    package var idempotencyLifetime = Duration.seconds(86_400)
    package var historyCommitsMax = 100_000
    package var historyBytesMax = 64 << 20
    /// How many commits deep a cascade may be; the store refuses a deeper follow-up.
    public var cascadeDepthMax = 100_000
    /// How many actions a cascade may dispatch in all; the store refuses more.
    public var cascadeActionsMax = 1_000_000
    /// How many actions may be scheduled; the store rejects what schedules more.
    public var scheduleMax = 100_000
    package var scheduleBytesMax = Int.max
    /// The processor time of one transaction's actions; the store looks behind each 16, so up to 16 have no limit.
    package var transactionTime = Duration.milliseconds(250)
    /// The most bytes of a commit, which are those of its actions and of its patch; the store rejects a larger one.
    package var commitBytesMax = Int.max
    /// The most bytes of the state as compact JSON; above it the store commits only what makes the state smaller.
    package var stateBytesMax = Int.max
    /// The most bytes of memory of a state that is one tree; above it the store commits only what makes the state smaller.
    package var stateMemoryBytesMax = Int.max
    /// How many effects may run at once; the store does not start more, and reports each.
    public var effectsMax = 10_000
}

extension StoreLimits {
    /// Makes limits; they are those of the shipped configuration.
    public init() { self.init(mailboxMax: 65_536) }
}
