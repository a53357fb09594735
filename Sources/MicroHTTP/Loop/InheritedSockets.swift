// microhttpd.h includes the socket headers, and the compiler attributes their declarations to its module.
import CMicroHTTPD
import Glibc

/// Sockets that a service manager such as systemd has opened before (sd_listen_fds(3)); their addresses are not bound
/// again, so clients wait while the server restarts.
struct InheritedSockets {
    private let descriptors: Range<Int32>

    init() {
        func number(_ name: String) -> Int32? { getenv(name).flatMap { Int32(String(cString: $0)) } }
        let isOurs = number("LISTEN_PID") == getpid()
        descriptors = 3..<(3 + (isOurs ? min(max(0, number("LISTEN_FDS") ?? 0), 64) : 0))
    }

    /// The original stays open, so that the kernel keeps the clients that connect while the process ends.
    func socket(on place: ListeningPlace) -> Int32? {
        for descriptor in descriptors where Self.isListening(descriptor) && listens(descriptor, on: place) {
            let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
            guard copy >= 0 else { return nil }
            _ = fcntl(copy, F_SETFL, fcntl(copy, F_GETFL) | O_NONBLOCK)
            microhttpd_bound_unsent(copy)
            return copy
        }
        return nil
    }

    private static func isListening(_ descriptor: Int32) -> Bool {
        var isListening: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0 && isListening != 0
    }

    private func listens(_ descriptor: Int32, on place: ListeningPlace) -> Bool {
        guard let bound = SocketAddress.bound(to: descriptor) else { return false }
        switch place {
        case .address(let host, let port):
            let addresses = (try? SocketAddress.all(of: host, port: port)) ?? []
            let hosts = addresses.map { $0.with { address, _ in numericAddress(address) }?.host }
            return bound.path == nil && bound.port == port && hosts.contains(bound.host)
        case .socket(let path, _): return bound.path.map { $0.utf8.elementsEqual(path.utf8) } ?? false
        }
    }
}
