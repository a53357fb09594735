internal import FoundationEssentials

/// Milliseconds since 1970-01-01T00:00:00Z.
public struct Timestamp: Hashable, Comparable, Sendable {
    /// Milliseconds since 1970-01-01T00:00:00Z, negative before.
    public var milliseconds: Int64

    /// Makes a timestamp of milliseconds since 1970-01-01T00:00:00Z.
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Whether the left timestamp is earlier.
    public static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }

    /// The timestamp that is later by a duration, or the first or the last of all.
    package func advanced(by duration: Duration) -> Timestamp {
        advanced(byMilliseconds: Int64(clamping: duration.attoseconds / 1_000_000_000_000_000))
    }

    func advanced(byMilliseconds later: Int64) -> Timestamp {
        let (sum, isBeyond) = milliseconds.addingReportingOverflow(later)
        return Timestamp(milliseconds: isBeyond ? (milliseconds < 0 ? .min : .max) : sum)
    }

    /// The time of the system's clock.
    ///
    /// Nothing else in this target reads a clock: every other function takes the time as an argument.
    public static func now() -> Timestamp {
        // A clock may be anywhere.
        let milliseconds = (Date().timeIntervalSince1970 * 1000).rounded(.towardZero)
        return Timestamp(milliseconds: Int64(exactly: milliseconds) ?? (milliseconds < 0 ? .min : .max))
    }
}

/// A moment on a monotonic clock, in nanoseconds since an arbitrary start.
///
/// The hub and its watches take the time as an argument, so that tests set it.
package struct Instant: Hashable, Comparable, Sendable {
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    package static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The instant that is later by a duration, or the first or the last of all.
    package static func + (left: Instant, right: Duration) -> Instant {
        Instant(nanoseconds: Int64(clamping: Int128(left.nanoseconds) + right.attoseconds / 1_000_000_000))
    }

    package static func - (left: Instant, right: Instant) -> Duration {
        .nanoseconds(left.nanoseconds - right.nanoseconds)
    }
}
