internal import HTTPMessages
internal import HTTPTypes
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateJournal
internal import StateStore
internal import Synchronization

struct ServerReport {
    let handler: RequestHandler
    let hub: HubFigures
    let latest: Snapshot
    let transport: Statistics
    let unreadableReason: String?
    let hooks: [HookReport]

    init(_ handler: RequestHandler) {
        self.handler = handler
        (hub, latest, transport) = (handler.hub.figures, handler.hub.latest, handler.gauges.statistics)
        (unreadableReason, hooks) = (handler.authenticator.unreadableReason, handler.hooks?.reports ?? [])
    }

    var settings: Settings { handler.metrics.settings }
    var store: UntypedStore { handler.store }
    var journal: (any Journal)? { handler.journal }
    var memory: MemoryBudget { handler.gauges.memory }
    var directory: DirectoryFigures? { handler.backups?.figures }
    var isDraining: Bool { handler.isDraining.load(ordering: .relaxed) }
    var isDurable: Bool { journal?.failure == nil }

    /// A server whose answers say how old they may be takes no commits, whatever its journal says.
    var journalFailure: String? {
        journal?.failure ?? handler.cluster?.staleness.map { _ in "no majority of the etcds answers" }
    }

    var reasons: [String] {
        [
            isDraining ? "the server is stopping and takes no more actions" : nil, journalFailure, unreadableReason,
            store.domainFailure?.detail,
        ].compactMap(\.self)
    }

    // MARK: The verbose probe

    /// A line with `[!]` is for what makes the server refuse some requests; the server is ready all the same.
    var readiness: Response {
        let reasons = reasons
        let text = (lines + [reasons.isEmpty ? "ready" : "not ready"]).joined(separator: "\n") + "\n"
        return Response(
            status: reasons.isEmpty ? .ok : .serviceUnavailable,
            fields: [.contentType: "text/plain; charset=utf-8", .cacheControl: "no-store"], body: Array(text.utf8))
    }

    private var lines: [String] {
        var lines = [isDraining ? "[-]draining: the server is stopping and takes no more actions" : "[+]draining: no"]
        if journal != nil {
            lines.append(journalFailure.map { "[-]journal: \($0)" } ?? "[+]journal: it takes commits")
        } else {
            lines.append("[+]journal: none, the state is in memory only")
        }
        if let failure = store.domainFailure { lines.append("[-]domain: \(failure.detail)") }
        if let unreadableReason { lines.append("[-]tokens: \(unreadableReason)") }
        let faults = [handler.authenticator.faults.tokens, handler.authenticator.faults.keys].compactMap(\.self)
        lines += faults.filter { $0 != unreadableReason }.map { "[!]tokens: \($0)" }
        if unreadableReason == nil, faults.isEmpty, handler.authenticator.isProtected {
            lines.append("[+]tokens: no fault in their files")
        }
        if let quarantine = handler.quarantine { lines.append(Self.quarantineLine(quarantine.names)) }
        if let hooks = handler.hooks { lines.append(hooksLine(unreadable: hooks.unreadableReason)) }
        func use(_ name: String, _ used: Int, of limit: Int, _ unit: String) {
            lines.append("[\(used < limit ? "+" : "!")]\(name): \(used) of \(limit) \(unit)")
        }
        use("connections", transport.connections, of: settings.connectionsLimit, "connections")
        use("memory", memory.bytes, of: memory.bytesMax, "bytes")
        use("waiters", handler.hub.watchesCount, of: settings.watchLimits.watchesMax, "waits and streams")
        use("mailbox", store.waitingCount, of: settings.mailboxActionsMax, "actions")
        use("idempotency keys", store.idempotencyKeysCount, of: settings.idempotencyKeysMax, "keys")
        use("schedule", latest.schedule.count, of: settings.scheduleMax, "actions")
        if let bytes = latest.jsonBytes { use("state", bytes, of: settings.stateBytesMax, "bytes of JSON") }
        if latest.memoryBytes > 0 {
            use("state in memory", latest.memoryBytes, of: settings.stateMemoryBytesMax, "bytes")
        }
        guard let directory else { return lines }
        if let free = directory.freeBytes {
            lines.append("[\(free < Self.freeBytesMin ? "!" : "+")]disk: \(free) bytes are free")
        }
        let time = directory.backupTime.map { RFC3339.text(milliseconds: Int64(clamping: $0) &* 1000) }
        return lines + [time.map { "[+]backup: the newest is of \($0)" } ?? "[+]backup: none is known"]
    }

    private static let freeBytesMin = 1 << 30
    private static let behindMax = 1000

    static func quarantineLine(_ names: [String]) -> String {
        guard !names.isEmpty else { return "[+]quarantine: 0 actions" }
        let newest = names.suffix(10).joined(separator: ", ")
        return "[!]quarantine: \(names.count) \(names.count == 1 ? "action" : "actions"), \(newest)"
    }

    private func hooksLine(unreadable: String?) -> String {
        if let unreadable { return "[!]hooks: \(unreadable)" }
        func line(_ word: String, _ names: [String]) -> String? {
            names.isEmpty ? nil : "\(names.count) \(word): \(names.prefix(10).joined(separator: ", "))"
        }
        var faults = [
            line("failing", hooks.filter(\.isFailing).map(\.entry.id).sorted()),
            line("paused", hooks.filter { $0.entry.paused != nil }.map(\.entry.id)),
        ].compactMap(\.self)
        // A receiver that is slow fails nothing, and what it has not taken may be gone some day.
        if let behind = hooks.compactMap(\.behind).max(), behind >= Self.behindMax, faults.isEmpty {
            faults = ["one is \(behind) versions behind"]
        }
        return (["[\(faults.isEmpty ? "+" : "!")]hooks: \(hooks.count)"] + faults).joined(separator: ", ")
    }

    // MARK: The operations

    private static let waitersMax = 100

    /// The report of the operations; O(n) in the number of watches.
    var operations: JSONValue {
        let (reasons, waiters) = (reasons, waiters)
        let appends = handler.metrics.appends
        let journal = journal.map { journal in
            JSONValue.of(
                (journal.bytesCount.map { [("bytes", .count($0))] } ?? []) + [
                    ("appendsTotal", .count(appends.count)),
                    ("appendSecondsTotal", .double(Double(appends.nanoseconds) / 1e9)),
                ])
        }
        let grants = handler.authenticator.grants.map {
            JSONValue.of(("id", .string($0.id)), ("subject", .string($0.subject)), ("grant", $0.grant.json))
        }
        let (time, uptime) = (handler.platform.time(), handler.platform.now() - handler.begun)
        return .of(
            ("time", .string(RFC3339.text(milliseconds: time.milliseconds))),
            ("cursor", .string(latest.cursor.description)), ("version", .unsigned(latest.cursor.version)),
            ("uptimeSeconds", .integer(uptime.components.seconds)), ("ready", .bool(reasons.isEmpty)),
            ("reasons", .array(reasons.map { .string($0) })),
            ("waiters", .array(waiters.prefix(Self.waitersMax).map(\.json))),
            ("waitersCount", .count(waiters.reduce(0) { $0 + $1.waits })),
            ("streamsCount", .count(waiters.reduce(0) { $0 + $1.streams })),
            ("connectionsCount", .count(transport.connections)),
            ("queue", ["waiting": .count(store.waitingCount), "max": .count(settings.mailboxActionsMax)]),
            ("requestsTotal", .count(transport.requests)), ("journal", journal ?? .null),
            (
                "memory",
                [
                    "residentBytes": .count(ProcessFigures.residentBytes ?? 0), "usedBytes": .count(memory.bytes),
                    "maxBytes": .count(memory.bytesMax),
                ]
            ), ("grants", .array(grants)), ("hooks", .array(hooks.map(\.json))))
    }

    private struct Waiters {
        var subject: (name: String, text: String?)
        var waits = 0
        var streams = 0

        var json: JSONValue {
            .of(
                (subject.name, subject.text.map(JSONValue.string) ?? true), ("waits", .count(waits)),
                ("streams", .count(streams)))
        }
    }

    private var waiters: [Waiters] {
        var waiters: [ExactText: Waiters] = [:]
        for case let watched as WatchedRequest in handler.hub.watchedRequests {
            let subject = watched.kind.subject
            let key = ExactText("\(subject.name) \(subject.text ?? "")")
            if case .stream = watched.kind {
                waiters[key, default: Waiters(subject: subject)].streams += 1
            } else {
                waiters[key, default: Waiters(subject: subject)].waits += 1
            }
        }
        return waiters.values.sorted { $0.waits + $0.streams > $1.waits + $1.streams }
    }
}

extension WatchedRequest.Kind {
    fileprivate var subject: (name: String, text: String?) {
        func subject(_ selection: Selection) -> (String, String?) {
            switch selection {
            case .pointer(let pointer), .hidden(let pointer): ("path", pointer.description)
            case .view(let name, _): ("view", name)
            case .query(_, of: let base): subject(base)
            }
        }
        if let read { return subject(read.selection) }
        return (changes == nil ? "cascade" : "changes", nil)
    }
}

extension JSONValue {
    fileprivate static func count(_ count: Int) -> JSONValue { .integer(Int64(count)) }
}

struct HookReport: Sendable {
    let entry: HookEntry
    let progress: HookProgress?
    let latest: Cursor?

    var isFailing: Bool { progress?.failing != nil && entry.paused == nil }
    var behind: Version? { progress.flatMap { entry.behind($0, latest) } }

    fileprivate var json: JSONValue {
        let (failing, refusals) = (progress?.failing, progress?.refusals)
        // Texts and a count are always encoded.
        let failure = failing.flatMap { try? JSONValue(parsing: JSON.encode($0)) }
        return .of(
            ("id", .string(entry.id)),
            // The rest of the receiver's address may be a secret.
            ("origin", .string(HookURL.origin(of: entry.url))), ("failing", .bool(failing != nil)),
            ("paused", .bool(entry.paused != nil)), ("condition", .string(entry.condition(progress, latest))),
            ("pause", entry.paused.map(JSONValue.string) ?? .null),
            ("behind", behind.map(JSONValue.unsigned) ?? .null), ("failure", failure ?? .null),
            ("refused", refusals.map { .string($0.reason) } ?? .null),
            ("refusedAt", refusals.map { .string($0.newest) } ?? .null), ("refusedCount", .count(refusals?.count ?? 0)))
    }
}

extension RequestHandler {
    func readiness(isVerbose: Bool) throws -> Response {
        let report = ServerReport(self)
        // A load balancer sends no action to a server that is not ready, so the probes themselves have to try the journal.
        if report.journalFailure != nil, !report.isDraining, let journal {
            platform.slow(.read, "") { journal.probe() }
        }
        if isVerbose { return report.readiness }
        if report.isDraining { throw Problem.draining }
        if report.journalFailure != nil { throw Problem.notDurable }
        if report.unreadableReason != nil { throw Problem.tokensUnreadable }
        if let failure = store.domainFailure { throw Problem.domainFailed(failure) }
        return Response(status: .ok, fields: [.contentType: "text/plain"], body: Array("ready\n".utf8))
    }

    func metricsText() -> Response {
        sampleMetrics()
        return Response(
            status: .ok, fields: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
            body: metrics.text + ProcessFigures.text())
    }

    func sampleMetrics() { metrics.sample(ServerReport(self)) }
}
