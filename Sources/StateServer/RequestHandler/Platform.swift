internal import Dispatch
internal import FoundationEssentials
internal import StateStore
internal import Threads

/// The clocks, the threads for slow work and the chance that the handlers are given; tests give their own.
struct Platform: Sendable {
    /// The kind of slow work; each kind has threads of its own, so that no kind waits for another.
    enum Kind: CaseIterable {
        case read
        case past
        case dryRun
        case fork
        case parse
    }

    var now: @Sendable () -> Instant
    var time: @Sendable () -> Timestamp
    var after: @Sendable (Duration, @escaping @Sendable () -> Void) -> Void
    var slowWork: @Sendable (Kind, _ client: String, Duration?, @escaping @Sendable () -> Void) -> Void
    var random: @Sendable (ClosedRange<Double>) -> Double

    static func live() -> (platform: Platform, hub: WatchHub.Queues) {
        // One client has half of the processors at most.
        let width = max(1, ProcessInfo.processInfo.activeProcessorCount / 2)
        let works = Dictionary(
            uniqueKeysWithValues: Kind.allCases.map { ($0, SlowWork(width: $0 == .read ? width : 1)) })
        let timers = DispatchQueue(label: "storekeeper.timers")
        let start = ContinuousClock.now
        let platform = Platform(
            now: { Instant(nanoseconds: 0) + start.duration(to: .now) },
            time: Timestamp.now,
            after: { delay, work in
                timers.asyncAfter(deadline: .now() + .nanoseconds(Int(delay / .nanoseconds(1))), execute: work)
            },
            slowWork: { kind, client, time, work in works[kind]?.run(for: client, taking: time, work) },
            random: { .random(in: $0) })
        return (
            platform,
            .dispatch { client, time, isFirst, work in
                works[.read]?.run(for: client, taking: time, isFirst: isFirst, work)
            }
        )
    }

    func slow(
        _ kind: Kind, _ client: String, taking time: Duration? = nil, _ work: @escaping @Sendable () -> Void
    ) {
        slowWork(kind, client, time, work)
    }

    @Sendable
    static func processorTime() -> Instant { Instant(nanoseconds: 0) + SystemThread.processorTime() }
}
