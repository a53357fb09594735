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
        limits.idempotencyLifetime = seconds("idempotency_seconds")
        limits.transport = [
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

    /// The names by which clients may reach a server that listens on a host.
    func allowedHosts(listening host: String) -> AllowedHosts {
        let text = text("allowed_hosts")
        let names = text == "listened" ? [] : text.split(separator: ",").map { $0.filter { $0 != " " } }
        return AllowedHosts(listening: host, further: names)
    }

    /// The file of the tokens; nil where there is no data directory for it.
    var tokenFile: TokenFile? {
        let path = text("tokens")
        guard path == "data" else { return TokenFile(path: path) }
        let data = text("data")
        return data == "none" ? nil : TokenFile(path: data + "/tokens.json")
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
