internal import CoreMetrics
internal import Glibc
internal import MicroHTTP
internal import StateStore
internal import Synchronization

/// The metrics of a server, counted as it happens or read for `/metrics`; any thread may call any method.
final class ServerMetrics: Sendable {
    let settings: Settings
    private let exporter: MetricsExporter
    private let commits, journalCommits, journalFailures, journalRefusals, requests, transportRefusals, hookRefusals,
        hookResets: Figure
    private let turnTime, turnSize, appendTime, lateness, woken, answerTime: Distribution
    private let waits, streams: [Figure]
    private let actions: CountersByLabel<ActionLabel>
    private let refusals, forwards, hookAttempts: CountersByLabel<String>
    private let answers: CountersByLabel<Int>
    private let sampled = Mutex((requests: 0, refused: 0, answers: Answers()))

    private struct ActionLabel: Hashable {
        let type: String
        let outcome: Outcome.Kind
    }

    init(
        types: [String] = [], settings: Settings = Settings(), version: String? = nil,
        sharedWith program: any MetricsFactory = NOOPMetricsHandler.instance
    ) {
        self.settings = settings
        let exporter = MetricsExporter(sharedWith: program)
        self.exporter = exporter
        commits = exporter.counter("commits_total", "Commits that were published.")
        journalCommits = exporter.counter("journal_commits_total", "Commits that the journal has taken.")
        journalFailures = exporter.counter("journal_failures_total", "Appends to the journal that failed.")
        journalRefusals = exporter.counter(
            "journal_refusals_total", "Turns that had to be computed again because another server had appended first.")
        requests = exporter.counter("requests_total", "Complete requests.")
        transportRefusals = exporter.counter("transport_refusals_total", "Requests that the transport refused.")
        hookRefusals = exporter.counter("hook_refusals_total", "Answers of hooks whose actions were refused.")
        hookResets = exporter.counter(
            "hook_resets_total", "Times that a hook missed commits, because they were no longer kept.")
        turnTime = exporter.timer(
            "turn_seconds", "Time to compute a turn, in seconds.",
            [0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3])
        appendTime = exporter.timer(
            "journal_append_seconds", "Time to append to the journal, with the sync, in seconds.",
            [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10])
        lateness = exporter.timer(
            "scheduled_late_seconds",
            "How much later than its time a scheduled action was committed or refused, in seconds.",
            [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 60, 600, 3600])
        turnSize = exporter.histogram(
            "turn_transactions", "Transactions in a turn.", [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024])
        woken = exporter.histogram(
            "woken_watches", "Waits and streams that a pass of the fan-out woke.",
            [0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000])
        answerTime = exporter.timer(
            "answer_seconds", "Time from a complete request to its answer, without waits and streams, in seconds.",
            Answers.boundsNanoseconds.map { Double($0) / 1e9 })
        waits = Watch.Route.allCases.map {
            let help = "Requests that began to wait, without streams, by route."
            return exporter.counter("waits_total", help, [("route", "\($0)")])
        }
        streams = Watch.Route.streamed.map {
            exporter.counter("streams_total", "Streams that began, by route.", [("route", "\($0)")])
        }
        let types = Set(types)
        actions = CountersByLabel { label, _ in
            types.contains(label.type) ? label : ActionLabel(type: Self.other, outcome: label.outcome)
        } make: {
            let labels = [("type", $0.type), ("outcome", $0.outcome.rawValue)]
            return exporter.counter("actions_total", "Actions that were decided, by type and outcome.", labels)
        }
        // A domain may make the codes of its rejections of anything, so their number is bounded.
        refusals = CountersByLabel { code, count in
            count < Self.codesMax ? code : Self.other
        } make: {
            exporter.counter(
                "refusals_total", "Problems in answers and in lines of bulk loads, by code.", [("code", $0)])
        }
        forwards = CountersByLabel {
            let help = "Actions sent on to the server that writes, by outcome."
            return exporter.counter("forwards_total", help, [("outcome", $0)])
        }
        hookAttempts = CountersByLabel {
            exporter.counter("hook_attempts_total", "Attempts to deliver to a hook, by outcome.", [("outcome", $0)])
        }
        answers = CountersByLabel { index in
            let (method, status) = index.quotientAndRemainder(dividingBy: Answers.statuses.count)
            return exporter.counter(
                "answers_total", "Answers to complete requests, by method and class of status.",
                [("method", Answers.methods[method]), ("status", Answers.statuses[status])])
        }
        // A rule that looks for a rise misses the first one of a counter that was not there before.
        for method in Answers.methods.indices { answers.add(0, (method + 1) * Answers.statuses.count - 1) }
        for code in ["internal", "journal-damaged", "not-durable", "outcome-unknown"] { refusals.add(0, code) }
        for outcome in ["answered", "not-carried-out", "unknown"] { forwards.add(0, outcome) }
        for outcome in ["delivered", "failed"] { hookAttempts.add(0, outcome) }
        exporter.gauge("start_time_seconds", "When the server was made, in seconds since 1970.").set(Int(time(nil)))
        exporter.gauge(
            "build_info", "Always 1; the labels have the versions of program and Storekeeper.",
            (version.map { [("version", $0)] } ?? []) + [("storekeeper", StateServer.version)]
        ).set(1)
    }

    var isShared: Bool { exporter.isShared }

    private static let other = "other"
    static let codesMax = 200

    // MARK: What is counted as it happens

    func observer(_ landed: @escaping @Sendable () -> Void = {}) -> StoreObserver {
        StoreObserver(
            clock: Self.now,
            computed: { [turnTime, turnSize] count, time in
                turnTime.record(Self.nanoseconds(time))
                turnSize.record(Int64(count))
            },
            decided: { [actions] in actions.add($2, ActionLabel(type: $0, outcome: $1)) },
            landed: { [commits] count in
                commits.increment(by: Int64(count))
                landed()
            },
            appended: { [self] result, count, time in
                appendTime.record(Self.nanoseconds(time))
                switch result {
                case .landed: journalCommits.increment(by: Int64(count))
                case .refused: journalRefusals.increment(by: 1)
                case .failed, .unknown: journalFailures.increment(by: 1)
                }
            },
            woken: { [woken] count in woken.record(Int64(count)) },
            fired: { [lateness] in lateness.record(Self.nanoseconds($0)) })
    }

    var appends: (count: Int, nanoseconds: Int64) {
        let (count, sum) = appendTime.recorded
        return (count, sum)
    }

    func count(_ problems: [String: Int]) {
        for (code, count) in problems { refusals.add(count, code) }
    }

    func count(_ outcome: Cluster.Outcome) {
        switch outcome {
        case .answered: forwards.add(1, "answered")
        case .notCarriedOut, .ended: forwards.add(1, "not-carried-out")
        case .lost, .unknown: forwards.add(1, "unknown")
        }
    }

    func waitBegan(_ route: Watch.Route) { waits[route.rawValue].increment(by: 1) }

    func streamBegan(_ route: Watch.Route) { streams[route.rawValue].increment(by: 1) }

    func hookDelivered(isRefused: Bool) {
        hookAttempts.add(1, "delivered")
        if isRefused { hookRefusals.increment(by: 1) }
    }

    func hookFailed() { hookAttempts.add(1, "failed") }

    func hookReset() { hookResets.increment(by: 1) }

    @Sendable
    private static func now() -> Instant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    private static func nanoseconds(_ time: Duration) -> Int64 { Int64(clamping: time.attoseconds / 1_000_000_000) }

    // MARK: What is read when `/metrics` is asked for

    var text: [UInt8] { exporter.text() }

    func sample(_ report: ServerReport) {
        for metric in SampledMetric.all {
            if let value = metric.read(report) { exporter.gauge(metric.name, metric.help).set(value) }
        }
        for route in Watch.Route.allCases {
            exporter.gauge("waits", "Requests that wait, without streams, by route.", [("route", "\(route)")])
                .set(report.hub.waits[route] ?? 0)
        }
        for route in Watch.Route.streamed {
            exporter.gauge("streams", "Open streams, by route.", [("route", "\(route)")])
                .set(report.hub.streams[route] ?? 0)
        }
        count(report.transport, report.handler.gauges.answers)
    }

    func count(_ transport: Statistics, _ total: Answers) {
        let (received, refused, answered) = sampled.withLock { last in
            defer { last = (transport.requests, transport.refused, total) }
            return (
                transport.requests - last.requests, transport.refused - last.refused, total.risen(since: last.answers)
            )
        }
        requests.increment(by: Int64(received))
        transportRefusals.increment(by: Int64(refused))
        for (index, count) in answered.counts.enumerated() where count > 0 { answers.add(count, index) }
        answerTime.add(answered.times)
    }
}

private final class CountersByLabel<Label: Hashable & Sendable>: Sendable {
    private struct Counters {
        var all: [Label: Figure] = [:]
        /// The counter that was raised last, because most are raised often in a row.
        var last: (label: Label, counter: Figure)?
    }

    private let counters = Mutex(Counters())
    private let bound: @Sendable (Label, _ count: Int) -> Label
    private let make: @Sendable (Label) -> Figure

    init(
        bound: @escaping @Sendable (Label, _ count: Int) -> Label = { label, _ in label },
        make: @escaping @Sendable (Label) -> Figure
    ) {
        (self.bound, self.make) = (bound, make)
    }

    func add(_ count: Int, _ label: Label) {
        let known = counters.withLock { counters -> Figure? in
            if let last = counters.last, last.label == label { return last.counter }
            guard let known = counters.all[label] else { return nil }
            counters.last = (label, known)
            return known
        }
        (known ?? counter(label)).increment(by: Int64(count))
    }

    /// The counter of a label; it is made outside the lock, and made twice it is one.
    private func counter(_ label: Label) -> Figure {
        let label = bound(label, counters.withLock { $0.all.count })
        if let known = counters.withLock({ $0.all[label] }) { return known }
        let made = make(label)
        counters.withLock { $0.all[label] = made }
        return made
    }
}

extension Watch.Route {
    fileprivate static let streamed: [Watch.Route] = [.state, .view, .changes]
}
