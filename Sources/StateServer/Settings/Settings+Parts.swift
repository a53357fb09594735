internal import HTTPClient
internal import HTTPMessages
internal import MicroHTTP
internal import StateCluster
internal import StateHTTP
internal import StateJournal
internal import StateStore

extension Settings {
    var storeLimits: StoreLimits {
        var limits = StoreLimits()
        limits.mailboxMax = self.mailboxActionsMax
        limits.idempotencyKeysMax = self.idempotencyKeysMax
        limits.idempotencyLifetime = .seconds(self.idempotencySeconds)
        limits.historyCommitsMax = self.historyCommitsMax
        limits.historyBytesMax = self.historyBytesMax
        limits.cascadeDepthMax = self.cascadeDepthMax
        limits.cascadeActionsMax = self.cascadeActionsMax
        limits.effectsMax = self.effectsMax
        limits.scheduleMax = self.scheduleMax
        limits.scheduleBytesMax = self.scheduleBytesMax
        limits.stateBytesMax = self.stateBytesMax
        limits.stateMemoryBytesMax = self.stateMemoryBytesMax
        limits.transactionTime = .milliseconds(self.batchMillisecondsMax)
        return limits
    }

    var contractLimits: ContractLimits {
        var limits = ContractLimits()
        limits.bodyBytesMax = self.bodyBytesMax
        limits.compressedBytesMin = self.compressedBytesMin
        limits.depthMax = self.depthMax
        limits.waitDefault = .seconds(self.waitSecondsDefault)
        limits.waitMax = .seconds(self.waitSecondsMax)
        limits.changesLimitDefault = self.changesLimitDefault
        limits.changesLimitMax = self.changesLimitMax
        limits.queryLimitMax = self.queryLimitMax
        limits.batchActionsMax = self.batchActionsMax
        limits.bulkLinesMax = self.bulkLinesMax
        limits.expectationsMax = self.expectationsMax
        limits.bulkFaultsMax = self.bulkFaultsMax
        limits.idempotencyLifetime = .seconds(self.idempotencySeconds)
        limits.hasPage = self.page == "on"
        limits.name = self.name.unlessNone
        limits.pageConfirms = self.pageConfirm == "on"
        let (transport, watches) = (ServerConfiguration(), watchLimits)
        limits.transport = [
            ("batch_milliseconds_max", self.batchMillisecondsMax), ("slow_requests_max", self.slowRequestsMax),
            ("slow_requests_per_client_max", self.slowRequestsPerClientMax),
            // These are not settings.
            ("head_bytes_max", transport.headBytesMax), ("head_fields_max", transport.fieldsMax),
            ("target_bytes_max", transport.targetBytesMax), ("target_parameters_max", transport.parametersMax),
            ("memory_bytes_max", self.memoryBytesMax), ("request_head_seconds", self.requestHeadSeconds),
            ("request_body_seconds", self.requestBodySeconds), ("waiters_max", watches.watchesMax),
            ("waiters_per_client_max", watches.watchesPerClientMax), ("views_watched_max", watches.viewsMax),
            ("connections_max", connectionsLimit), ("mailbox_actions_max", self.mailboxActionsMax),
            ("idempotency_keys_max", self.idempotencyKeysMax), ("schedule_max", self.scheduleMax),
        ]
        return limits
    }

    func transport(on places: [ListeningPlace]) throws(SettingsFault) -> ServerConfiguration {
        var configuration = ServerConfiguration(
            bodyBytesMax: self.bodyBytesMax, connectionsMax: connectionsLimit,
            idleTimeout: .seconds(self.idleTimeoutSeconds), loops: self.loops)
        configuration.places = places
        configuration.memoryBytesMax = self.memoryBytesMax
        configuration.headTime = .seconds(self.requestHeadSeconds)
        configuration.bodyTime = .seconds(self.requestBodySeconds)
        configuration.trustedProxies = try proxies()
        configuration.reservedTargets = ["/livez", "/readyz", "/readyz?verbose", "/metrics"]
        return configuration
    }

    func hosts(listening places: [ListeningPlace]) throws(SettingsFault) -> AllowedHosts {
        // The other servers of a cluster send actions to that name.
        AllowedHosts(
            listening: places.compactMap(\.host) + [ForwardingAddress.host(of: self.clusterAddress)].compactMap(\.self),
            further: try allowedNames())
    }

    func proxies() throws(SettingsFault) -> TrustedProxies {
        guard let text = self.trustedProxies.unlessNone else { return TrustedProxies() }
        let names = text.split(separator: ",", omittingEmptySubsequences: false).map { String($0.filter { $0 != " " }) }
        guard let proxies = TrustedProxies(names) else {
            throw SettingsFault(
                "trusted_proxies must be none, or addresses, networks and unix separated by commas, such as 127.0.0.1, 10.0.0.0/8, fd00::/8; a network has no bits set after its prefix"
            )
        }
        return proxies
    }

    var pageOrigins: AllowedOrigins {
        let texts = self.allowedOrigins.unlessNone?.split(separator: ",") ?? []
        return AllowedOrigins(texts.map { $0.filter { $0 != " " } })
    }

    /// The file of the tokens, which a journal in etcd has beside its turns; nil if the settings name none.
    func tokenFile(followedBy cluster: ClusterJournal? = nil) throws -> TokenFile? {
        guard self.tokens == "data" else { return TokenFile(path: self.tokens) }
        return try JournalPlace(self.data, self).map {
            TokenFile(try $0.document(TokenEntry.key, name: TokenEntry.name, followedBy: cluster))
        }
    }

    func etcdAddress(_ text: String) throws(SettingsFault) -> ClusterAddress {
        guard var address = ClusterAddress(text) else {
            throw SettingsFault(
                "data is \(text): for a journal in etcd it is etcd://host:port,host:port/name, with a name of letters, digits, -, _, . and /"
            )
        }
        address.tls.authorities = self.etcdAuthorities.unlessNone
        address.tls.certificate = self.etcdCertificate.unlessNone
        address.tls.key = self.etcdKey.unlessNone
        guard let user = self.etcdUser.unlessNone else { return address }
        let passwordFile = SharedFile(path: self.etcdPassword, name: "password of etcd")
        guard let bytes = try passwordFile.bytes() else {
            throw SettingsFault("etcd_user is set, and there is no file \(passwordFile.path) with the password")
        }
        address.user = .init(name: user) {
            let newest = passwordFile.isRegular ? try? passwordFile.bytes() : nil
            let lines = String(decoding: newest ?? bytes, as: UTF8.self).split(separator: "\n", maxSplits: 1)
            return lines.first.map { String($0) } ?? ""
        }
        return address
    }

    func allowedNames() throws(SettingsFault) -> [String] {
        let text = self.allowedHosts
        guard text != "listened" else { return [] }
        let names = text.split(separator: ",", omittingEmptySubsequences: false).map { String($0.trimmingSpaces()) }
        guard names.allSatisfy({ $0 != "listened" && AllowedHosts.isName($0) }) else {
            throw SettingsFault(
                "allowed_hosts must be listened, or names separated by commas, such as state.example, 192.0.2.1:8080 or [2001:db8::1]: no pattern, no URL and no empty name"
            )
        }
        return names
    }

    func isReachedFromHereOnly(_ places: [ListeningPlace]) throws(SettingsFault) -> Bool {
        let hosts = places.compactMap(\.host) + (try allowedNames().map(AllowedHosts.host))
        return self.trustedProxies == "none" && hosts.allSatisfy(AllowedHosts.isLoopback)
    }

    var keyFile: KeyFile? { self.jwtKeys.unlessNone.map(KeyFile.init) }

    var claimRules: ClaimRules {
        func required(_ text: String) -> String? { text == "any" ? nil : text }
        return ClaimRules(
            issuer: required(self.jwtIssuer), audience: required(self.jwtAudience),
            leeway: .seconds(self.jwtLeewaySeconds), grant: SettingKeys.grant(self.jwtGrant))
    }

    var retention: JournalRetention {
        JournalRetention(
            commitsMax: self.journalCommitsMax, snapshotsMax: self.journalSnapshotsMax,
            bytesMax: self.journalBytesMax, secondsMax: self.journalSecondsMax)
    }

    /// `connections_max`, or for 0 as many as the limit of open files allows, up to 20000.
    var connectionsLimit: Int {
        let most = self.connectionsMax
        return most > 0 ? most : min(20_000, ServerConfiguration.connectionsAllowed)
    }

    var watchLimits: WatchLimits {
        // A waiting request holds its connection, so a part of the connections stays free for actions and probes.
        let room = connectionsLimit - max(8, connectionsLimit / 32)
        var limits = WatchLimits()
        limits.watchesMax = min(self.waitersMax, room)
        limits.watchesPerClientMax = self.waitersPerClientMax
        limits.valuesBytesMax = self.memoryBytesMax / 4
        limits.viewsMax = self.viewsWatchedMax
        limits.queriesMax = self.queriesWatchedMax
        limits.queriesBytesMax = self.memoryBytesMax / 4
        return limits
    }

    func listeningPlaces() throws(SettingsFault) -> [ListeningPlace] {
        let mode = try socketPermissions()
        let also = self.listenAlso == "none" ? [] : [SettingKeys.shared.listenAlso.declared]
        return try ([SettingKeys.shared.listen.declared] + also).map { (setting) throws(SettingsFault) in
            guard let place = ListeningPlace(self[setting], socketMode: mode) else {
                throw setting.misfit("set by the program")
            }
            return place
        }
    }

    private func socketPermissions() throws(SettingsFault) -> UInt32 {
        let text = self.socketMode
        // UInt32.init accepts "+600".
        guard let mode = UInt32(text, radix: 8), (3...4).contains(text.utf8.count), !text.hasPrefix("+"),
            mode & ~0o777 == 0, mode & 0o600 == 0o600
        else {
            throw SettingsFault(
                "socket_mode must be permissions in octal digits that let the user read and write, such as 0600 or 0660"
            )
        }
        return mode
    }

    func reachablePlace() throws(SettingsFault) -> ListeningPlace {
        let place = try listeningPlaces()[0]
        return switch place {
        case .address("0.0.0.0", let port): .address(host: "127.0.0.1", port: port)
        case .address("::", let port): .address(host: "localhost", port: port)
        case .address, .socket: place
        }
    }
}

extension String {
    var unlessNone: String? { self == "none" ? nil : self }
}

extension ListeningPlace {
    static let expectation =
        "an address and a port such as 127.0.0.1:8080, [::1]:8080 or 0.0.0.0:0, or unix: and a path of at most 107 bytes"

    init?(_ text: String, socketMode: UInt32) {
        if text.hasPrefix("unix:") {
            let path = text.dropFirst(5)
            guard (1...107).contains(path.utf8.count), !path.utf8.contains(0) else { return nil }
            self = .socket(path: String(path), mode: socketMode)
            return
        }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            return nil
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty, !(host.contains(":") && !text.hasPrefix("[")) else { return nil }
        self = .address(host: String(host), port: port)
    }

    var host: String? {
        if case .address(let host, _) = self { host } else { nil }
    }
}
