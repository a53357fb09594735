import HeapModule

/// The moments at which the loop has to look at something, the nearest first.
///
/// Alarms are not taken back; who rings is looked up when the time has come, and may be gone. So that answered
/// exchanges with distant deadlines do not pile up, the dead are swept out when they outnumber the living.
struct Alarms {
    /// Whom an alarm is for.
    enum Subject: Equatable {
        /// The end of an exchange's time.
        case exchange(UInt64)
        /// The end of a stream's silence.
        case silence(UInt64)
        /// A look at a parked connection that takes no answer, or sends no request.
        case parked(UInt64)
        case surplusConnection(UInt64)
        /// The next try to let clients in.
        case listening
    }

    private struct Alarm: Comparable {
        let instant: ContinuousClock.Instant
        let subject: Subject

        static func < (left: Alarm, right: Alarm) -> Bool { left.instant < right.instant }
    }

    private var heap = Heap<Alarm>()
    private static let sweepCount = 4096

    /// The nearest moment.
    var next: ContinuousClock.Instant? { heap.min?.instant }

    /// Adds an alarm; O(log n) in the number of alarms.
    mutating func set(_ subject: Subject, at instant: ContinuousClock.Instant) {
        heap.insert(Alarm(instant: instant, subject: subject))
    }

    /// Removes and returns an alarm whose time has come.
    mutating func popDue(now: ContinuousClock.Instant) -> Subject? {
        guard let alarm = heap.min, alarm.instant <= now else { return nil }
        return heap.removeMin().subject
    }

    /// Throws out alarms whose subject is gone, when there are more than twice as many alarms as living subjects.
    ///
    /// O(n), after at least n / 2 insertions: constant per alarm.
    mutating func sweep(livingCount: Int, isLiving: (Subject) -> Bool) {
        guard heap.count > Self.sweepCount, heap.count > 2 * livingCount else { return }
        heap = Heap(heap.unordered.filter { isLiving($0.subject) })
    }
}
