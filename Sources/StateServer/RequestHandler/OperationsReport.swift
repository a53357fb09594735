internal import HTTPMessages
internal import HTTPTypes
internal import StateHTTP
internal import StateJSON
internal import StateStore

/// The operator's report of the present work of a server.
struct OperationsReport: Sendable {
    /// The requests that wait for, or stream, one thing.
    struct Waiters: Sendable {
        enum Subject: Hashable, Sendable {
            case path(String)
            case view(String)
            case changes
            case cascade
        }

        var subject: Subject
        var waits = 0
        var streams = 0
    }

    struct Hook: Sendable {
        var entry: HookFile.Entry
        /// Nil on a server that does not deliver.
        var progress: HookProgress?
        var latest: Cursor?
    }

    var time: Timestamp
    var uptime: Duration
    /// Why the server is not ready; empty where it is.
    var reasons: [String]
    /// The most waited for first.
    var waiters: [Waiters]
    var connectionsCount: Int
    var queue: (waiting: Int, most: Int)
    var requestsTotal: Int
    /// The bytes of the journal's files, how often it was appended to, and how long that took in all; nil without one.
    var journal: (bytes: Int?, appendsTotal: Int, appendTime: Duration)?
    var memory: (resident: Int, used: Int, most: Int)
    var grants: [TokenFile.Entry]
    var hooks: [Hook]

    private static let waitersMax = 100

    func response(style: Style, latest: Cursor) -> Response {
        let journal = journal.map { journal in
            JSONValue.of(
                [
                    ("bytes", journal.bytes.map { .integer(Int64($0)) } ?? .null),
                    ("appendsTotal", .integer(Int64(journal.appendsTotal))),
                    ("appendSecondsTotal", .double(journal.appendTime / .seconds(1))),
                ].filter { $0.1 != .null })
        }
        let document = JSONValue.of(
            ("time", .string(RFC3339.text(milliseconds: time.milliseconds))), ("cursor", .string(latest.description)),
            ("version", .unsigned(latest.version)), ("uptimeSeconds", .integer(uptime.components.seconds)),
            ("ready", .bool(reasons.isEmpty)), ("reasons", .array(reasons.map { .string($0) })),
            ("waiters", .array(waiters.prefix(Self.waitersMax).map(\.json))),
            ("waitersCount", .integer(Int64(waiters.reduce(0) { $0 + $1.waits }))),
            ("streamsCount", .integer(Int64(waiters.reduce(0) { $0 + $1.streams }))),
            ("connectionsCount", .integer(Int64(connectionsCount))),
            ("queue", ["waiting": .integer(Int64(queue.waiting)), "max": .integer(Int64(queue.most))]),
            ("requestsTotal", .integer(Int64(requestsTotal))), ("journal", journal ?? .null),
            (
                "memory",
                .of(
                    ("residentBytes", .integer(Int64(memory.resident))), ("usedBytes", .integer(Int64(memory.used))),
                    ("maxBytes", .integer(Int64(memory.most))))
            ),
            (
                "grants",
                .array(
                    grants.map {
                        .of(("id", .string($0.id)), ("subject", .string($0.subject)), ("grant", $0.grant.json))
                    })
            ), ("hooks", .array(hooks.map(\.json))))
        return .json(.ok, document.text, style: style, latest: latest)
    }
}

extension OperationsReport.Waiters {
    fileprivate var json: JSONValue {
        let subject: (String, JSONValue) =
            switch subject {
            case .path(let path): ("path", .string(path))
            case .view(let name): ("view", .string(name))
            case .changes: ("changes", true)
            case .cascade: ("cascade", true)
            }
        return .of(subject, ("waits", .integer(Int64(waits))), ("streams", .integer(Int64(streams))))
    }
}

extension OperationsReport.Hook {
    fileprivate var json: JSONValue {
        let (failing, refusals) = (progress?.failing, progress?.refusals)
        let failure = failing.map { failing in
            JSONValue.of(
                ("cursor", .string(failing.cursor)), ("attempts", .integer(Int64(failing.attempts))),
                ("since", .string(failing.since)), ("next", .string(failing.next)), ("reason", .string(failing.reason)))
        }
        return .of(
            ("id", .string(entry.id)),
            // The rest of the receiver's address may be a secret.
            ("origin", .string(HookURL.origin(of: entry.url))), ("failing", .bool(failing != nil)),
            ("paused", .bool(entry.paused != nil)), ("condition", .string(entry.condition(progress, latest))),
            ("pause", entry.paused.map(JSONValue.string) ?? .null),
            ("behind", progress.flatMap { entry.behind($0, latest) }.map(JSONValue.unsigned) ?? .null),
            ("failure", failure ?? .null), ("refused", refusals.map { .string($0.reason) } ?? .null),
            ("refusedAt", refusals.map { .string($0.newest) } ?? .null),
            ("refusedCount", .integer(Int64(refusals?.count ?? 0))))
    }
}
