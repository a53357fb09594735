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

    /// The names by which clients may reach a server that listens on a host.
    ///
    /// - Throws: ``SettingsFault`` for a name that no request can have.
    func allowedHosts(listening host: String) throws(SettingsFault) -> AllowedHosts {
        AllowedHosts(listening: host, further: try allowedNames())
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

    var retention: SQLiteJournal.Retention {
        SQLiteJournal.Retention(
            commitsMax: integer("journal_commits_max"), snapshotsMax: integer("journal_snapshots_max"),
            bytesMax: integer("journal_bytes_max"))
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

    /// The host and the port in `listen`.
    ///
    /// - Throws: ``SettingsFault`` unless `listen` is `host:port`, with brackets around an IPv6 address.
    func listenAddress() throws(SettingsFault) -> (host: String, port: UInt16) {
        let text = text("listen")
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            throw SettingsFault(
                description: "listen must be an address and a port such as 127.0.0.1:8080, [::1]:8080 or 0.0.0.0:0")
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty, !(host.contains(":") && !text.hasPrefix("[")) else {
            throw SettingsFault(
                description: "listen must be an address and a port such as 127.0.0.1:8080, [::1]:8080 or 0.0.0.0:0")
        }
        return (String(host), port)
    }

    /// The address at which a client on this machine reaches a server with these settings.
    ///
    /// - Throws: ``SettingsFault`` when `listen` is not an address and a port.
    public func reachableAddress() throws(SettingsFault) -> (host: String, port: UInt16) {
        let (host, port) = try listenAddress()
        return switch host {
        case "0.0.0.0": ("127.0.0.1", port)
        case "::": ("localhost", port)
        default: (host, port)
        }
    }
}
