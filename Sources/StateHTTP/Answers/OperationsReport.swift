package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

/// The operator's report of the present work of a server.
package struct OperationsReport: Sendable {
    /// The requests that wait for, or stream, one thing.
    package struct Waiters: Sendable {
        /// The selection or filter of the waiters.
        package enum Subject: Hashable, Sendable {
            case path(String)
            case view(String)
            case changes
            case cascade
        }

        package var subject: Subject
        package var waits = 0
        package var streams = 0

        package init(_ subject: Subject) { self.subject = subject }
    }

    package struct Grantee: Sendable {
        package var id: String
        package var subject: String
        package var grant: Grant

        package init(id: String, subject: String, grant: Grant) {
            (self.id, self.subject, self.grant) = (id, subject, grant)
        }
    }

    package struct Hook: Sendable {
        package var id: String
        /// Scheme and host of the receiver: the rest of its address may be a secret.
        package var origin: String
        /// How far it has come, and what stops it, as `hook list` has it.
        package var condition: String
        /// Why it is paused; nil for a hook that is not.
        package var pause: String?
        /// How many versions it is behind the newest one; nil on a server that does not deliver.
        package var behind: Version?
        package var failure: Failure?
        /// Why the actions of an answer were not committed, the newest; nil if all were.
        package var refused: String?
        /// The cursor of the commit that was answered so.
        package var refusedAt: String?
        package var refusedCount: Int

        /// A delivery that has failed and is tried again.
        package struct Failure: Sendable {
            package var cursor: String
            package var attempts: Int
            /// When the first attempt has failed, and when the next one is made; in RFC 3339.
            package var since: String
            package var next: String
            package var reason: String

            package init(cursor: String, attempts: Int, since: String, next: String, reason: String) {
                (self.cursor, self.attempts, self.since, self.next) = (cursor, attempts, since, next)
                self.reason = reason
            }
        }

        package init(
            id: String, origin: String, condition: String, pause: String?, behind: Version?, failure: Failure?,
            refused: String?, refusedAt: String?, refusedCount: Int
        ) {
            (self.id, self.origin, self.condition, self.pause) = (id, origin, condition, pause)
            (self.behind, self.failure, self.refused) = (behind, failure, refused)
            (self.refusedAt, self.refusedCount) = (refusedAt, refusedCount)
        }
    }

    package var time: Timestamp
    package var uptime: Duration
    /// Why the server is not ready; empty where it is.
    package var reasons: [String]
    /// The most waited for first.
    package var waiters: [Waiters]
    package var connectionsCount: Int
    /// How many actions wait for a turn, and how many may.
    package var queue: (waiting: Int, most: Int)
    package var requestsTotal: Int
    /// The bytes of the journal's files, how often it was appended to, and how long that took in all; nil without one.
    package var journal: (bytes: Int?, appendsTotal: Int, appendTime: Duration)?
    package var memory: (resident: Int, used: Int, most: Int)
    package var grants: [Grantee]
    package var hooks: [Hook]

    package init(
        time: Timestamp, uptime: Duration, reasons: [String], waiters: [Waiters], connectionsCount: Int,
        queue: (waiting: Int, most: Int), requestsTotal: Int,
        journal: (bytes: Int?, appendsTotal: Int, appendTime: Duration)?,
        memory: (resident: Int, used: Int, most: Int), grants: [Grantee], hooks: [Hook]
    ) {
        self.time = time
        self.uptime = uptime
        self.reasons = reasons
        self.waiters = waiters
        self.connectionsCount = connectionsCount
        self.queue = queue
        self.requestsTotal = requestsTotal
        self.journal = journal
        self.memory = memory
        self.grants = grants
        self.hooks = hooks
    }
}

extension Contract {
    private static let waitersMax = 100

    /// The answer with what the server is doing.
    package func response(to report: OperationsReport, style: Style, latest: Cursor) -> Response {
        let journal = report.journal.map { journal in
            JSONValue.of(
                [
                    ("bytes", journal.bytes.map { .integer(Int64($0)) } ?? .null),
                    ("appendsTotal", .integer(Int64(journal.appendsTotal))),
                    ("appendSecondsTotal", .double(journal.appendTime / .seconds(1))),
                ].filter { $0.1 != .null })
        }
        let document = JSONValue.of(
            ("time", .string(Self.text(report.time))), ("cursor", .string(latest.description)),
            ("version", .unsigned(latest.version)), ("uptimeSeconds", .integer(report.uptime.components.seconds)),
            ("ready", .bool(report.reasons.isEmpty)), ("reasons", .array(report.reasons.map { .string($0) })),
            ("waiters", .array(report.waiters.prefix(Self.waitersMax).map(json))),
            ("waitersCount", .integer(Int64(report.waiters.reduce(0) { $0 + $1.waits }))),
            ("streamsCount", .integer(Int64(report.waiters.reduce(0) { $0 + $1.streams }))),
            ("connectionsCount", .integer(Int64(report.connectionsCount))),
            ("queue", ["waiting": .integer(Int64(report.queue.waiting)), "max": .integer(Int64(report.queue.most))]),
            ("requestsTotal", .integer(Int64(report.requestsTotal))), ("journal", journal ?? .null),
            (
                "memory",
                .of(
                    ("residentBytes", .integer(Int64(report.memory.resident))),
                    ("usedBytes", .integer(Int64(report.memory.used))),
                    ("maxBytes", .integer(Int64(report.memory.most))))
            ),
            ("grants", .array(report.grants.map(json))), ("hooks", .array(report.hooks.map(json))))
        return .json(.ok, document.text, style: style, latest: latest)
    }

    private func json(_ waiters: OperationsReport.Waiters) -> JSONValue {
        let subject: (String, JSONValue) =
            switch waiters.subject {
            case .path(let path): ("path", .string(path))
            case .view(let name): ("view", .string(name))
            case .changes: ("changes", true)
            case .cascade: ("cascade", true)
            }
        return .of(subject, ("waits", .integer(Int64(waiters.waits))), ("streams", .integer(Int64(waiters.streams))))
    }

    private func json(_ hook: OperationsReport.Hook) -> JSONValue {
        let failure = hook.failure.map { failure in
            JSONValue.of(
                ("cursor", .string(failure.cursor)), ("attempts", .integer(Int64(failure.attempts))),
                ("since", .string(failure.since)), ("next", .string(failure.next)), ("reason", .string(failure.reason)))
        }
        return .of(
            ("id", .string(hook.id)), ("origin", .string(hook.origin)), ("failing", .bool(hook.failure != nil)),
            ("paused", .bool(hook.pause != nil)), ("condition", .string(hook.condition)),
            ("pause", hook.pause.map(JSONValue.string) ?? .null),
            ("behind", hook.behind.map(JSONValue.unsigned) ?? .null), ("failure", failure ?? .null),
            ("refused", hook.refused.map(JSONValue.string) ?? .null),
            ("refusedAt", hook.refusedAt.map(JSONValue.string) ?? .null),
            ("refusedCount", .integer(Int64(hook.refusedCount))))
    }

    private func json(_ grantee: OperationsReport.Grantee) -> JSONValue {
        .of(("id", .string(grantee.id)), ("subject", .string(grantee.subject)), ("grant", grantee.grant.json))
    }
}
