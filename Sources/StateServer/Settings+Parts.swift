internal import MicroHTTP
internal import StateHTTP
internal import StateJournal
internal import StateStore

/// The settings in the types of the parts of the server.
extension Settings {
    var storeLimits: StoreLimits {
        var limits = StoreLimits(
            mailboxMax: integer("mailbox_actions_max"), idempotencyKeysMax: integer("idempotency_keys_max"),
            idempotencyLifetime: seconds("idempotency_seconds"), historyCommitsMax: integer("history_commits_max"),
            historyBytesMax: integer("history_bytes_max"))
        limits.cascadeDepthMax = integer("cascade_depth_max")
        limits.cascadeActionsMax = integer("cascade_actions_max")
        limits.effectsMax = integer("effects_max")
        limits.transactionTime = .milliseconds(integer("batch_milliseconds_max"))
        return limits
    }

    var contractLimits: ContractLimits {
        var limits = ContractLimits()
        limits.bodyBytesMax = integer("body_bytes_max")
        limits.compressedBytesMin = integer("compressed_bytes_min")
        limits.depthMax = integer("depth_max")
        limits.waitDefault = seconds("wait_seconds_default")
        limits.waitMax = seconds("wait_seconds_max")
        limits.changesLimitDefault = integer("changes_limit_default")
        limits.changesLimitMax = integer("changes_limit_max")
        limits.batchActionsMax = integer("batch_actions_max")
        limits.bulkLinesMax = integer("bulk_lines_max")
        limits.expectationsMax = integer("expectations_max")
        limits.bulkFaultsMax = integer("bulk_faults_max")
        limits.idempotencyLifetime = seconds("idempotency_seconds")
        let transport = ServerConfiguration()
        limits.transport = [
            ("batch_milliseconds_max", integer("batch_milliseconds_max")),
            ("slow_requests_max", integer("slow_requests_max")),
            ("slow_requests_per_client_max", integer("slow_requests_per_client_max")),
            // These are not settings.
            ("head_bytes_max", transport.headBytesMax), ("head_fields_max", transport.fieldsMax),
            ("target_bytes_max", transport.targetBytesMax), ("target_parameters_max", transport.parametersMax),
            ("memory_bytes_max", integer("memory_bytes_max")),
            ("request_head_seconds", integer("request_head_seconds")),
            ("request_body_seconds", integer("request_body_seconds")), ("waiters_max", watchLimits.watchesMax),
            ("waiters_per_client_max", watchLimits.watchesPerClientMax), ("connections_max", connectionsMax),
            ("mailbox_actions_max", integer("mailbox_actions_max")),
            ("idempotency_keys_max", integer("idempotency_keys_max")),
        ]
        return limits
    }

    var metricLimits: ServerMetrics.Limits {
        ServerMetrics.Limits(
            connections: connectionsMax, waiters: watchLimits.watchesMax,
            mailboxActions: integer("mailbox_actions_max"), idempotencyKeys: integer("idempotency_keys_max"),
            memoryBytes: integer("memory_bytes_max"))
    }

    /// The names by which clients may reach a server that listens on these places.
    ///
    /// - Throws: ``SettingsFault`` for a name that no request can have.
    func allowedHosts(listening places: [ListeningPlace]) throws(SettingsFault) -> AllowedHosts {
        AllowedHosts(listening: places.compactMap(\.host), further: try allowedNames())
    }

    /// The proxies whose word for the addresses of their clients counts.
    ///
    /// - Throws: ``SettingsFault`` for a name that is neither an address nor a network.
    func trustedProxies() throws(SettingsFault) -> TrustedProxies {
        let text = text("trusted_proxies")
        guard text != "none" else { return TrustedProxies() }
        let names = text.split(separator: ",", omittingEmptySubsequences: false).map { String($0.filter { $0 != " " }) }
        guard let proxies = TrustedProxies(names) else {
            throw SettingsFault(
                description:
                    "trusted_proxies must be none, or addresses, networks and unix with commas between, such as 127.0.0.1, 10.0.0.0/8, fd00::/8; a network has no bits behind its prefix"
            )
        }
        return proxies
    }

    /// The origins whose pages may use the server in a browser.
    var allowedOrigins: AllowedOrigins {
        let text = text("allowed_origins")
        return AllowedOrigins(text == "none" ? [] : text.split(separator: ",").map { $0.filter { $0 != " " } })
    }

    /// The file of the tokens; nil where there is no data directory for it.
    var tokenFile: TokenFile? {
        let path = text("tokens")
        guard path == "data" else { return TokenFile(path: path) }
        let data = text("data")
        return data == "none" ? nil : TokenFile(path: data + "/tokens.json")
    }

    /// The names in `allowed_hosts`.
    ///
    /// - Throws: ``SettingsFault`` for a name that no request can have.
    func allowedNames() throws(SettingsFault) -> [String] {
        let text = text("allowed_hosts")
        guard text != "listened" else { return [] }
        let names = text.split(separator: ",", omittingEmptySubsequences: false).map(AllowedHosts.trimmed)
        guard names.allSatisfy({ $0 != "listened" && AllowedHosts.isName($0) }) else {
            throw SettingsFault(
                description:
                    "allowed_hosts must be listened, or names with commas between them such as state.example, 192.0.2.1:8080 or [2001:db8::1]: no pattern, no URL and no empty name"
            )
        }
        return names
    }

    /// The file of the keys that sign JSON Web Tokens.
    var keyFile: KeyFile { KeyFile(path: text("jwt_keys")) }

    /// What the claims of JSON Web Tokens must be.
    var claimRules: ClaimRules {
        func required(_ key: String) -> String? { text(key) == "any" ? nil : text(key) }
        return ClaimRules(
            issuer: required("jwt_issuer"), audience: required("jwt_audience"), leeway: seconds("jwt_leeway_seconds"))
    }

    /// The verifier of JSON Web Tokens; nil where the server takes none.
    ///
    /// - Throws: ``SettingsFault`` where it has to take them, and this build cannot.
    func signatureVerifier() throws(SettingsFault) -> SignatureVerifier? {
        guard text("jwt_keys") != "none" else { return nil }
        guard let verifier = SignatureVerifier.built else {
            throw SettingsFault(
                description:
                    "jwt_keys is set, and this build cannot verify JSON Web Tokens: build it with `swift build --traits JWT`"
            )
        }
        return verifier
    }

    var retention: SQLiteJournal.Retention {
        SQLiteJournal.Retention(
            commitsMax: integer("journal_commits_max"), snapshotsMax: integer("journal_snapshots_max"),
            bytesMax: integer("journal_bytes_max"), secondsMax: integer("journal_seconds_max"))
    }

    /// `connections_max`, or for 0 as many as the limit of open files allows, up to 20000.
    var connectionsMax: Int {
        let most = integer("connections_max")
        return most > 0 ? most : min(20_000, ServerConfiguration.connectionsAllowed)
    }

    var watchLimits: WatchLimits {
        // A waiting request holds its connection, so a part of the connections stays free for actions and probes.
        let room = connectionsMax - max(8, connectionsMax / 32)
        return WatchLimits(
            watchesMax: min(integer("waiters_max"), room), watchesPerClientMax: integer("waiters_per_client_max"),
            valuesBytesMax: integer("memory_bytes_max") / 4)
    }

    /// The places in `listen` and `listen_also`.
    ///
    /// - Throws: ``SettingsFault`` for a place that is neither `host:port`, with brackets around an IPv6 address, nor `unix:`
    ///   and a path.
    func listeningPlaces() throws(SettingsFault) -> [ListeningPlace] {
        let first = try listeningPlace("listen")
        return text("listen_also") == "none" ? [first] : [first, try listeningPlace("listen_also")]
    }

    private func listeningPlace(_ key: String) throws(SettingsFault) -> ListeningPlace {
        let text = text(key)
        let fault = SettingsFault(
            description:
                "\(key) must be an address and a port such as 127.0.0.1:8080, [::1]:8080 or 0.0.0.0:0, or unix: and a path of at most 107 bytes"
        )
        if text.hasPrefix("unix:") {
            let path = text.dropFirst(5)
            guard (1...107).contains(path.utf8.count), !path.utf8.contains(0) else { throw fault }
            return .socket(path: String(path), mode: try socketMode())
        }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            throw fault
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty, !(host.contains(":") && !text.hasPrefix("[")) else { throw fault }
        return .address(host: String(host), port: port)
    }

    private func socketMode() throws(SettingsFault) -> UInt32 {
        let text = text("socket_mode")
        // UInt32.init accepts "+600".
        guard let mode = UInt32(text, radix: 8), (3...4).contains(text.utf8.count), !text.hasPrefix("+"),
            mode & ~0o777 == 0, mode & 0o600 == 0o600
        else {
            throw SettingsFault(
                description:
                    "socket_mode must be permissions in octal digits that let the user read and write, such as 0600 or 0660"
            )
        }
        return mode
    }

    /// A place at which a client on this machine reaches a server.
    public enum ReachablePlace: Sendable, Equatable {
        /// An address or name, and a TCP port.
        case address(host: String, port: UInt16)
        /// The path of a Unix socket.
        case socket(path: String)
    }

    /// The place at which a client on this machine reaches a server with these settings.
    ///
    /// - Throws: ``SettingsFault`` when `listen` or `listen_also` is not a place.
    public func reachablePlace() throws(SettingsFault) -> ReachablePlace {
        switch try listeningPlaces()[0] {
        case .address("0.0.0.0", let port): .address(host: "127.0.0.1", port: port)
        case .address("::", let port): .address(host: "localhost", port: port)
        case .address(let host, let port): .address(host: host, port: port)
        case .socket(let path, _): .socket(path: path)
        }
    }
}

extension ListeningPlace {
    /// The address or name; nil for a Unix socket.
    var host: String? {
        if case .address(let host, _) = self { host } else { nil }
    }
}
