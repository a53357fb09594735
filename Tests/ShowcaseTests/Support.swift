import StateJSON
import Synchronization

@testable import StateStore

/// Values from several threads.
final class Collection<Value: Sendable>: Sendable {
    private let stored = Mutex<[Value]>([])
    var values: [Value] { stored.withLock { $0 } }
    func add(_ value: Value) { stored.withLock { $0.append(value) } }
}

extension Store {
    /// The rejection of an action, or nil when it was committed.
    func rejection(of action: any Action) throws -> Rejection? {
        do {
            try dispatch(action)
            return nil
        } catch .rejected(let rejection, _) { return rejection }
    }

    /// The JSON of the state.
    func json() throws -> String? {
        try untyped.hub.latest.encoded(.pointer(.root)).map { String(decoding: $0.bytes, as: UTF8.self) }
    }
}

extension Domain {
    /// The state after what the store commits when it goes on from a journal.
    func resumed(_ state: State) throws -> State {
        var declaration = Declaration<State>()
        reducer.declare(in: &declaration)
        var state = state
        for handler in declaration.handlers where handler.actionType?.name == StoreResume.type {
            guard case .reduce(let reduce) = handler.work else { continue }
            try reduce(&state, StoreResume(), ReducerContext(subject: nil))
        }
        return state
    }
}
