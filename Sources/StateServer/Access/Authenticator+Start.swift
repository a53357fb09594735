internal import Logging
internal import MicroHTTP
internal import StateHTTP
internal import StateStore

extension Authenticator {
    /// Makes the authenticator of a server by its settings.
    ///
    /// Where a protected server has no token yet, it makes one that allows everything, keeps its hash in the token file, and
    /// logs the token once.
    ///
    /// - Throws: ``SettingsFault`` for a token file that cannot be read or written.
    convenience init(
        _ settings: Settings, places: [ListeningPlace], _ catalogue: Catalogue, now: @escaping @Sendable () -> Instant,
        logger: Logger
    ) throws(SettingsFault) {
        let access = settings.text("access")
        guard access != "open" else {
            self.init(catalogue, tokens: nil, now: now, logger: logger)
            return
        }
        let file = settings.tokenFile
        let stamp = file?.stamp
        var tokens = try file?.read()
        let isOpen = access == "auto" && places.allSatisfy { $0.host.map(AllowedHosts.isLoopback) ?? true }
        if !isOpen, tokens == nil {
            let token = Token()
            let entry = TokenFile.Entry(token, subject: "admin", .everything)
            tokens = [entry]
            try file?.write([entry])
            logger.notice(
                "protected: this token allows everything and is shown only now; --open serves everybody without one",
                metadata: [
                    "token": .string(entry.id),
                    "use": .string(
                        "curl -H 'Authorization: Bearer \(token.text)' \(Self.reachable(settings))/v1"),
                ])
        }
        self.init(catalogue, tokens: tokens, file: file, stamp: stamp, now: now, logger: logger)
    }

    /// The arguments with which curl reaches the server.
    private static func reachable(_ settings: Settings) -> String {
        switch try? settings.reachablePlace() {
        case .address(let host, let port)?: "http://\(host.contains(":") ? "[\(host)]" : host):\(port)"
        case .socket(let path)?: "--unix-socket \(path) http://localhost"
        // The settings have been read, so there is a place.
        case nil: settings.text("listen")
        }
    }
}
