internal import Dispatch
internal import FoundationEssentials
internal import StateStore
internal import Threads

/// The clock, the queues and the random numbers of a request handler, as values that a test replaces.
struct Schedule: Sendable {
    /// The kind of slow work; each kind has threads of its own, so that no kind waits for another.
    enum Kind: CaseIterable {
        /// Evaluates or encodes what is read or watched, indents it, or reads the journal.
        case read
        case past
        case dryRun
        /// Runs the actions of a history again, for a fork.
        case fork
        /// Parses a long body, or writes the answers to many lines.
        case parse
    }

    var now: @Sendable () -> Instant
    var time: @Sendable () -> Timestamp
    var after: @Sendable (Duration, @escaping @Sendable () -> Void) -> Void
    /// Runs slow work in turn by client, as ``SlowWork`` does, with the time that it has taken before.
    var slowWork: @Sendable (Kind, _ client: String, Duration?, @escaping @Sendable () -> Void) -> Void
    var random: @Sendable (ClosedRange<Double>) -> Double

    /// The clock, queues and random numbers of a server, with the queues of its store's hub.
    ///
    /// What is watched is evaluated and encoded by the threads for reads.
    static func live() -> (schedule: Schedule, hub: WatchHub.Queues) {
        // One client has half of the processors at most.
        let width = max(1, ProcessInfo.processInfo.activeProcessorCount / 2)
        let works = Dictionary(
            uniqueKeysWithValues: Kind.allCases.map { ($0, SlowWork(width: $0 == .read ? width : 1)) })
        let timers = DispatchQueue(label: "storekeeper.timers")
        let fanOut = DispatchQueue(label: "storekeeper.fan-out")
        let start = ContinuousClock.now
        let schedule = Schedule(
            now: { Instant(nanoseconds: 0) + start.duration(to: .now) },
            time: Timestamp.now,
            after: { delay, work in
                timers.asyncAfter(deadline: .now() + .nanoseconds(Int(delay / .nanoseconds(1))), execute: work)
            },
            slowWork: { kind, client, time, work in works[kind]?.run(for: client, taking: time, work) },
            random: { .random(in: $0) })
        return (
            schedule,
            WatchHub.Queues(fanOut: { fanOut.async(execute: $0) }) { client, time, isFirst, work in
                works[.read]?.run(for: client, taking: time, isFirst: isFirst, work)
            }
        )
    }

    func slow(
        _ kind: Kind, _ client: String, taking time: Duration? = nil, _ work: @escaping @Sendable () -> Void
    ) {
        slowWork(kind, client, time, work)
    }

    /// The time for which the current thread has had a processor.
    @Sendable
    static func processorTime() -> Instant { Instant(nanoseconds: 0) + SystemThread.processorTime() }
}
