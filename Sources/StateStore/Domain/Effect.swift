internal import Synchronization

/// Work in the world outside that an action sets off: a request to another server, a message, a file.
///
/// It runs after the commit, off the store's queue, and comes back as actions, whose commits name the one that caused
/// them. It never runs in a replay or at a restart. What it throws is reported and changes nothing.
///
/// ```swift
/// Effect(on: Load.self, id: "load") { _, _, dispatch in
///     try await dispatch(Loaded(films: fetch()))
/// }
/// ```
public struct Effect<State: Sendable, Handled: Action>: Reducer {
    /// The work: with the action, the state that it made, and the way back into the store.
    public typealias Work =
        @Sendable (_ action: Handled, _ state: State, _ dispatch: Dispatcher) async throws -> Void

    private let id: String?
    private let work: Work

    /// Runs `work` after each commit of an action.
    ///
    /// With an ID there is one at a time: a new one cancels the one before, and ``CancelEffect`` or
    /// ``Store/cancel(effect:)`` end it. Inside a slice the ID is `<slice>.<id>`, as views are named. What a cancelled
    /// effect still dispatches is refused.
    public init(on: Handled.Type, id: String? = nil, _ work: @escaping Work) {
        self.id = id
        self.work = work
    }

    /// Enters the effect.
    public func declare(in declaration: inout Declaration<State>) {
        declaration.effects.append(
            .init(type: Handled.type, actionType: Handled.self, scope: [], id: id) { [work] action, state in
                guard let action = action as? Handled else { return nil }
                return { dispatch in try await work(action, state, dispatch) }
            })
    }
}

/// Ends an effect when an action is committed.
public struct CancelEffect<State: Sendable, Handled: Action>: Reducer {
    private let id: String

    /// Cancels the effect with this ID, where one is running, after each commit of an action.
    public init(on: Handled.Type, id: String) {
        self.id = id
    }

    /// Enters the cancellation.
    public func declare(in declaration: inout Declaration<State>) {
        declaration.effects.append(.init(type: Handled.type, actionType: Handled.self, scope: [], id: id, start: nil))
    }
}

/// An effect's way back into the store.
public struct Dispatcher: Sendable {
    let send: @Sendable (any Action) async throws(DispatchError) -> Dispatched

    /// Dispatches an action as a follow-up of the commit that set the effect off, and returns after its turn.
    ///
    /// - Throws: ``DispatchError``, also when the effect has been cancelled or the cascade is over its budget.
    @discardableResult
    public func callAsFunction(_ action: any Action) async throws(DispatchError) -> Dispatched {
        try await send(action)
    }
}

extension Declaration {
    struct EffectHandler: Sendable {
        let type: String
        let actionType: any Action.Type
        /// The slice that it belongs to: names from the root.
        var scope: [String]
        var id: String?
        /// Makes the work of an action; nil where the effect is only to be cancelled.
        let start: (@Sendable (any Action, State) -> EffectWork?)?
    }
}

/// An effect's work on one action.
typealias EffectWork = @Sendable (Dispatcher) async throws -> Void

/// The effects that run, each a task, those with an ID one at a time.
final class Effects: Sendable {
    private struct Running {
        var tasks: [Int: Task<Void, Never>] = [:]
        var named: [String: Int] = [:]
        /// The next number; it also says which of two effects with one ID is the newer.
        var next = 0
        var isStopped = false
    }

    private let running = Mutex(Running())
    private let countMax: Int

    init(countMax: Int) {
        self.countMax = countMax
    }

    var count: Int { running.withLock { $0.tasks.count } }

    /// Starts work; what has the same ID is cancelled.
    ///
    /// - Returns: false when there are too many already, or when the store is stopping.
    func start(id: String?, _ work: @escaping @Sendable () async -> Void) -> Bool {
        let (isStarted, replaced) = running.withLock { running -> (Bool, Task<Void, Never>?) in
            guard !running.isStopped, running.tasks.count < countMax else { return (false, nil) }
            let number = running.next
            running.next += 1
            let replaced = id.flatMap { running.named.updateValue(number, forKey: $0) }.flatMap { running.tasks[$0] }
            // The task takes itself off the list, for which it has to wait until it is on it: this lock.
            running.tasks[number] = Task {
                await work()
                self.ended(number, id)
            }
            return (true, replaced)
        }
        replaced?.cancel()
        return isStarted
    }

    private func ended(_ number: Int, _ id: String?) {
        running.withLock { running in
            running.tasks[number] = nil
            if let id, running.named[id] == number { running.named[id] = nil }
        }
    }

    /// Cancels the one with an ID; false when there is none.
    func cancel(_ id: String) -> Bool {
        let task = running.withLock { running in running.named.removeValue(forKey: id).flatMap { running.tasks[$0] } }
        task?.cancel()
        return task != nil
    }

    /// Cancels all and starts no more.
    func stop() {
        let tasks = running.withLock { running in
            running.isStopped = true
            return Array(running.tasks.values)
        }
        for task in tasks { task.cancel() }
    }
}
