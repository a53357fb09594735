/// The time of a history, by which idempotency keys expire.
///
/// The time advances by what the wall clock and a monotonic clock have both advanced while a process runs. A wall clock that
/// jumps by a second or more therefore makes no key expire early. The time between two processes does not count, because no
/// clock measures it that cannot jump: a key lives longer by that time.
struct HistoryClock: Sendable {
    private(set) var time: Timestamp?
    private var wall: Timestamp?
    private var monotonic = Instant(nanoseconds: 0)

    /// Within so many milliseconds the wall clock is trusted, so that few turns ask for the monotonic time.
    private static var resolution: Int64 { 1000 }

    /// Makes a clock that goes on from a time; nil for that of the wall clock, where a history begins.
    init(_ time: Timestamp?) { self.time = time }

    /// Returns the time of the history now.
    mutating func read(wall now: Timestamp, monotonic clock: () -> Instant) -> Timestamp {
        guard let time, let wall else { return begin(wall: now, clock()) }
        // The difference of any two times fits where neither is near the ends of their type; a clock may be anywhere.
        let (elapsed, isBeyond) = now.milliseconds.subtractingReportingOverflow(wall.milliseconds)
        if !isBeyond, abs(elapsed) < Self.resolution {
            return Timestamp(milliseconds: time.milliseconds + max(0, elapsed))
        }
        let instant = clock()
        let passed = (instant.nanoseconds - monotonic.nanoseconds) / 1_000_000
        let counted = Timestamp(milliseconds: time.milliseconds + max(0, min(isBeyond ? 0 : elapsed, passed)))
        (self.time, self.wall, monotonic) = (counted, now, instant)
        return counted
    }

    private mutating func begin(wall now: Timestamp, _ instant: Instant) -> Timestamp {
        let begun = time ?? now
        (time, wall, monotonic) = (begun, now, instant)
        return begun
    }
}
