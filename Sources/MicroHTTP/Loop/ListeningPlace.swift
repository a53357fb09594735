import Glibc

/// An address on which a server listens.
package enum ListeningPlace: Sendable, Equatable {
    /// An address or name of this machine, and a TCP port; with port 0 the system chooses a free one.
    ///
    /// `0.0.0.0` is every IPv4 address; `::` is every address of both kinds, and falls back to `0.0.0.0` where the machine
    /// has no IPv6, as in many containers. Of a name with several addresses, the server uses the first IPv4 one.
    case address(host: String, port: UInt16)
    /// A Unix socket at a path, whose file has these permissions.
    case socket(path: String, mode: UInt32)

    /// Why the system does not let the server listen here: errno(3).
    func fault(_ code: Int32) -> ServerError {
        switch self {
        case .address(let host, let port):
            switch code {
            case EADDRINUSE: .addressInUse(host: host, port: port)
            case EACCES: .permissionDenied(host: host, port: port)
            default: .cannotListen(host: host, port: port, reason: ServerError.words(for: code))
            }
        case .socket(let path, _):
            code == EADDRINUSE
                ? .socketInUse(path: path) : .socketUnusable(path: path, reason: ServerError.words(for: code))
        }
    }
}

/// An address on which a server has begun to listen.
package struct BoundAddress: Sendable, Equatable {
    /// The address in numbers, such as `127.0.0.1` or `::`; empty for a Unix socket.
    package var host = ""
    /// The port, which the system has chosen where the configuration has 0; 0 for a Unix socket.
    package var port: UInt16 = 0
    /// The path of a Unix socket.
    package var path: String?
}
