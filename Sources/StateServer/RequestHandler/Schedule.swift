internal import Dispatch
internal import FoundationEssentials
internal import Glibc
internal import StateStore

/// The clock, the queues and the random numbers of a request handler, as values that a test replaces.
struct Schedule: Sendable {
    var now: @Sendable () -> Instant
    var time: @Sendable () -> Timestamp
    var after: @Sendable (Duration, @escaping @Sendable () -> Void) -> Void
    var slow: @Sendable (SlowWork.Kind, _ client: String, @escaping @Sendable () -> Void) -> Void
    var random: @Sendable (ClosedRange<Double>) -> Double

    /// The queues of the store's hub.
    ///
    /// After each encoding the encoding queue rests for four times the processor time that it took: a fifth of a processor is
    /// the most that large values cost, whatever the number of streams and of changes. A stream of 5 MB that is encoded in 15 ms
    /// then shows a new value every 75 ms at most.
    ///
    /// Views with arguments have threads of their own, where each client waits for itself.
    static func hubQueues() -> WatchHub.Queues {
        let views = SlowWork(width: width)
        let fanOut = DispatchQueue(label: "storekeeper.fan-out")
        let encoding = DispatchQueue(label: "storekeeper.encoding", qos: .utility)
        return WatchHub.Queues(
            fanOut: { fanOut.async(execute: $0) },
            encoding: { encode in
                encoding.async {
                    let start = processorTime()
                    encode()
                    let rest = (processorTime() - start) * 4
                    encoding.suspend()
                    fanOut.asyncAfter(deadline: .now() + rest / .seconds(1)) { encoding.resume() }
                }
            }, views: views.run)
    }

    /// Half of the processors stay free of slow work, for the event loop and the turns.
    private static var width: Int { max(1, ProcessInfo.processInfo.activeProcessorCount / 2) }

    /// The time for which the current thread has had a processor.
    @Sendable
    static func processorTime() -> Instant {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// The monotonic clock, new queues, and the system's random numbers.
    static func live() -> Schedule {
        let works = Dictionary(
            uniqueKeysWithValues: SlowWork.Kind.allCases.map { kind in
                (kind, SlowWork(width: kind == .read ? width : 1))
            })
        let timers = DispatchQueue(label: "storekeeper.timers")
        let start = ContinuousClock.now
        return Schedule(
            now: { Instant(nanoseconds: 0) + start.duration(to: .now) },
            time: Timestamp.now,
            after: { delay, work in
                timers.asyncAfter(deadline: .now() + .nanoseconds(Int(delay / .nanoseconds(1))), execute: work)
            },
            slow: { kind, client, work in works[kind]?.run(for: client, work) },
            random: { .random(in: $0) })
    }
}
