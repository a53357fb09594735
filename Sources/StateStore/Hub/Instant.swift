/// A moment on a monotonic clock, in nanoseconds since an arbitrary start.
///
/// The hub and its watches take the time as an argument, so that tests set it.
package struct Instant: Hashable, Comparable, Sendable {
    /// Nanoseconds since the clock's start.
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    package static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The instant that is later by a duration, or the first or the last of all.
    package static func + (left: Instant, right: Duration) -> Instant {
        Instant(nanoseconds: Int64(clamping: Int128(left.nanoseconds) + right.attoseconds / 1_000_000_000))
    }

    /// The time from one instant to a later one.
    package static func - (left: Instant, right: Instant) -> Duration {
        .nanoseconds(left.nanoseconds - right.nanoseconds)
    }
}
