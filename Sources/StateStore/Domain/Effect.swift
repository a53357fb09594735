internal import Synchronization

/// Work outside the store that a commit starts, such as a request to another server.
///
/// An effect runs after the commit, off the store's queue, and dispatches actions, whose commits name the commit that
/// caused them. No replay and no restart runs effects. The store reports an error that an effect throws; the state does
/// not change.
///
/// An effect handles its action, as a reducer does: one outside a slice takes the action out of the derived store of the
/// slice.
///
/// ```swift
/// Effect(on: Load.self, id: "load") { _, _, dispatch in
///     try await dispatch(Loaded(films: fetch()))
/// }
/// ```
public struct Effect<State: Sendable, Handled: Action>: Reducer {
    /// The work of an effect: a function of the action, of the state that the action made, and of a dispatcher.
    public typealias Work =
        @Sendable (_ action: Handled, _ state: State, _ dispatch: Dispatcher) async throws -> Void

    private let id: String?
    private let work: Work

    /// Runs `work` after each commit of an action.
    ///
    /// At most one effect with an ID runs at a time: a new one cancels the one before, and ``CancelEffect`` or
    /// ``Store/cancel(effect:)`` cancel it. Inside a slice the ID is `<slice>.<id>`, as the names of views are. The store
    /// refuses the dispatches of a cancelled effect.
    public init(on: Handled.Type, id: String? = nil, _ work: @escaping Work) {
        self.id = id
        self.work = work
    }

    /// Adds the effect to a declaration.
    public func declare(in declaration: inout Declaration<State>) {
        let effect = Declaration<State>.Handler.Work.effect(id: id) { [work] action, state in
            guard let action = action as? Handled else { return nil }
            return { dispatch in try await work(action, state, dispatch) }
        }
        declaration.handlers.append(.init(actionType: ActionType(Handled.self), work: effect))
    }
}

/// Cancels an effect when an action is committed.
public struct CancelEffect<State: Sendable, Handled: Action>: Reducer {
    private let id: String

    /// Cancels the running effect with this ID, if there is one, after each commit of an action.
    public init(on: Handled.Type, id: String) {
        self.id = id
    }

    /// Adds the cancellation to a declaration.
    public func declare(in declaration: inout Declaration<State>) {
        declaration.handlers.append(.init(actionType: ActionType(Handled.self), work: .effect(id: id, start: nil)))
    }
}

/// Dispatches the actions of an effect.
public struct Dispatcher: Sendable {
    /// The subject of the commit that started the effect, which is also that of its follow-ups; nil for a commit
    /// without a subject.
    public let subject: String?
    let send: @Sendable (any Action) async throws(DispatchError) -> Dispatched

    /// Dispatches an action as a follow-up of the commit that started the effect, and returns after its turn.
    ///
    /// - Throws: ``DispatchError``, also when the effect has been cancelled or the cascade is over its budget.
    @discardableResult
    public func callAsFunction(_ action: any Action) async throws(DispatchError) -> Dispatched {
        try await send(action)
    }
}

typealias EffectWork = @Sendable (Dispatcher) async throws -> Void

/// The running effects of a store, each a task; at most one effect with an ID runs at a time.
final class Effects: Sendable {
    private struct Running {
        var effects: [Int: (task: Task<Void, Never>, name: String)] = [:]
        var named: [String: Int] = [:]
        /// The number of the next effect, which also tells apart two effects with one ID.
        var next = 0
        var isStopped = false
    }

    private let running = Mutex(Running())
    private let countMax: Int

    init(countMax: Int) {
        self.countMax = countMax
    }

    var count: Int { running.withLock { $0.effects.count } }

    var names: [String] { running.withLock { $0.effects.sorted { $0.key < $1.key }.map(\.value.name) } }

    /// The effect takes the place of a running one with its ID; false when too many run, or when the store is stopping.
    func start(id: String?, of type: String = "", _ work: @escaping @Sendable () async -> Void) -> Bool {
        let (isStarted, replaced) = running.withLock { running -> (Bool, Task<Void, Never>?) in
            guard !running.isStopped else { return (false, nil) }
            // The replaced effect gives its place to the new one, and is cancelled in any case.
            let replacedNumber = id.flatMap { running.named.removeValue(forKey: $0) }
            let replaced = replacedNumber.flatMap { running.effects[$0]?.task }
            guard running.effects.count - (replaced == nil ? 0 : 1) < countMax else { return (false, replaced) }
            let number = running.next
            running.next += 1
            if let id { running.named[id] = number }
            // The task removes its own entry. It cannot do so before the entry exists, because it needs this lock.
            let task = Task {
                await work()
                self.ended(number, id)
            }
            running.effects[number] = (task, id ?? type)
            return (true, replaced)
        }
        replaced?.cancel()
        return isStarted
    }

    private func ended(_ number: Int, _ id: String?) {
        running.withLock { running in
            running.effects[number] = nil
            if let id, running.named[id] == number { running.named[id] = nil }
        }
    }

    @discardableResult
    func cancel(_ id: String) -> Bool {
        let task = running.withLock { running in
            running.named.removeValue(forKey: id).flatMap { running.effects[$0]?.task }
        }
        task?.cancel()
        return task != nil
    }

    func stop() {
        let tasks = running.withLock { running in
            running.isStopped = true
            return running.effects.values.map(\.task)
        }
        for task in tasks { task.cancel() }
    }
}
