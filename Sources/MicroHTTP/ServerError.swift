import Glibc

/// Why a server could not start.
///
/// Each description is a sentence for the operator.
package enum ServerError: Error, Equatable, CustomStringConvertible {
    /// The host is neither an address of this machine nor a name that resolves to one.
    case hostUnknown(host: String, reason: String)
    /// Another process already listens on that address.
    case addressInUse(host: String, port: UInt16)
    /// The port needs a privilege that this process does not have.
    case permissionDenied(host: String, port: UInt16)
    /// The system refused that address for another reason.
    case cannotListen(host: String, port: UInt16, reason: String)
    /// Another process already listens on the Unix socket at that path.
    case socketInUse(path: String)
    /// There can be no Unix socket at that path.
    case socketUnusable(path: String, reason: String)
    /// The process may not open as many files as the connections need.
    case descriptorLimit(needed: Int, allowed: Int)
    /// A system call that the server needs has failed, or libmicrohttpd did not start.
    case unavailable(reason: String)
    /// ``HTTPServer/start()`` was called before; a server starts once.
    case alreadyStarted

    /// Whether the address to listen on cannot be had.
    package var isOfAddress: Bool {
        switch self {
        case .hostUnknown, .addressInUse, .permissionDenied, .cannotListen, .socketInUse, .socketUnusable: true
        case .descriptorLimit, .unavailable, .alreadyStarted: false
        }
    }

    /// A sentence with what happened, to what, and what was expected.
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
