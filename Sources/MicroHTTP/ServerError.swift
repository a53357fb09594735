import Glibc

/// Each description is a sentence for the operator.
package enum ServerError: Error, Equatable, CustomStringConvertible {
    case hostUnknown(host: String, reason: String)
    case addressInUse(host: String, port: UInt16)
    case permissionDenied(host: String, port: UInt16)
    case cannotListen(host: String, port: UInt16, reason: String)
    case socketInUse(path: String)
    case socketUnusable(path: String, reason: String)
    case descriptorLimit(needed: Int, allowed: Int)
    case unavailable(reason: String)
    case alreadyStarted

    package var isOfAddress: Bool {
        switch self {
        case .hostUnknown, .addressInUse, .permissionDenied, .cannotListen, .socketInUse, .socketUnusable: true
        case .descriptorLimit, .unavailable, .alreadyStarted: false
        }
    }

    package var description: String {
        switch self {
        case .hostUnknown(let host, let reason):
            "cannot listen on \(host): \(reason); expected an address of this machine, such as 127.0.0.1, 0.0.0.0 or ::"
        case .addressInUse(let host, let port):
            "cannot listen on \(host) port \(port): another process already does; stop it or choose another port"
        case .permissionDenied(let host, let port):
            "cannot listen on \(host) port \(port): permission denied; expected a port of 1024 or above, or the privilege"
        case .cannotListen(let host, let port, let reason):
            "cannot listen on \(host) port \(port): \(reason)"
        case .socketInUse(let path):
            "cannot listen on the socket \(path): another process already does; stop it or choose another path"
        case .socketUnusable(let path, let reason):
            "cannot listen on the socket \(path): \(reason)"
        case .descriptorLimit(let needed, let allowed):
            "the connections need \(needed) open files and this process may have \(allowed); "
                + "raise the hard limit (ulimit -Hn) or lower the number of connections"
        case .unavailable(let reason):
            "the server could not be set up: \(reason)"
        case .alreadyStarted:
            "this server has been started before; make a new one"
        }
    }

    static func words(for code: Int32) -> String {
        String(cString: strerror(code))
    }
}
