internal import Synchronization

/// A clock that only a test advances, for effects that wait, time out or try again.
///
/// Give it to the domain in place of a `ContinuousClock`.
public final class TestClock: Clock, Sendable {
    /// An instant, which tests compare with others of the clock.
    public typealias Instant = ContinuousClock.Instant

    private struct State {
        var now = ContinuousClock.now
        var sleepers: [Int: (deadline: Instant, wake: AsyncStream<Void>.Continuation)] = [:]
        var next = 0
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
        let (sleep, wake) = AsyncStream<Void>.makeStream()
        let number = state.withLock { state in
            state.next += 1
            if deadline > state.now { state.sleepers[state.next] = (deadline, wake) } else { wake.finish() }
            return state.next
        }
        // A cancelled task does not count as sleeping, also before it runs again.
        wake.onTermination = { [self] _ in state.withLock { $0.sleepers[number] = nil } }
        for await _ in sleep {}
        try Task.checkCancellation()
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
        for sleeper in woken { sleeper.wake.finish() }
    }
}
