internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateJournal
internal import StateStore
internal import Synchronization

extension RequestHandler {
    func readiness(_ requestID: RequestID) -> Response {
        if isDraining.load(ordering: .relaxed) { return respond(.draining, requestID) }
        if let journal, journalFailure != nil {
            // A load balancer sends no action to a server that is not ready, so the probe itself has to try the journal.
            schedule.slow(.read, "") { journal.probe() }
            return respond(.notDurable, requestID)
        }
        if authenticator.unreadableReason != nil { return respond(.tokensUnreadable, requestID) }
        if let failure = store.domainFailure { return respond(.domainFailed(failure), requestID) }
        return Response(status: .ok, fields: [.contentType: "text/plain"], body: Array("ready\n".utf8))
    }

    /// A line with `[!]` is for what makes the server refuse some requests; the server is ready all the same.
    func verboseReadiness() -> Response {
        let unreadableReason = authenticator.unreadableReason
        let isReady = reasons.isEmpty
        if journalFailure != nil, let journal { schedule.slow(.read, "") { journal.probe() } }
        let draining = isDraining.load(ordering: .relaxed)
        var lines = [
            draining ? "[-]draining: the server is stopping and takes no more actions" : "[+]draining: no"
        ]
        if journal != nil {
            lines.append(journalFailure.map { "[-]journal: \($0)" } ?? "[+]journal: it takes commits")
        } else {
            lines.append("[+]journal: none, the state is in memory only")
        }
        if let failure = store.domainFailure { lines.append("[-]domain: \(failure.detail)") }
        if let unreadableReason { lines.append("[-]tokens: \(unreadableReason)") }
        let faults = [authenticator.faults.tokens, authenticator.faults.keys].compactMap(\.self)
        lines += faults.filter { $0 != unreadableReason }.map { "[!]tokens: \($0)" }
        if unreadableReason == nil, faults.isEmpty, authenticator.isProtected {
            lines.append("[+]tokens: no fault in their files")
        }
        func use(_ name: String, _ used: Int, of limit: Int, _ unit: String) {
            lines.append("[\(used < limit ? "+" : "!")]\(name): \(used) of \(limit) \(unit)")
        }
        if let quarantine { lines.append(Self.quarantineLine(quarantine.names)) }
        if let hooks { lines.append(Self.hooksLine(hooks.figures, unreadable: hooks.unreadableReason)) }
        let settings = metrics.settings
        use("connections", gauges.statistics.connections, of: settings.connectionsLimit, "connections")
        use("memory", gauges.memory.bytes, of: gauges.memory.bytesMax, "bytes")
        use("waiters", hub.watchesCount, of: settings.watchLimits.watchesMax, "waits and streams")
        use("mailbox", store.waitingCount, of: settings.mailboxActionsMax, "actions")
        use("idempotency keys", store.idempotencyKeysCount, of: settings.idempotencyKeysMax, "keys")
        let latest = hub.latest
        use("schedule", latest.schedule.count, of: settings.scheduleMax, "actions")
        if let bytes = latest.jsonBytes { use("state", bytes, of: settings.stateBytesMax, "bytes of JSON") }
        if latest.memoryBytes > 0 {
            use("state in memory", latest.memoryBytes, of: settings.stateMemoryBytesMax, "bytes")
        }
        lines += backups.map { Self.directoryLines($0.figures) } ?? []
        lines.append(isReady ? "ready" : "not ready")
        let text = lines.joined(separator: "\n") + "\n"
        return Response(
            status: isReady ? .ok : .serviceUnavailable,
            fields: [.contentType: "text/plain; charset=utf-8", .cacheControl: "no-store"], body: Array(text.utf8))
    }

    /// A server whose answers say how old they may be takes no commits, whatever its journal says.
    private var journalFailure: String? {
        journal?.failure ?? cluster?.staleness.map { _ in "no majority of the etcds answers" }
    }

    private var reasons: [String] {
        [
            isDraining.load(ordering: .relaxed) ? "the server is stopping and takes no more actions" : nil,
            journalFailure, authenticator.unreadableReason, store.domainFailure?.detail,
        ].compactMap(\.self)
    }

    /// The report costs O(n) in the number of watches.
    var operationsReport: OperationsReport {
        var waiters: [OperationsReport.Waiters.Subject: OperationsReport.Waiters] = [:]
        for case let watched as WatchedRequest in hub.watchedRequests {
            let subject = watched.kind.subject
            if case .stream = watched.kind {
                waiters[subject, default: .init(subject: subject)].streams += 1
            } else {
                waiters[subject, default: .init(subject: subject)].waits += 1
            }
        }
        let statistics = gauges.statistics
        let appends = metrics.appends
        return OperationsReport(
            time: schedule.time(), uptime: schedule.now() - begun, reasons: reasons,
            waiters: waiters.values.sorted { $0.waits + $0.streams > $1.waits + $1.streams },
            connectionsCount: statistics.connections,
            queue: (store.waitingCount, metrics.settings.mailboxActionsMax), requestsTotal: statistics.requests,
            journal: journal.map { ($0.bytesCount, appends.count, .nanoseconds(appends.nanoseconds)) },
            memory: (ProcessFigures.residentBytes ?? 0, gauges.memory.bytes, gauges.memory.bytesMax),
            grants: authenticator.grants, hooks: hooks?.reports ?? [])
    }

    static func quarantineLine(_ names: [String]) -> String {
        guard !names.isEmpty else { return "[+]quarantine: 0 actions" }
        let newest = names.suffix(10).joined(separator: ", ")
        return "[!]quarantine: \(names.count) \(names.count == 1 ? "action" : "actions"), \(newest)"
    }

    private static let freeBytesMin = 1 << 30

    static func directoryLines(_ figures: DirectoryFigures) -> [String] {
        let free = figures.freeBytes.map { "[\($0 < freeBytesMin ? "!" : "+")]disk: \($0) bytes are free" }
        let time = figures.backupTime.map { RFC3339.text(milliseconds: Int64(clamping: $0) &* 1000) }
        return [free, time.map { "[+]backup: the newest is of \($0)" } ?? "[+]backup: none is known"].compactMap(\.self)
    }

    private static let behindMax = 1000

    static func hooksLine(_ figures: Hooks.Figures, unreadable: String?) -> String {
        if let unreadable { return "[!]hooks: \(unreadable)" }
        let stuck = [(figures.failing, "failing"), (figures.paused, "paused")].filter { !$0.0.isEmpty }.map {
            "\($0.0.count) \($0.1): \($0.0.prefix(10).joined(separator: ", "))"
        }
        // A receiver that is slow fails nothing, and what it has not taken may be gone some day.
        let slow = figures.behind >= behindMax && stuck.isEmpty ? ["one is \(figures.behind) versions behind"] : []
        let mark = stuck.isEmpty && slow.isEmpty ? "+" : "!"
        return (["[\(mark)]hooks: \(figures.hooks)"] + stuck + slow).joined(separator: ", ")
    }

    func metricsText() -> Response {
        Response(
            status: .ok, fields: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
            body: metrics.text(after: figures) + ProcessFigures.text())
    }

    func sampleMetrics() { metrics.sample(figures) }

    private var figures: ServerMetrics.Figures {
        let (shares, latest) = (gauges.memory.shares, hub.latest)
        return ServerMetrics.Figures(
            hub: hub.figures, transport: gauges.statistics, answers: gauges.answers, mailboxActions: store.waitingCount,
            turnsInFlight: store.turnsInFlightCount, idempotencyKeys: store.idempotencyKeysCount,
            scheduled: latest.schedule.count, stateBytes: (latest.jsonBytes, latest.memoryBytes),
            memoryBytes: gauges.memory.bytes, memoryClients: shares.clientsCount,
            memoryLargestShare: shares.largestBytes, isDurable: journal?.failure == nil,
            isDraining: isDraining.load(ordering: .relaxed), knowsTokens: authenticator.unreadableReason == nil,
            isTokenFileUp: authenticator.faults.tokens == nil, isKeyFileUp: authenticator.faults.keys == nil,
            isWriter: cluster?.isWriter ?? false,
            staleSeconds: staleness.map { Int($0.components.seconds) } ?? 0,
            hooks: hooks?.figures ?? Hooks.Figures(), directory: backups?.figures)
    }

    func beginDraining() {
        isDraining.store(true, ordering: .sequentiallyConsistent)
        hub.endGeneration()
        backups?.stop()
        forks?.stop()
    }

    /// Ends every wait as if its time were up, spread over the window, so that the clients do not all return at once.
    func drain(over window: Duration) async {
        let ids = hub.watchIDs
        let parts = 10
        for part in 0..<parts {
            hub.drain(stride(from: part, to: ids.count, by: parts).map { ids[$0] })
            // A cancellation only shortens the window.
            if ids.count > parts { try? await Task.sleep(for: window / parts) }
        }
        store.drain()
    }
}

extension WatchedRequest.Kind {
    fileprivate var subject: OperationsReport.Waiters.Subject {
        func subject(_ selection: Selection) -> OperationsReport.Waiters.Subject {
            switch selection {
            case .pointer(let pointer), .hidden(let pointer): .path(pointer.description)
            case .view(let name, _): .view(name)
            case .query(_, of: let base): subject(base)
            }
        }
        switch self {
        case .read(let request): return subject(request.selection)
        case .changes: return .changes
        case .dispatch: return .cascade
        case .stream(let stream):
            if case .value(let request) = stream.source { return subject(request.selection) }
            return .changes
        }
    }
}
