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
            let address = try SocketFile.freeAddress(of: path, place)
            guard let descriptor = Self.listen(at: address, isShared: false, file: (path, mode)) else {
                throw place.fault(errno)
            }
            self.init(descriptor: descriptor, address: BoundAddress(path: path))
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
    private static func listen(
        at address: SocketAddress, isShared: Bool, file: (path: String, mode: UInt32)? = nil
    ) -> Int32? {
        let descriptor = SocketAddress.socket(of: address.family)
        guard descriptor >= 0 else { return nil }
        func set(_ level: Int32, _ option: Int32, _ value: Int32) -> Bool {
            var value = value
            return setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
        }
        microhttpd_bound_unsent(descriptor)
        // Without SO_REUSEADDR, a restarted server could not bind while connections of the old one are in TIME_WAIT. With
        // SO_REUSEPORT, each loop has its own socket, and the kernel distributes the clients. `::` accepts IPv4 clients, too,
        // whatever the default of the system. A client can connect after the last step, so it never meets other permissions
        // of a file.
        guard set(SOL_SOCKET, SO_REUSEADDR, 1), !isShared || set(SOL_SOCKET, SO_REUSEPORT, 1),
            address.family != AF_INET6 || set(Int32(IPPROTO_IPV6), IPV6_V6ONLY, 0),
            address.with({ bind(descriptor, $0, $1) }) == 0, file.map({ chmod($0.path, $0.mode) == 0 }) ?? true,
            Glibc.listen(descriptor, 4096) == 0
        else {
            let code = errno
            Glibc.close(descriptor)
            errno = code
            return nil
        }
        return descriptor
    }
}

package enum ListeningPlace: Sendable, Equatable {
    /// Port 0 lets the system choose. `::` is every address of both kinds, and falls back to `0.0.0.0` where the
    /// machine has no IPv6, as in many containers. Of a name with several addresses, the server uses the first IPv4
    /// one.
    case address(host: String, port: UInt16)
    case socket(path: String, mode: UInt32)

    /// The descriptor of a socket that is connected to the place and blocks for so long; -1 with the reason in `errno`, which
    /// is that of the first address.
    package func connect(within seconds: Int) throws(ServerError) -> Int32 {
        let addresses =
            switch self {
            case .address(let host, let port): try SocketAddress.all(of: host, port: port)
            case .socket(let path, _): [SocketAddress(path: path)].compactMap { $0 }
            }
        var code: Int32?
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        for address in addresses {
            let descriptor = Glibc.socket(address.family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            for option in [SO_RCVTIMEO, SO_SNDTIMEO] where descriptor >= 0 {
                setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
            }
            if descriptor >= 0, address.with({ Glibc.connect(descriptor, $0, $1) }) == 0 { return descriptor }
            code = code ?? errno
            close(descriptor)
        }
        errno = code ?? EADDRNOTAVAIL
        return -1
    }

    func fault(_ code: Int32) -> ServerError {
        switch (self, code) {
        case (.address, EADDRINUSE): fault("another process already does; stop it or choose another port")
        case (.address, EACCES): fault("permission denied; expected a port of 1024 or above, or the privilege")
        case (.socket, EADDRINUSE): fault("another process already does; stop it or choose another path")
        default: fault(ServerError.words(for: code))
        }
    }

    func fault(_ reason: String) -> ServerError {
        let name =
            switch self {
            case .address(let host, let port): "\(host) port \(port)"
            case .socket(let path, _): "the socket \(path)"
            }
        return ServerError(isOfAddress: true, description: "cannot listen on \(name): \(reason)")
    }
}

package struct BoundAddress: Sendable, Equatable {
    /// Empty for a Unix socket.
    package var host = ""
    /// 0 for a Unix socket.
    package var port: UInt16 = 0
    package var path: String?
}

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

struct SocketFile {
    private let path: String
    /// Tells the file from another server's at the same path.
    private let device: dev_t
    private let inode: ino_t

    init?(path: String) {
        var status = stat()
        guard lstat(path, &status) == 0, Self.isSocket(status) else { return nil }
        (self.path, device, inode) = (path, status.st_dev, status.st_ino)
    }

    /// Another server's file at the path stays.
    func remove() {
        guard let present = SocketFile(path: path), present.device == device, present.inode == inode else { return }
        // A file that stays is replaced by the next start, so a failure needs no word.
        unlink(path)
    }

    /// Removes the file of a server that has ended without doing so.
    ///
    /// Two servers that start at the same time could each take the other's new file for a stale one; nothing keeps two
    /// servers from one path.
    static func freeAddress(of path: String, _ place: ListeningPlace) throws(ServerError) -> SocketAddress {
        guard let address = SocketAddress(path: path) else {
            throw place.fault("expected a path of 1 to 107 bytes")
        }
        var status = stat()
        guard lstat(path, &status) == 0 else { return address }
        guard isSocket(status) else { throw place.fault("a file that is not a socket is there") }
        let trial = SocketAddress.socket(of: AF_UNIX)
        guard trial >= 0 else { throw place.fault(errno) }
        defer { Glibc.close(trial) }
        // Only a socket that no process listens on refuses; a full backlog, for example, is that of a live server.
        let isRefused = address.with { connect(trial, $0, $1) } != 0 && errno == ECONNREFUSED
        guard isRefused else { throw place.fault(EADDRINUSE) }
        guard unlink(path) == 0 || errno == ENOENT else { throw place.fault(errno) }
        return address
    }

    private static func isSocket(_ status: stat) -> Bool { status.st_mode & S_IFMT == S_IFSOCK }
}
