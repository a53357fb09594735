internal import CoreMetrics
internal import Glibc
internal import MicroHTTP
internal import StateJournal
internal import StateStore
internal import Synchronization

/// The metrics of a server, counted as it happens or read for `/metrics`; any thread may call any method.
final class ServerMetrics: Sendable {
    struct Figures: Sendable {
        var hub: HubFigures
        var transport: Statistics
        var answers = Answers()
        var mailboxActions: Int
        var turnsInFlight: Int
        var idempotencyKeys: Int
        var scheduled = 0
        /// The bytes of the published state as JSON, where they are counted, and in memory.
        var stateBytes: (json: Int?, memory: Int) = (nil, 0)
        var memoryBytes: Int
        var memoryClients: Int
        var memoryLargestShare: Int
        var isDurable: Bool
        var isDraining: Bool
        var knowsTokens = true
        var isTokenFileUp = true
        var isKeyFileUp = true
        var isWriter = false
        var staleSeconds = 0
        var hooks = Hooks.Figures()
        var directory: DirectoryFigures?
    }

    let settings: Settings
    private let exporter = MetricsExporter(MetricDescription.all)
    private let factory: any MetricsFactory
    let isShared: Bool
    private let journal: (any Journal)?
    private let commits, journalCommits, journalFailures, journalRefusals, requests,
        transportRefusals, hooksDelivered, hooksFailed, hookRefusals, hookResets: any CounterHandler
    /// By the number of the outcome of a request that was sent on.
    private let forwarded: [any CounterHandler]
    private let turnTime, appendTime, lateness: any TimerHandler
    private let appendsCount = Atomic(0)
    private let appendNanoseconds = Atomic<Int64>(0)
    private let turnSize, woken: any RecorderHandler
    private let waits, streams: [any CounterHandler]
    private let actions: CountersByLabel<ActionLabel>
    private let refusals: CountersByLabel<String>
    private let answers: CountersByLabel<Int>
    private let answerTime: Distribution
    private let sharedAnswerTime: (any TimerHandler)?
    private let meters = Mutex<[String: any MeterHandler]>([:])
    private let sampled = Mutex((requests: 0, refused: 0, answers: Answers()))

    private struct ActionLabel: Hashable {
        let type: String
        let outcome: Outcome.Kind
    }

    init(
        types: [String] = [], settings: Settings = Settings(), journal: (any Journal)? = nil, version: String? = nil,
        sharedWith program: any MetricsFactory = NOOPMetricsHandler.instance
    ) {
        self.settings = settings
        self.journal = journal
        isShared = !(program is NOOPMetricsHandler)
        let factory: any MetricsFactory =
            isShared ? MultiplexMetricsHandler(factories: [exporter, program]) : exporter
        self.factory = factory
        let counter = { @Sendable (name: String, labels: [(String, String)]) in
            factory.makeCounter(label: "storekeeper_\(name)", dimensions: labels)
        }
        commits = counter("commits_total", [])
        journalCommits = counter("journal_commits_total", [])
        journalFailures = counter("journal_failures_total", [])
        journalRefusals = counter("journal_refusals_total", [])
        forwarded = ["answered", "not-carried-out", "unknown"].map { counter("forwards_total", [("outcome", $0)]) }
        requests = counter("requests_total", [])
        transportRefusals = counter("transport_refusals_total", [])
        hooksDelivered = counter("hook_attempts_total", [("outcome", "delivered")])
        hooksFailed = counter("hook_attempts_total", [("outcome", "failed")])
        hookRefusals = counter("hook_refusals_total", [])
        hookResets = counter("hook_resets_total", [])
        turnTime = factory.makeTimer(label: "storekeeper_turn_seconds", dimensions: [])
        appendTime = factory.makeTimer(label: "storekeeper_journal_append_seconds", dimensions: [])
        lateness = factory.makeTimer(label: "storekeeper_scheduled_late_seconds", dimensions: [])
        turnSize = factory.makeRecorder(label: "storekeeper_turn_transactions", dimensions: [], aggregate: true)
        woken = factory.makeRecorder(label: "storekeeper_woken_watches", dimensions: [], aggregate: true)
        waits = Watch.Route.allCases.map { counter("waits_total", [("route", $0.label)]) }
        // An action has no stream.
        streams = Watch.Route.streamed.map { counter("streams_total", [("route", $0.label)]) }
        let types = Set(types)
        actions = CountersByLabel { label, _ in
            types.contains(label.type) ? label : ActionLabel(type: Self.other, outcome: label.outcome)
        } make: { label in
            counter("actions_total", [("type", label.type), ("outcome", label.outcome.rawValue)])
        }
        // A domain may make the codes of its rejections of anything, so their number is bounded.
        refusals = CountersByLabel { code, count in
            count < Self.codesMax ? code : Self.other
        } make: { code in
            counter("refusals_total", [("code", code)])
        }
        answers = CountersByLabel { index, _ in
            index
        } make: { index in
            let (method, status) = index.quotientAndRemainder(dividingBy: Answers.statuses.count)
            return counter(
                "answers_total", [("method", Answers.methods[method]), ("status", Answers.statuses[status])])
        }
        answerTime = exporter.distribution("storekeeper_answer_seconds")
        sharedAnswerTime = isShared ? program.makeTimer(label: "storekeeper_answer_seconds", dimensions: []) : nil
        // A rule that looks for a rise misses the first one of a counter that was not there before.
        for method in Answers.methods.indices { answers.add(0, (method + 1) * Answers.statuses.count - 1) }
        for code in ["internal", "journal-damaged", "not-durable", "outcome-unknown"] { refusals.add(0, code) }
        set("start_time_seconds", Int(time(nil)))
        set("build_info", 1, (version.map { [("version", $0)] } ?? []) + [("storekeeper", StateServer.version)])
        set("connections_limit", settings.connectionsLimit)
        set("waiters_limit", settings.watchLimits.watchesMax)
        set("mailbox_actions_limit", settings.mailboxActionsMax)
        set("idempotency_keys_limit", settings.idempotencyKeysMax)
        set("scheduled_actions_limit", settings.scheduleMax)
        set("memory_limit_bytes", settings.memoryBytesMax)
        set("state_limit_bytes", settings.stateBytesMax)
        set("state_memory_limit_bytes", settings.stateMemoryBytesMax)
    }

    private static let other = "other"
    static let codesMax = 200

    // MARK: What is counted as it happens

    func observer(_ landed: @escaping @Sendable () -> Void = {}) -> StoreObserver {
        StoreObserver(
            clock: Self.now,
            computed: { [turnTime, turnSize] count, time in
                turnTime.recordNanoseconds(Self.nanoseconds(time))
                turnSize.record(Int64(count))
            },
            decided: { [actions] in actions.add($2, ActionLabel(type: $0, outcome: $1)) },
            landed: { [commits] count in
                commits.increment(by: Int64(count))
                landed()
            },
            appended: { [self] result, count, time in
                appendTime.recordNanoseconds(Self.nanoseconds(time))
                appendsCount.add(1, ordering: .relaxed)
                appendNanoseconds.add(Self.nanoseconds(time), ordering: .relaxed)
                switch result {
                case .landed: journalCommits.increment(by: Int64(count))
                case .refused: journalRefusals.increment(by: 1)
                case .failed, .unknown: journalFailures.increment(by: 1)
                }
            },
            woken: { [woken] count in woken.record(Int64(count)) },
            fired: { [lateness] in lateness.recordNanoseconds(Self.nanoseconds($0)) })
    }

    var appends: (count: Int, nanoseconds: Int64) {
        (appendsCount.load(ordering: .relaxed), appendNanoseconds.load(ordering: .relaxed))
    }

    func count(_ problems: [String: Int]) {
        guard !problems.isEmpty else { return }
        for (code, count) in problems { refusals.add(count, code) }
    }

    func count(_ outcome: Cluster.Outcome) {
        let number =
            switch outcome {
            case .answered: 0
            case .notCarriedOut, .ended: 1
            case .lost, .unknown: 2
            }
        forwarded[number].increment(by: 1)
    }

    func waitBegan(_ route: Watch.Route) { waits[route.rawValue].increment(by: 1) }

    func streamBegan(_ route: Watch.Route) { streams[route.rawValue].increment(by: 1) }

    func hookDelivered(isRefused: Bool) {
        hooksDelivered.increment(by: 1)
        if isRefused { hookRefusals.increment(by: 1) }
    }

    func hookFailed() { hooksFailed.increment(by: 1) }

    func hookReset() { hookResets.increment(by: 1) }

    @Sendable
    private static func now() -> Instant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    private static func nanoseconds(_ time: Duration) -> Int64 { Int64(clamping: time.attoseconds / 1_000_000_000) }

    // MARK: What is read when `/metrics` is asked for

    func text(after figures: Figures) -> [UInt8] {
        sample(figures)
        return exporter.text()
    }

    func sample(_ figures: Figures) {
        set("ready", figures.isDurable && !figures.isDraining && figures.knowsTokens ? 1 : 0)
        set("version", Int(figures.hub.latest))
        set("oldest_version", Int(figures.hub.oldest))
        set("history_commits", figures.hub.historyCommitsCount)
        set("history_bytes", figures.hub.historyBytes)
        set("mailbox_actions", figures.mailboxActions)
        set("idempotency_keys", figures.idempotencyKeys)
        set("scheduled_actions", figures.scheduled)
        set("state_bytes", figures.stateBytes.json ?? 0)
        set("state_memory_bytes", figures.stateBytes.memory)
        set("connections", figures.transport.connections)
        set("memory_bytes", figures.memoryBytes)
        set("memory_clients", figures.memoryClients)
        set("memory_share_bytes", figures.memoryLargestShare)
        set("journal_up", figures.isDurable ? 1 : 0)
        set("token_file_up", figures.isTokenFileUp ? 1 : 0)
        set("key_file_up", figures.isKeyFileUp ? 1 : 0)
        set("journal_turns", figures.turnsInFlight)
        set("cluster_writer", figures.isWriter ? 1 : 0)
        set("cluster_stale_seconds", figures.staleSeconds)
        set("hooks", figures.hooks.hooks)
        set("hooks_failing", figures.hooks.failing.count)
        set("hooks_paused", figures.hooks.paused.count)
        set("hook_behind_versions", figures.hooks.behind)
        if let bytes = journal?.bytesCount { set("journal_bytes", bytes) }
        if let bytes = figures.directory?.freeBytes { set("journal_free_bytes", bytes) }
        if let directory = figures.directory { set("backup_time_seconds", directory.backupTime ?? 0) }
        var waiters = 0
        for route in Watch.Route.allCases {
            waiters += figures.hub.waits[route] + figures.hub.streams[route]
            set("waits", figures.hub.waits[route], [("route", route.label)])
        }
        for route in Watch.Route.streamed { set("streams", figures.hub.streams[route], [("route", route.label)]) }
        set("waiters", waiters)
        let (received, refused, answered) = sampled.withLock { last in
            let risen = (
                figures.transport.requests - last.requests, figures.transport.refused - last.refused,
                figures.answers.risen(since: last.answers)
            )
            last = (figures.transport.requests, figures.transport.refused, figures.answers)
            return risen
        }
        requests.increment(by: Int64(received))
        transportRefusals.increment(by: Int64(refused))
        for (index, count) in answered.counts.enumerated() where count > 0 {
            answers.add(count, index)
        }
        answerTime.add(answered.times.map(\.count), sum: Double(answered.nanoseconds) / 1e9)
        // Another system takes one time after the other: the mean of those in a bucket, for each of them.
        guard let sharedAnswerTime else { return }
        for time in answered.times where time.count > 0 {
            for _ in 0..<time.count { sharedAnswerTime.recordNanoseconds(Int64(time.nanoseconds / time.count)) }
        }
    }

    private func set(_ name: String, _ value: Int, _ labels: [(String, String)] = []) {
        let key = labels.reduce(name) { "\($0) \($1.1)" }
        // One thread at a time samples, so no other thread makes the meter meanwhile.
        let known = meters.withLock { $0[key] }
        let meter = known ?? factory.makeMeter(label: "storekeeper_\(name)", dimensions: labels)
        if known == nil { meters.withLock { $0[key] = meter } }
        meter.set(Int64(value))
    }
}

private final class CountersByLabel<Label: Hashable & Sendable>: Sendable {
    private struct Counters {
        var all: [Label: any CounterHandler] = [:]
        /// The counter that was raised last, because most are raised often in a row.
        var last: (label: Label, counter: any CounterHandler)?
    }

    private let counters = Mutex(Counters())
    private let bound: @Sendable (Label, _ count: Int) -> Label
    private let make: @Sendable (Label) -> any CounterHandler

    /// Where there are so many counters, a label without one counts under the label that `bound` returns.
    init(
        bound: @escaping @Sendable (Label, _ count: Int) -> Label,
        make: @escaping @Sendable (Label) -> any CounterHandler
    ) {
        self.bound = bound
        self.make = make
    }

    func add(_ count: Int, _ label: Label) {
        let known = counters.withLock { counters -> (any CounterHandler)? in
            if let last = counters.last, last.label == label { return last.counter }
            guard let known = counters.all[label] else { return nil }
            counters.last = (label, known)
            return known
        }
        (known ?? counter(label)).increment(by: Int64(count))
    }

    /// The counter of a label; the program's own metrics system makes a new one outside the lock.
    private func counter(_ label: Label) -> any CounterHandler {
        let label = bound(label, counters.withLock { $0.all.count })
        if let known = counters.withLock({ $0.all[label] }) { return known }
        let made = make(label)
        return counters.withLock { counters in
            // Another thread may have been first.
            if let known = counters.all[label] { return known }
            counters.all[label] = made
            return made
        }
    }
}

extension Watch.Route {
    fileprivate var label: String {
        switch self {
        case .state: "state"
        case .view: "view"
        case .changes: "changes"
        case .action: "action"
        }
    }

    fileprivate static let streamed: [Watch.Route] = [.state, .view, .changes]
}
