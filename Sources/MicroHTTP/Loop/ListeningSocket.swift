// microhttpd.h includes the socket headers, and the compiler attributes their declarations to its module.
import CMicroHTTPD
import Glibc

/// The server binds it, because libmicrohttpd does not report why an address cannot be bound.
struct ListeningSocket {
    let descriptor: Int32
    let address: BoundAddress
    /// The service manager then owns the file of a Unix socket, too.
    var isInherited = false

    var file: SocketFile? { isInherited ? nil : address.path.flatMap(SocketFile.init) }

    func close() { Glibc.close(descriptor) }

    func another() throws(ServerError) -> ListeningSocket {
        guard isInherited || address.path != nil else {
            return try Self(host: address.host, port: address.port, isShared: true)
        }
        let place: ListeningPlace =
            address.path.map { .socket(path: $0, mode: 0) } ?? .address(host: address.host, port: address.port)
        // A Unix socket has one file, and the service manager has bound one socket: the loops share its backlog.
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw place.fault(errno) }
        return Self(descriptor: copy, address: address, isInherited: isInherited)
    }
}

extension ListeningSocket {
    init(_ place: ListeningPlace, isShared: Bool) throws(ServerError) {
        if let descriptor = InheritedSockets().socket(on: place) {
            if let address = SocketAddress.bound(to: descriptor) {
                self.init(descriptor: descriptor, address: address, isInherited: true)
                return
            }
            Glibc.close(descriptor)
        }
        switch place {
        case .address(let host, let port): try self.init(host: host, port: port, isShared: isShared)
        case .socket(let path, let mode):
            self.init(descriptor: try SocketFile.listen(at: path, mode: mode), address: BoundAddress(path: path))
        }
    }

    private init(host: String, port: UInt16, isShared: Bool) throws(ServerError) {
        let candidates = try SocketAddress.all(of: host, port: port)
        guard !candidates.isEmpty else {
            throw .hostUnknown(host: host, reason: "it has no IPv4 or IPv6 address")
        }
        var code: Int32 = 0
        for candidate in candidates {
            let descriptor = Self.listen(at: candidate, isShared: isShared)
            if let descriptor, let address = SocketAddress.bound(to: descriptor) {
                self.init(descriptor: descriptor, address: address)
                return
            }
            code = errno
            if let descriptor { Glibc.close(descriptor) }
        }
        // Where IPv6 is off, as in many containers, the server listens on all IPv4 addresses (Libmicrohttpd page, 27).
        guard host == "::", code != EADDRINUSE, code != EACCES else {
            throw ListeningPlace.address(host: host, port: port).fault(code)
        }
        try self.init(host: "0.0.0.0", port: port, isShared: isShared)
    }

    /// Nil for the reason in `errno`.
    private static func listen(at address: SocketAddress, isShared: Bool) -> Int32? {
        let descriptor = SocketAddress.socket(of: address.family)
        guard descriptor >= 0 else { return nil }
        func set(_ level: Int32, _ option: Int32, _ value: Int32) -> Bool {
            var value = value
            return setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
        }
        microhttpd_bound_unsent(descriptor)
        // Without SO_REUSEADDR, a restarted server could not bind while connections of the old one are in TIME_WAIT. With
        // SO_REUSEPORT, each loop has its own socket, and the kernel distributes the clients. `::` accepts IPv4 clients, too,
        // whatever the default of the system.
        guard set(SOL_SOCKET, SO_REUSEADDR, 1), !isShared || set(SOL_SOCKET, SO_REUSEPORT, 1),
            address.family != AF_INET6 || set(Int32(IPPROTO_IPV6), IPV6_V6ONLY, 0),
            address.with({ bind(descriptor, $0, $1) }) == 0, Glibc.listen(descriptor, 4096) == 0
        else {
            let code = errno
            Glibc.close(descriptor)
            errno = code
            return nil
        }
        return descriptor
    }
}
