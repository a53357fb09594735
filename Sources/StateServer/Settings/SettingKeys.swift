public import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON

/// The settings of every server.
///
/// A member names a setting of ``Settings``, such as `settings.graceSeconds` for the key `grace_seconds`; the phrase behind its
/// default says what it is for. A program adds settings of its own in an extension, and names them to ``ServerCommand`` or
/// ``SettingsReading``:
///
/// ```swift
/// extension SettingKeys {
///     var warehouse: Setting<String> { Setting("warehouse", default: "main", "the warehouse to serve") }
/// }
/// ```
// swift-format-ignore: AllPublicDeclarationsHaveDocumentation
public struct SettingKeys: Sendable {
    static let shared = SettingKeys()

    static let all: [DeclaredSetting] = Mirror(reflecting: shared).children.compactMap {
        ($0.value as? any SettingDeclaration)?.declared
    }

    public let listen = Setting(
        "listen", default: "127.0.0.1:8080",
        "address and port, or unix: and the path of a socket; port 0 picks a free one", ListeningPlace.expectation
    ) { ListeningPlace($0, socketMode: 0) != nil }
    public let listenAlso = Setting(
        "listen_also", default: "none", "a second address or socket; none: no second one",
        "none, or \(ListeningPlace.expectation)"
    ) { $0 == "none" || ListeningPlace($0, socketMode: 0) != nil }
    public let socketMode = Setting("socket_mode", default: "0600", "permissions of the file of a Unix socket")
    public let allowedHosts = Setting(
        "allowed_hosts", default: "listened",
        "names by which clients reach the server, separated by commas; listened: only the names of the address that it listens on"
    )
    public let allowedOrigins = Setting(
        "allowed_origins", default: "none",
        "origins of the pages that may use the server in a browser, separated by commas, such as https://app.example")
    public let trustedProxies = Setting(
        "trusted_proxies", default: "none",
        "peers whose Forwarded or X-Forwarded-For names the client: addresses, networks, or unix, separated by commas; none: no peer"
    )
    public let page = Setting(
        "page", default: "on", "on: the server shows itself to a browser at /; off: it does not", "on or off"
    ) { ["on", "off"].contains($0) }
    public let pageConfirm = Setting(
        "page_confirm", default: "off", "on: the page asks once a session before it dispatches to the present",
        "on or off"
    ) { ["on", "off"].contains($0) }
    public let name = Setting(
        "name", default: "none", "name of this installation, which the page and GET /v1 show; none: no name",
        "1 to 80 characters"
    ) { 1...80 ~= $0.count }
    public let access = Setting(
        "access", default: AccessPolicy.auto,
        "open: no client needs a token; tokens: each does; auto: each does on any address but loopback, behind a proxy that the settings name, or once there is a token file or jwt_keys"
    )
    public let tokens = Setting(
        "tokens", default: "data",
        "file of the tokens and their grants; data: tokens.json in the directory of the journal")
    public let jwtKeys = Setting(
        "jwt_keys", default: "none",
        "file of the keys of JSON Web Tokens, a JWK Set; none: the server takes no such tokens")
    public let jwtIssuer = Setting(
        "jwt_issuer", default: "any", "what the claim iss of a JSON Web Token must be; any: anything")
    public let jwtAudience = Setting(
        "jwt_audience", default: "any", "what must be in the claim aud of a JSON Web Token; any: anything")
    public let jwtGrant = Setting(
        "jwt_grant", default: "none",
        "grant of a JSON Web Token without the claim storekeeper; none: such a token is not taken",
        "none, or a grant such as {\"read\":[\"view:mine\"],\"dispatch\":[\"tasks/*\"]}"
    ) { $0 == "none" || SettingKeys.grant($0) != nil }
    public let jwtLeewaySeconds = Setting(
        "jwt_leeway_seconds", default: 60, in: 0...3600,
        "how far the clocks of this server and of the issuer may be apart")
    public let data = Setting(
        "data", default: "./data",
        "directory of the journal, or the address of one in etcd, such as etcd://a:2379,b:2379/name; none keeps the state in memory"
    )
    public let logLevel = Setting("log_level", default: Logger.Level.info, "the lowest level that is logged")
    public let bodyBytesMax = Setting("body_bytes_max", default: 8 << 20, in: 1024...(1 << 30), "longest request body")
    public let compressedBytesMin = Setting(
        "compressed_bytes_min", default: 1024, in: 0...(1 << 30),
        "size from which an answer is compressed for a client that takes gzip or zstd; 0: no answer is")
    public let depthMax = Setting("depth_max", default: 64, in: 4...512, "deepest nesting of a JSON body")
    public let batchActionsMax = Setting(
        "batch_actions_max", default: 10_000, in: 1...1_000_000, "most actions in one atomic array")
    public let bulkLinesMax = Setting(
        "bulk_lines_max", default: 200_000, in: 1...10_000_000, "most lines in an NDJSON body")
    public let bulkFaultsMax = Setting(
        "bulk_faults_max", default: 1000, in: 0...1_000_000,
        "most faulty lines in an NDJSON body; with more none is committed")
    public let batchMillisecondsMax = Setting(
        "batch_milliseconds_max", default: 250, in: 1...60_000,
        "most processor time of one atomic array of more than 16 actions, in which all others wait")
    public let expectationsMax = Setting(
        "expectations_max", default: 1000, in: 1...1_000_000, "most tests of expect in one commit")
    public let waitSecondsDefault = Setting(
        "wait_seconds_default", default: 25, in: 1...3600, "how long a wait without a number lasts")
    public let waitSecondsMax = Setting(
        "wait_seconds_max", default: 55, in: 1...3600, "longest wait; proxies often end idle requests at 60")
    public let heartbeatSeconds = Setting(
        "heartbeat_seconds", default: 15, in: 1...3600, "longest silence of a stream before its heartbeat")
    public let streamSecondsMax = Setting(
        "stream_seconds_max", default: 900, in: 1...86_400,
        "longest life of a stream, less up to a quarter; its client then goes on from its last event")
    public let changesLimitDefault = Setting(
        "changes_limit_default", default: 100, in: 1...100_000, "commits in an answer of /v1/changes")
    public let changesLimitMax = Setting(
        "changes_limit_max", default: 1000, in: 1...100_000, "most commits in an answer of /v1/changes")
    public let queryLimitMax = Setting(
        "query_limit_max", default: 1000, in: 1...100_000, "most members in the answer to a query")
    public let queriesWatchedMax = Setting(
        "queries_watched_max", default: 2000, in: 1...1_000_000,
        "most different queries that clients wait for or follow; more are answered 503")
    public let connectionsMax = Setting(
        "connections_max", default: 0, in: 0...1_000_000,
        "most connections; more are answered 503; 0: as many as the limit of open files allows, up to 20000")
    public let loops = Setting(
        "loops", default: 1, in: 1...64,
        "threads that serve clients, each with its share of them; more than one needs more cores")
    public let waitersMax = Setting(
        "waiters_max", default: 19_000, in: 1...1_000_000, "most waiting requests; more are answered 503")
    public let waitersPerClientMax = Setting(
        "waiters_per_client_max", default: 16_000, in: 1...1_000_000,
        "most waiting requests of one client; more are answered 429")
    public let viewsWatchedMax = Setting(
        "views_watched_max", default: 10_000, in: 1...1_000_000,
        "most different views with parameters or a subject that clients wait for; more are answered 503")
    public let memoryBytesMax = Setting(
        "memory_bytes_max", default: 256 << 20, in: 1 << 20...(1 << 40),
        "most bytes of unfinished requests and unread answers; above it a long one is answered 503, or 429 where its client occupies half"
    )
    public let slowRequestsMax = Setting(
        "slow_requests_max", default: 1024, in: 1...1_000_000,
        "most requests with long bodies, or for large, past or old parts, under way; more are answered 503")
    public let slowRequestsPerClientMax = Setting(
        "slow_requests_per_client_max", default: 256, in: 1...1_000_000,
        "most such requests of one client; more are answered 429")
    public let requestHeadSeconds = Setting(
        "request_head_seconds", default: 10, in: 1...3600, "how long the head of a request may take to arrive")
    public let requestBodySeconds = Setting(
        "request_body_seconds", default: 30, in: 1...86_400,
        "how long its body may take, and a second more for each 16 KiB")
    public let idleTimeoutSeconds = Setting(
        "idle_timeout_seconds", default: 75, in: 1...86_400, "how long an idle connection is kept")
    public let mailboxActionsMax = Setting(
        "mailbox_actions_max", default: 65_536, in: 1...10_000_000,
        "most actions waiting for a turn or the disk; more are 503")
    public let cascadeDepthMax = Setting(
        "cascade_depth_max", default: 100_000, in: 1...10_000_000,
        "deepest chain of follow-ups that an action causes; deeper ones are refused")
    public let cascadeActionsMax = Setting(
        "cascade_actions_max", default: 1_000_000, in: 1...1_000_000_000,
        "most actions that one action causes in all; more are refused")
    public let effectsMax = Setting(
        "effects_max", default: 10_000, in: 0...1_000_000, "most effects at once; more are not started, and logged")
    public let stateBytesMax = Setting(
        "state_bytes_max", default: 256 << 20, in: (1 << 20)...(1 << 40),
        "most bytes of the state as JSON; above it only what makes it smaller is committed")
    public let stateMemoryBytesMax = Setting(
        "state_memory_bytes_max", default: 2 << 30, in: (1 << 20)...(1 << 40),
        "most bytes of memory of a document's or a model's state; above it only what makes it smaller is committed")
    public let historyCommitsMax = Setting(
        "history_commits_max", default: 100_000, in: 1...100_000_000, "commits kept in memory")
    public let historyBytesMax = Setting(
        "history_bytes_max", default: 64 << 20, in: 1024...(1 << 40), "bytes of commits kept in memory")
    public let journalCommitsMax = Setting(
        "journal_commits_max", default: 1_000_000, in: 1...1_000_000_000, "commits kept in the journal")
    public let journalBytesMax = Setting(
        "journal_bytes_max", default: 1 << 30, in: (1 << 20)...(1 << 50),
        "bytes of commits kept in the journal, besides those after its second-newest snapshot")
    public let journalSecondsMax = Setting(
        "journal_seconds_max", default: 0, in: 0...3_153_600_000,
        "how long a commit is kept in the journal, besides those after its second-newest snapshot; 0: no limit")
    public let journalSnapshotsMax = Setting(
        "journal_snapshots_max", default: 8, in: 2...1000, "snapshots kept in the journal")
    public let forksMax = Setting(
        "forks_max", default: 8, in: 0...1000, "most forks; more are answered 503; 0: no forks")
    public let forkSecondsMax = Setting("fork_seconds_max", default: 900, in: 1...86_400, "how long a fork lives")
    public let forkCommitsMax = Setting(
        "fork_commits_max", default: 100_000, in: 1...10_000_000, "most commits that a fork runs again")
    public let hookDeliveriesMax = Setting(
        "hook_deliveries_max", default: 16, in: 1...1000, "most deliveries to hooks at once; more wait")
    public let hookSecondsMax = Setting(
        "hook_seconds_max", default: 30, in: 1...3600, "how long a receiver may take to answer a delivery")
    public let hookAnswerBytesMax = Setting(
        "hook_answer_bytes_max", default: 1 << 20, in: 0...(64 << 20),
        "most bytes of the answer of a receiver; a longer one is a failure")
    public let clusterAddress = Setting(
        "cluster_address", default: "none",
        "how the other servers on a history in etcd reach this one, such as http://10.0.0.1:8080; none: it writes by itself",
        "none, or http:// with a host and a port, such as http://10.0.0.1:8080"
    ) { $0 == "none" || ForwardingAddress.host(of: $0) != nil }
    public let clusterDirectory = Setting(
        "cluster_directory", default: "none",
        "with a journal in etcd: directory of this server alone, for the record of what it is reducing, a copy of the newest snapshot, and backups; none: after a crash this server does not know what it was reducing, and it makes no backups over HTTP"
    )
    public let etcdUser = Setting(
        "etcd_user", default: "none", "the name of the user of etcd; none: etcd has no users")
    public let etcdPassword = Setting("etcd_password", default: "none", "file with the password of etcd_user")
    public let etcdAuthorities = Setting(
        "etcd_authorities", default: "none",
        "file with the authorities that sign etcd's certificates, in PEM; none: the authorities of the system")
    public let etcdCertificate = Setting(
        "etcd_certificate", default: "none", "file of the certificate that this server shows etcd, in PEM")
    public let etcdKey = Setting("etcd_key", default: "none", "file of the key of etcd_certificate, in PEM")
    public let idempotencySeconds = Setting(
        "idempotency_seconds", default: 86_400, in: 1...31_536_000, "how long an Idempotency-Key is remembered")
    public let idempotencyKeysMax = Setting(
        "idempotency_keys_max", default: 1_000_000, in: 1...100_000_000,
        "most keys remembered; new ones above it are answered 503")
    public let scheduleMax = Setting(
        "schedule_max", default: 100_000, in: 0...10_000_000,
        "most actions that are scheduled for later; more are answered 409; 0: none")
    public let scheduleBytesMax = Setting(
        "schedule_bytes_max", default: 64 << 20, in: 0...(1 << 40),
        "most bytes of memory of the scheduled actions; more are answered 409")
    public let graceSeconds = Setting(
        "grace_seconds", default: 10, in: 0...3600, "longest time to finish the actions in hand when stopping")

    static func grant(_ text: String) -> Grant? {
        // The setting says what it expects.
        guard let grant = try? JSON.decode(Grant.self, from: Array(text.utf8)), grant.fault == nil else { return nil }
        return grant
    }
}
