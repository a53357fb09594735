import Glibc
import HeapModule

/// A number, because each copy of a `ContinuousClock.Instant`, with its layout known only at run time, is a call.
struct LoopInstant: Comparable, Sendable {
    private let nanoseconds: Int64

    private init(_ nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    static var now: LoopInstant {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return LoopInstant(Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    func duration(to later: LoopInstant) -> Duration { .nanoseconds(later.nanoseconds - nanoseconds) }

    func nanoseconds(to later: LoopInstant) -> Int { Int(later.nanoseconds - nanoseconds) }

    static func < (left: LoopInstant, right: LoopInstant) -> Bool { left.nanoseconds < right.nanoseconds }

    static func + (left: LoopInstant, right: Duration) -> LoopInstant { left + Span(right) }

    static func + (left: LoopInstant, right: Span) -> LoopInstant { Self(left.nanoseconds + right.nanoseconds) }

    /// A duration as it is added to many instants; more than a hundred years count as a hundred years.
    struct Span: Sendable {
        fileprivate let nanoseconds: Int64

        init(_ duration: Duration) {
            let (seconds, attoseconds) = duration.components
            nanoseconds = min(seconds, 3_155_760_000) * 1_000_000_000 + attoseconds / 1_000_000_000
        }
    }
}

/// An alarm is not cancelled: when it is due, the loop looks up its subject, and `sweep` bounds the ended ones.
struct Alarms {
    enum Subject: Equatable {
        case exchange(UInt64)
        case idleConnections
        case receiving
        case listening
    }

    private struct Alarm: Comparable {
        let instant: LoopInstant
        let subject: Subject

        static func < (left: Alarm, right: Alarm) -> Bool { left.instant < right.instant }
    }

    private var heap = Heap<Alarm>()
    private static let sweepCount = 4096

    var next: LoopInstant? { heap.min?.instant }

    mutating func set(_ subject: Subject, at instant: LoopInstant) {
        heap.insert(Alarm(instant: instant, subject: subject))
    }

    /// An alarm that is set while these are handled comes in a later call, so that an iteration ends.
    mutating func takeDue(now: LoopInstant) -> [Subject] {
        var due: [Subject] = []
        while let alarm = heap.min, alarm.instant <= now { due.append(heap.removeMin().subject) }
        return due
    }

    var mayBeOver: Bool { heap.count > Self.sweepCount }

    /// O(n), after at least n / 2 insertions: constant per alarm.
    mutating func sweep(subjectsCount: Int, exists: (Subject) -> Bool) {
        guard mayBeOver, heap.count > 2 * subjectsCount else { return }
        heap = Heap(heap.unordered.filter { exists($0.subject) })
    }
}
