/// An address on which a server listens.
package enum ListeningPlace: Sendable, Equatable {
    /// An address or name of this machine, and a TCP port; with port 0 the system chooses a free one.
    ///
    /// `0.0.0.0` is every IPv4 address; `::` is every address of both kinds, and falls back to `0.0.0.0` where the machine
    /// has no IPv6, as in many containers. Of a name with several addresses, the server uses the first IPv4 one.
    case address(host: String, port: UInt16)
    /// A Unix socket at a path, whose file has these permissions.
    case socket(path: String, mode: UInt32)
}

/// An address on which a server has begun to listen.
package struct BoundAddress: Sendable, Equatable {
    /// The address in numbers, such as `127.0.0.1` or `::`; empty for a Unix socket.
    package let host: String
    /// The port, which the system has chosen where the configuration has 0; 0 for a Unix socket.
    package let port: UInt16
    /// The path of a Unix socket.
    package let path: String?

    init(host: String, port: UInt16) { (self.host, self.port, path) = (host, port, nil) }

    init(path: String) { (host, port, self.path) = ("", 0, path) }
}
