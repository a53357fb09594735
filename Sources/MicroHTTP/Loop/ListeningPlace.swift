import Glibc

package enum ListeningPlace: Sendable, Equatable {
    /// Port 0 lets the system choose. `::` is every address of both kinds, and falls back to `0.0.0.0` where the
    /// machine has no IPv6, as in many containers. Of a name with several addresses, the server uses the first IPv4
    /// one.
    case address(host: String, port: UInt16)
    case socket(path: String, mode: UInt32)

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

package struct BoundAddress: Sendable, Equatable {
    /// Empty for a Unix socket.
    package var host = ""
    /// 0 for a Unix socket.
    package var port: UInt16 = 0
    package var path: String?
}
