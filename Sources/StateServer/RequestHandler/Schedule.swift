internal import Dispatch
internal import FoundationEssentials
internal import StateHTTP
internal import StateJSON
internal import StateStore
internal import Synchronization
internal import Threads

struct Schedule: Sendable {
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

    static func live() -> (schedule: Schedule, hub: WatchHub.Queues) {
        // One client has half of the processors at most.
        let width = max(1, ProcessInfo.processInfo.activeProcessorCount / 2)
        let works = Dictionary(
            uniqueKeysWithValues: Kind.allCases.map { ($0, SlowWork(width: $0 == .read ? width : 1)) })
        let timers = DispatchQueue(label: "storekeeper.timers")
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

extension RequestHandler {
    /// Takes back what subjects without a token have scheduled themselves: none of it could be dispatched, and it takes room.
    ///
    /// The first thousand go in one commit, and then the others; any thread may call it.
    func removeOrphans(tokensHaveChanged: Bool) {
        if tokensHaveChanged { areOrphansDue.store(true, ordering: .relaxed) }
        guard areOrphansDue.load(ordering: .relaxed), cluster?.mayDispatchScheduled ?? true,
            let known = authenticator.subjects
        else { return }
        areOrphansDue.store(false, ordering: .relaxed)
        var orphans: [Transaction.Item] = []
        hub.latest.schedule.visit { action in
            guard orphans.count < 1000, !action.isOfState, let by = action.name.by,
                !known.contains(ExactText(by)), !Access.isOfHook(by), authenticator.needsToken(action.credential)
            else { return }
            orphans.append(.init(StoreUnschedule(name: action.name.text, by: by)))
        }
        guard !orphans.isEmpty else { return }
        store.enqueue(
            PendingTransaction(Transaction(orphans, form: .batch)) { [self] outcome in
                areOrphansDue.store(true, ordering: .relaxed)
                // One of them may have been dispatched meanwhile; the next look at the tokens tries again.
                guard case .committed = outcome else { return }
                schedule.after(.zero) { self.removeOrphans(tokensHaveChanged: false) }
            })
        store.flush()
    }
}
