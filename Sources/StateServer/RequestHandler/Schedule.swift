internal import Dispatch
internal import StateStore

/// The clock, the queues and the random numbers of a request handler, as values that a test replaces.
struct Schedule: Sendable {
    /// The time on the clock of waits and streams.
    var now: @Sendable () -> Instant
    /// Runs work after a time.
    var after: @Sendable (Duration, @escaping @Sendable () -> Void) -> Void
    /// Runs work that reads the disk or encodes a large value, on the read queue for the number of the exchange.
    var read: @Sendable (UInt64, @escaping @Sendable () -> Void) -> Void
    /// A random number in a range.
    var random: @Sendable (ClosedRange<Double>) -> Double

    /// The queues of the store's hub.
    ///
    /// After each encoding the encoding queue rests for four times as long as it took: a fifth of a processor is the most
    /// that large values cost, whatever the number of streams and of changes. A stream of 5 MB that is encoded in 15 ms
    /// then shows a new value every 75 ms at most.
    static func hubQueues() -> WatchHub.Queues {
        let fanOut = DispatchQueue(label: "storekeeper.fan-out")
        let encoding = DispatchQueue(label: "storekeeper.encoding", qos: .utility)
        return WatchHub.Queues(
            fanOut: { fanOut.async(execute: $0) },
            encoding: { encode in
                encoding.async {
                    let start = DispatchTime.now()
                    encode()
                    let end = DispatchTime.now()
                    encoding.suspend()
                    let rest = 4 * Int(end.uptimeNanoseconds - start.uptimeNanoseconds)
                    fanOut.asyncAfter(deadline: end + .nanoseconds(rest)) { encoding.resume() }
                }
            })
    }

    /// The monotonic clock, new queues, and the system's random numbers.
    static func live() -> Schedule {
        // Four queues bound the processor time that slow reads take from the rest.
        let readers = (0..<4).map { DispatchQueue(label: "storekeeper.reader.\($0)") }
        let timers = DispatchQueue(label: "storekeeper.timers")
        let start = ContinuousClock.now
        return Schedule(
            now: { Instant(nanoseconds: 0) + start.duration(to: .now) },
            after: { delay, work in
                timers.asyncAfter(deadline: .now() + .nanoseconds(Int(delay / .nanoseconds(1))), execute: work)
            },
            read: { number, work in readers[Int(number % UInt64(readers.count))].async(execute: work) },
            random: { .random(in: $0) })
    }
}
