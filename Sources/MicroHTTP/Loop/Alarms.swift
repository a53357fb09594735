import HeapModule

/// The instants at which the loop has to check an exchange or a connection, the earliest first.
///
/// An alarm is not cancelled: when it is due, the loop looks up its subject, which may have ended. So that the alarms
/// of ended exchanges with distant deadlines do not accumulate, `sweep` removes them once they are the majority.
struct Alarms {
    /// The check that is due with the alarm.
    enum Subject: Equatable {
        /// The deadline of the exchange with this number.
        case exchange(UInt64)
        /// The heartbeat of the stream with this number.
        case silence(UInt64)
        /// The idle timeout of a parked connection whose client does not read its answer or sends no request.
        case parked(UInt64)
        /// The time of a connection over capacity to send a request.
        case overCapacity(UInt64)
        /// The next check of idle connections.
        case idleConnections
        /// The next check of requests that are being received.
        case receiving
        /// The next attempt to accept clients.
        case listening
    }

    private struct Alarm: Comparable {
        let instant: LoopInstant
        let subject: Subject

        static func < (left: Alarm, right: Alarm) -> Bool { left.instant < right.instant }
    }

    private var heap = Heap<Alarm>()
    private static let sweepCount = 4096

    /// The instant of the earliest alarm.
    var next: LoopInstant? { heap.min?.instant }

    /// Adds an alarm; O(log n) in the number of alarms.
    mutating func set(_ subject: Subject, at instant: LoopInstant) {
        heap.insert(Alarm(instant: instant, subject: subject))
    }

    /// Removes the due alarms and returns their subjects, the earliest first.
    ///
    /// An alarm that is set while these are handled comes in a later call, also where it is due already: an iteration of the
    /// loop ends, however long the process was paused.
    mutating func takeDue(now: LoopInstant) -> [Subject] {
        var due: [Subject] = []
        while let alarm = heap.min, alarm.instant <= now { due.append(heap.removeMin().subject) }
        return due
    }

    /// Removes the alarms whose subject has ended, when there are more than twice as many alarms as subjects.
    ///
    /// O(n), after at least n / 2 insertions: constant per alarm.
    mutating func sweep(subjectsCount: () -> Int, exists: (Subject) -> Bool) {
        guard heap.count > Self.sweepCount, heap.count > 2 * subjectsCount() else { return }
        heap = Heap(heap.unordered.filter { exists($0.subject) })
    }
}
