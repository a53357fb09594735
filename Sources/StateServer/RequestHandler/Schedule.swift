internal import Dispatch
internal import StateStore

/// The clock, the queues and the chance of a request handler, as values: tests turn them by hand.
struct Schedule: Sendable {
    /// The clock of waits and streams.
    var now: @Sendable () -> Instant
    /// Runs work after a time.
    var after: @Sendable (Duration, @escaping @Sendable () -> Void) -> Void
    /// Runs work that reads the disk or encodes much, for the exchange with this number.
    var read: @Sendable (UInt64, @escaping @Sendable () -> Void) -> Void
    /// A number in a range, by chance.
    var random: @Sendable (ClosedRange<Double>) -> Double

    /// The queues of the store's hub.
    ///
    /// A value that takes long is encoded at most half of the time: the machine's other half stays with writers, however
    /// many stream the value and however often it changes.
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
                    let rest = Int(end.uptimeNanoseconds - start.uptimeNanoseconds)
                    fanOut.asyncAfter(deadline: end + .nanoseconds(rest)) { encoding.resume() }
                }
            })
    }

    /// The machine's clock, and queues of their own.
    static func live() -> Schedule {
        // Few, so that many who ask for what takes long take turns.
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
