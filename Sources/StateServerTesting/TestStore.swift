internal import StateJSON
public import StateStore
internal import Synchronization

/// A store for tests that check what each action changes, and fail on any other change.
///
/// ```swift
/// let store = try TestStore(Films { ["A New Hope"] })
/// try await store.send(Films.Load()) { $0.phase = .loading }
/// try await store.receive(Films.Set.self) { $0.phase = .finished(["A New Hope"]) }
/// try await store.finish()
/// ```
///
/// A failure is a thrown ``TestStoreFailure``, so that any test framework shows it. Only one test may use a store.
public final class TestStore<State: StateType>: Sendable {
    /// The store under test, for calls that this type has no method for.
    public let store: Store<State>

    private let model: CompiledDomain
    private let log: Log<State>
    private let token: SubscriptionToken

    /// Makes a store of a domain; its commits carry the time zero.
    ///
    /// - Throws: `DeclarationFault`.
    public init<D: Domain>(
        _ domain: D, state: State? = nil, middleware: [Middleware<State>] = [.validation],
        limits: StoreLimits = StoreLimits()
    ) throws where D.State == State {
        model = try CompiledDomain(domain)
        let log = Log<State>()
        store = try Store(
            domain, state: state, middleware: middleware, limits: limits, now: { Timestamp(milliseconds: 0) },
            report: { log.note($0) })
        self.log = log
        token = store.subscribe(changesOf: { $0.select { Unequal(state: $0) } }, notify: { log.note($0) })
    }

    /// Dispatches an action and checks that it changes exactly what `change` does to the state before.
    ///
    /// - Throws: ``TestStoreFailure``, also where the test has not yet received an earlier follow-up.
    public func send(_ action: any Action, changing change: (inout State) throws -> Void = { _ in }) async throws {
        if let left { throw TestStoreFailure("before \(type(of: action).type) is sent, \(left)") }
        do throws(DispatchError) {
            guard try await store.dispatch(action).receipt != nil else {
                throw .failed(detail: "nothing was committed")
            }
        } catch {
            throw TestStoreFailure("\(type(of: action).type) was not committed: \(error.code): \(error)")
        }
        try check(try await next(type(of: action).type), change)
    }

    /// Dispatches an action and checks that it is rejected with a code, and that nothing has changed.
    ///
    /// - Throws: ``TestStoreFailure``.
    public func send(_ action: any Action, rejectedAs code: String) async throws {
        let version = store.version
        do throws(DispatchError) {
            try await store.dispatch(action)
        } catch {
            guard error.code == code else {
                throw TestStoreFailure("\(type(of: action).type) was rejected as \(error.code), not as \(code)")
            }
            guard store.version == version else { throw TestStoreFailure("a rejected action has left a version") }
            return
        }
        throw TestStoreFailure("\(type(of: action).type) was not rejected; expected \(code)")
    }

    /// Waits for the next action that an effect, a subscriber or a middleware dispatches, and checks its change.
    ///
    /// - Throws: ``TestStoreFailure``, also when no action has come after `patience`.
    public func receive<Received: Action>(
        _ type: Received.Type, within patience: Duration = .seconds(5),
        changing change: (inout State) throws -> Void = { _ in }
    ) async throws {
        let step = try await next(Received.type, within: patience)
        guard step.commit.types == [Received.type], step.commit.cause != nil else {
            throw TestStoreFailure(
                "received \(step.commit.types.joined(separator: ",")), expected \(Received.type) as a follow-up")
        }
        try check(step, change)
    }

    /// Waits for the effects that are under way, and checks that there is no commit and no event that the test has not asserted.
    ///
    /// - Throws: ``TestStoreFailure``, which names the actions that the test has not received, and the effects that still run
    ///   after `patience`.
    public func finish(within patience: Duration = .seconds(5)) async throws {
        let clock = ContinuousClock()
        let end = clock.now + patience
        // The last commit is noted a little later than it is published.
        while !store.untyped.isAtRest || log.version < store.version, clock.now < end {
            try await clock.sleep(for: .milliseconds(1))
        }
        var faults: [String] = []
        if let left { faults.append(left) }
        let running = store.untyped.runningEffects
        if !running.isEmpty {
            faults.append("these effects still ran after \(patience): \(running.joined(separator: ", "))")
        }
        guard faults.isEmpty else { throw TestStoreFailure("at the end, \(faults.joined(separator: "; "))") }
        let events = log.events
        guard events.isEmpty else { throw TestStoreFailure("not asserted: \(events)") }
    }

    private var left: String? {
        let types = log.steps.flatMap(\.commit.types)
        return types.isEmpty ? nil : "these had not been received: \(types.joined(separator: ", "))"
    }

    private func next(_ expected: String, within patience: Duration = .seconds(5)) async throws -> Log<State>.Step {
        let clock = ContinuousClock()
        let end = clock.now + patience
        while clock.now < end {
            if let step = log.takeFirst() { return step }
            try await clock.sleep(for: .milliseconds(1))
        }
        throw TestStoreFailure("\(expected) did not come within \(patience)")
    }

    private func check(_ step: Log<State>.Step, _ change: (inout State) throws -> Void) throws {
        var expected = step.before
        try change(&expected)
        let (wanted, found) = (try model.bytes(of: .of(expected)), try model.bytes(of: .of(step.after)))
        guard wanted != found else { return }
        var patch = JSONPatch()
        patch.compare(wanted, found)
        throw TestStoreFailure(
            "\(step.commit.types.joined(separator: ",")) made another state than expected; from the expected one to it: \(String(decoding: patch.text, as: UTF8.self))"
        )
    }
}

/// A failed expectation of a ``TestStore``.
public struct TestStoreFailure: Error, CustomStringConvertible {
    /// The expected and the actual event, as a sentence.
    public let description: String

    init(_ description: String) { self.description = description }
}

/// A state that is never skipped as a repeat.
private struct Unequal<State: Sendable>: Sendable {
    let state: State
}

/// The commits and events of a store that the test has not asserted.
private final class Log<State: Sendable>: Sendable {
    struct Step: Sendable {
        let commit: Commit
        let before: State
        let after: State
    }

    private let noted = Mutex<(steps: [Step], events: [StoreEvent], version: Version)>(([], [], 0))

    var steps: [Step] { noted.withLock { $0.steps } }
    var version: Version { noted.withLock { $0.version } }
    var events: [StoreEvent] { noted.withLock { $0.events } }

    func note(_ change: Change<Unequal<State>>) {
        guard let commit = change.commit, let old = change.old else { return }
        noted.withLock { noted in
            noted.steps.append(Step(commit: commit, before: old.state, after: change.new.state))
            noted.version = commit.version
        }
    }

    func note(_ event: StoreEvent) { noted.withLock { $0.events.append(event) } }

    func takeFirst() -> Step? { noted.withLock { $0.steps.isEmpty ? nil : $0.steps.removeFirst() } }
}
