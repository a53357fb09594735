internal import Configuration

/// The settings of a server, each with a default.
///
/// ``Setting/all`` holds the key, unit, default and range of each setting; `config/storekeeper.json` lists the keys.
public struct Settings: Sendable, Equatable {
    /// The values by key, with every key of ``Setting/all``.
    private var values: [String: Setting.Value]

    /// Makes settings with the default values.
    public init() {
        values = Dictionary(uniqueKeysWithValues: Setting.all.map { ($0.key, $0.initial) })
    }

    /// The value of a setting.
    ///
    /// - Precondition: ``Setting/all`` has a setting with this key.
    public subscript(key: String) -> Setting.Value {
        get {
            guard let value = values[key] else { preconditionFailure("there is no setting \(key)") }
            return value
        }
        set { values[key] = newValue }
    }

    /// The value of a setting that is a whole number.
    public func integer(_ key: String) -> Int {
        guard case .integer(let value) = self[key] else { preconditionFailure("\(key) is not a number") }
        return value
    }

    /// The value of a setting that is a string.
    public func text(_ key: String) -> String {
        guard case .text(let value) = self[key] else { preconditionFailure("\(key) is not a text") }
        return value
    }

    func seconds(_ key: String) -> Duration { .seconds(integer(key)) }
}

/// The declaration of a setting.
public struct Setting: Sendable {
    /// The value of a setting.
    public enum Value: Sendable, Equatable, CustomStringConvertible {
        /// A whole number in the unit that the key ends with.
        case integer(Int)
        /// A string.
        case text(String)

        /// The value as JSON, as the configuration file has it.
        public var description: String {
            switch self {
            case .integer(let value): String(value)
            case .text(let value): "\"\(value)\""
            }
        }
    }

    /// The key in the file; in the environment it is upper case behind `STOREKEEPER_`.
    public let key: String
    /// The default value.
    public let initial: Value
    /// The range of a number; without meaning for a string.
    public let range: ClosedRange<Int>
    /// What the setting is for, in a phrase.
    public let summary: String

    private init(_ key: String, _ initial: String, _ summary: String) {
        self.key = key
        self.initial = .text(initial)
        range = 0...0
        self.summary = summary
    }

    private init(_ key: String, _ initial: Int, _ range: ClosedRange<Int>, _ summary: String) {
        self.key = key
        self.initial = .integer(initial)
        self.range = range
        self.summary = summary
    }

    /// Every setting, in the order of the shipped file.
    public static let all: [Setting] = [
        Setting(
            "listen", "127.0.0.1:8080", "address and port, or unix: and the path of a socket; port 0 picks a free one"),
        Setting("listen_also", "none", "a second such place; none: no other"),
        Setting("socket_mode", "0600", "permissions of the file of a Unix socket"),
        Setting(
            "allowed_hosts", "listened",
            "names by which clients reach the server, with commas between; listened: only those of the listened address"
        ),
        Setting(
            "allowed_origins", "none",
            "origins of the pages that may use the server in a browser, with commas between, such as https://app.example"
        ),
        Setting(
            "trusted_proxies", "none",
            "peers whose Forwarded or X-Forwarded-For names the client: addresses, networks, or unix, with commas between; none: no peer"
        ),
        Setting(
            "access", "auto",
            "open: no client needs a token; tokens: each does; auto: each does on any address but loopback, or once there is a token file or jwt_keys"
        ),
        Setting(
            "tokens", "data", "file of the tokens and their grants; data: tokens.json in the directory of the journal"),
        Setting(
            "jwt_keys", "none", "file of the keys of JSON Web Tokens, a JWK Set; none: the server takes no such tokens"),
        Setting("jwt_issuer", "any", "what the claim iss of a JSON Web Token must be; any: anything"),
        Setting("jwt_audience", "any", "what must be in the claim aud of a JSON Web Token; any: anything"),
        Setting(
            "jwt_leeway_seconds", 60, 0...3600, "how far the clocks of this server and of the issuer may be apart"),
        Setting("data", "./data", "directory of the journal; none keeps the state in memory"),
        Setting("domain", "showcase", "the domain to serve"),
        Setting("log_level", "info", "trace, debug, info, notice, warning, error or critical"),
        Setting("body_bytes_max", 8 << 20, 1024...(1 << 30), "longest request body"),
        Setting(
            "compressed_bytes_min", 1024, 0...(1 << 30),
            "least bytes of an answer that is compressed for a client that takes gzip or zstd; 0: none"),
        Setting("depth_max", 64, 4...512, "deepest nesting of a JSON body"),
        Setting("batch_actions_max", 10_000, 1...1_000_000, "most actions in one atomic array"),
        Setting("bulk_lines_max", 200_000, 1...10_000_000, "most lines in an NDJSON body"),
        Setting(
            "bulk_faults_max", 1000, 0...1_000_000, "most faulty lines in an NDJSON body; with more none is committed"),
        Setting(
            "batch_milliseconds_max", 250, 1...60_000,
            "most processor time of one atomic array of more than 16 actions, in which all others wait"),
        Setting("expectations_max", 1000, 1...1_000_000, "most tests of expect in one commit"),
        Setting("wait_seconds_default", 25, 1...3600, "how long a wait without a number lasts"),
        Setting("wait_seconds_max", 55, 1...3600, "longest wait; proxies often end idle requests at 60"),
        Setting("heartbeat_seconds", 15, 1...3600, "longest silence of a stream before its heartbeat"),
        Setting(
            "stream_seconds_max", 900, 1...86_400,
            "longest life of a stream, less up to a quarter; its client then goes on from its last event"),
        Setting("changes_limit_default", 100, 1...100_000, "commits in an answer of /v1/changes"),
        Setting("changes_limit_max", 1000, 1...100_000, "most commits in an answer of /v1/changes"),
        Setting(
            "connections_max", 0, 0...1_000_000,
            "most connections; more are answered 503; 0: as many as the limit of open files allows, up to 20000"),
        Setting(
            "loops", 1, 1...64,
            "threads that serve clients, each with its share of them; more than one needs more cores"),
        Setting("waiters_max", 19_000, 1...1_000_000, "most waiting requests; more are answered 503"),
        Setting(
            "waiters_per_client_max", 16_000, 1...1_000_000,
            "most waiting requests of one address; more are answered 429"),
        Setting(
            "memory_bytes_max", 256 << 20, 1 << 20...(1 << 40),
            "most bytes of unfinished requests and unread answers; above it long ones are 503, of one address 429"),
        Setting(
            "slow_requests_max", 1024, 1...1_000_000,
            "most requests with long bodies, or for large, past or old parts, under way; more are answered 503"),
        Setting(
            "slow_requests_per_client_max", 256, 1...1_000_000,
            "most of these of one address; more are answered 429"),
        Setting("request_head_seconds", 10, 1...3600, "how long the head of a request may take to arrive"),
        Setting(
            "request_body_seconds", 30, 1...86_400, "how long its body may take, and a second more for each 16 KiB"),
        Setting("idle_timeout_seconds", 75, 1...86_400, "how long a silent connection is kept"),
        Setting(
            "mailbox_actions_max", 65_536, 1...10_000_000, "most actions waiting for a turn or the disk; more are 503"),
        Setting(
            "cascade_depth_max", 100_000, 1...10_000_000,
            "most commits in depth that an action causes through follow-ups; deeper ones are refused"),
        Setting(
            "cascade_actions_max", 1_000_000, 1...1_000_000_000,
            "most actions that one action causes in all; more are refused"),
        Setting("effects_max", 10_000, 0...1_000_000, "most effects at once; more are not started, and logged"),
        Setting("history_commits_max", 100_000, 1...100_000_000, "commits kept in memory"),
        Setting("history_bytes_max", 64 << 20, 1024...(1 << 40), "bytes of commits kept in memory"),
        Setting("journal_commits_max", 1_000_000, 1...1_000_000_000, "commits kept in the journal"),
        Setting(
            "journal_bytes_max", 1 << 30, (1 << 20)...(1 << 50),
            "bytes of commits kept in the journal, besides those after its second-newest snapshot"),
        Setting(
            "journal_seconds_max", 0, 0...3_153_600_000,
            "how long a commit is kept in the journal, besides those after its second-newest snapshot; 0: no limit"),
        Setting("journal_snapshots_max", 8, 2...1000, "snapshots kept in the journal"),
        Setting("idempotency_seconds", 86_400, 1...31_536_000, "how long an Idempotency-Key is remembered"),
        Setting(
            "idempotency_keys_max", 1_000_000, 1...100_000_000,
            "most keys remembered; new ones above it are answered 503"),
        Setting("grace_seconds", 10, 0...3600, "longest time to finish the actions in hand when stopping"),
        Setting("films_base_url", "none", "base URL of /films for the films domain; none fetches nothing"),
        Setting("films_timeout_seconds", 5, 1...600, "how long one fetch of the films may take"),
        Setting("films_retries", 2, 0...10, "how often a fetch is repeated without an answer or after a 5xx"),
    ]

    /// The name of the environment variable.
    public var environmentName: String { "STOREKEEPER_" + key.uppercased() }
}
