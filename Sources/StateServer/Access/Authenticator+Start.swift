internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateStore

extension Authenticator {
    /// Makes and logs a token that allows everything where a protected server has neither a token file nor keys.
    convenience init(
        _ settings: Settings, _ file: TokenFile?, _ signed: SignedTokens?, places: [ListeningPlace],
        _ catalogue: Catalogue, now: @escaping @Sendable () -> Instant,
        date: @escaping @Sendable () -> Timestamp, logger: Logger
    ) throws(SettingsFault) {
        let access = settings.access
        guard access != .open else {
            self.init(catalogue, tokens: nil, takesProxied: true, now: now, logger: logger)
            return
        }
        let watched = file.map { WatchedFile($0.file, decode: $0.entries) }
        var tokens = try file?.read()
        let isOpen = if access == .auto { try settings.isReachedFromHereOnly(places) } else { false }
        if !isOpen, tokens == nil, signed == nil {
            let token = Token()
            let first = [TokenEntry(token, subject: "admin", .everything)]
            tokens = first
            // A command may have made the file since.
            try file?.change { entries in
                tokens = entries ?? first
                entries = tokens
            }
            if tokens == first {
                let use = "curl -H 'Authorization: Bearer \(token.text)' \(Self.reachable(settings))/v1"
                logger.log(
                    .notice,
                    "protected: this token allows everything and is shown only now; --open serves everybody without one",
                    ["token": first[0].id, "use": use])
            }
        }
        self.init(catalogue, tokens: tokens, file: watched, signed: signed, now: now, date: date, logger: logger)
        warnWithoutAdministrator()
    }

    private static func reachable(_ settings: Settings) -> String {
        switch try? settings.reachablePlace() {
        case .address(let host, let port)?: "http://\(host.contains(":") ? "[\(host)]" : host):\(port)"
        case .socket(let path, _)?: "--unix-socket \(path) http://localhost"
        case nil: settings.listen
        }
    }
}
