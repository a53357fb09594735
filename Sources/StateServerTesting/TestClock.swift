internal import Synchronization

/// A clock that stands still until it is told to go on: for effects that wait, time out or try again.
///
/// Give it to the domain in place of a `ContinuousClock`.
public final class TestClock: Clock, Sendable {
    /// A time since the clock was made.
    public struct Instant: InstantProtocol {
        let offset: Duration

        /// The instant that much later.
        public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        /// How far away another instant is.
        public func duration(to other: Instant) -> Duration { other.offset - offset }
        /// Earlier first.
        public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct State {
        var now = Instant(offset: .zero)
        var sleepers: [Int: (deadline: Instant, continuation: CheckedContinuation<Void, any Error>)] = [:]
        var next = 0
        /// Sleeps that were cancelled before they had begun to wait.
        var cancelled: Set<Int> = []
    }

    private let state = Mutex(State())

    /// Makes a clock.
    public init() {}

    /// What it shows.
    public var now: Instant { state.withLock { $0.now } }
    /// It has no smallest step.
    public var minimumResolution: Duration { .zero }
    /// How many sleep on it.
    public var sleepersCount: Int { state.withLock { $0.sleepers.count } }

    /// Sleeps until the clock has been moved to a deadline.
    ///
    /// - Throws: `CancellationError`.
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

    /// Moves the clock on and wakes those whose time has come, earliest first.
    ///
    /// - Parameter sleepers: how many have to sleep before it is moved: an effect that has only just been started may not
    ///   have come so far.
    public func advance(by duration: Duration, whenSleeping sleepers: Int = 0) async {
        while sleepersCount < sleepers { await Task.yield() }
        let woken = state.withLock { state in
            state.now = state.now.advanced(by: duration)
            let due = state.sleepers.filter { $0.value.deadline <= state.now }
            for number in due.keys { state.sleepers[number] = nil }
            return due.values.sorted { $0.deadline < $1.deadline }
        }
        for sleeper in woken { sleeper.continuation.resume() }
    }
}
