internal import StateStore
internal import Synchronization

/// Waits for the outcomes of several submissions and hands them on in order.
final class Gathering: Sendable {
    private let outcomes: Mutex<(missing: Int, values: [Outcome?])>
    private let done: @Sendable ([Outcome]) -> Void

    init(count: Int, done: @escaping @Sendable ([Outcome]) -> Void) {
        outcomes = Mutex((count, Array(repeating: nil, count: count)))
        self.done = done
    }

    /// Sets one; the last one calls `done`.
    func set(_ index: Int, _ outcome: Outcome) {
        let all: [Outcome]? = outcomes.withLock { state in
            state.values[index] = outcome
            state.missing -= 1
            return state.missing == 0 ? state.values.compactMap(\.self) : nil
        }
        if let all { done(all) }
    }
}
