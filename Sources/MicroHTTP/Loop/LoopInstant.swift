import Glibc

/// A moment on the clock of the loops, which also runs while the machine sleeps.
///
/// It is a number where `ContinuousClock.Instant` has a layout that is known only at run time: whatever holds one of those is
/// copied and destroyed by calls of the runtime, several times for each request.
struct LoopInstant: Comparable, Sendable {
    private let nanoseconds: Int64

    private init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    static var now: LoopInstant {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return LoopInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// The time from this instant to a later one.
    func duration(to later: LoopInstant) -> Duration { .nanoseconds(later.nanoseconds - nanoseconds) }

    /// The nanoseconds from this instant to a later one.
    func nanoseconds(to later: LoopInstant) -> Int { Int(later.nanoseconds - nanoseconds) }

    static func < (left: LoopInstant, right: LoopInstant) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The instant that is later by a duration.
    static func + (left: LoopInstant, right: Duration) -> LoopInstant { left + Span(right) }

    static func + (left: LoopInstant, right: Span) -> LoopInstant {
        LoopInstant(nanoseconds: left.nanoseconds + right.nanoseconds)
    }

    /// A duration as it is added to many instants; more than a hundred years count as a hundred years.
    struct Span: Sendable {
        fileprivate let nanoseconds: Int64

        init(_ duration: Duration) {
            let (seconds, attoseconds) = duration.components
            nanoseconds = min(seconds, 3_155_760_000) * 1_000_000_000 + attoseconds / 1_000_000_000
        }
    }
}
