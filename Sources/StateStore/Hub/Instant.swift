/// A moment on a clock that never goes back, in nanoseconds since an arbitrary start.
///
/// The hub and its watches are given the time as an argument: nothing in this target looks at a clock.
package struct Instant: Hashable, Comparable, Sendable {
    /// The count.
    package var nanoseconds: Int64

    /// Makes an instant.
    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// Earlier first.
    package static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The instant that much later.
    package static func + (left: Instant, right: Duration) -> Instant {
        let (seconds, attoseconds) = right.components
        return Instant(nanoseconds: left.nanoseconds + seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }

    /// The time from one instant to a later one.
    package static func - (left: Instant, right: Instant) -> Duration {
        .nanoseconds(left.nanoseconds - right.nanoseconds)
    }
}
