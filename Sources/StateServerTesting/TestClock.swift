internal import Synchronization

/// A clock that only a test advances, for effects that wait, time out or try again.
///
/// Give it to the domain in place of a `ContinuousClock`.
public final class TestClock: Clock, Sendable {
    /// An instant, which tests compare with others of the clock.
    public typealias Instant = ContinuousClock.Instant

    private struct State {
        var now = ContinuousClock.now
        var sleepers: [Int: (deadline: Instant, continuation: CheckedContinuation<Void, any Error>)] = [:]
        var next = 0
        /// Sleeps that were cancelled before they had begun to wait.
        var cancelled: Set<Int> = []
    }

    private let state = Mutex(State())

    /// Makes a clock.
    public init() {}

    /// The current instant, which only ``advance(by:whenSleeping:)`` changes.
    public var now: Instant { state.withLock { $0.now } }
    /// Zero: the clock has no smallest step.
    public var minimumResolution: Duration { .zero }

    /// Sleeps until a test has advanced the clock to a deadline.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Void, any Error>? = state.withLock { state in
                    if state.cancelled.remove(number) != nil { return .failure(CancellationError()) }
                    if deadline <= state.now { return .success(()) }
                    state.sleepers[number] = (deadline, continuation)
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                if state.sleepers[number] == nil { state.cancelled.insert(number) }
                return state.sleepers.removeValue(forKey: number)
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    /// Advances the clock and resumes the sleeping tasks whose deadline has come, earliest first.
    ///
    /// - Parameter sleepers: how many tasks have to sleep before the clock advances, because an effect that has just
    ///   been started may not sleep yet.
    public func advance(by duration: Duration, whenSleeping sleepers: Int = 0) async {
        while state.withLock({ $0.sleepers.count }) < sleepers { await Task.yield() }
        let woken = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            let due = state.sleepers.filter { $0.value.deadline <= state.now }
            for number in due.keys { state.sleepers[number] = nil }
            return due.values.sorted { $0.deadline < $1.deadline }
        }
        for sleeper in woken { sleeper.continuation.resume() }
    }
}
