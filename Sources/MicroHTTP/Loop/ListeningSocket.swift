// microhttpd.h includes the socket headers, and the compiler attributes their declarations to its module.
import CMicroHTTPD
import Glibc

/// A socket that is bound and listens.
///
/// The server binds it instead of libmicrohttpd, which does not report why an address cannot be bound.
struct ListeningSocket {
    let descriptor: Int32
    let address: BoundAddress
    /// Whether the service manager has bound it, which then owns the file of a Unix socket, too.
    private(set) var isInherited = false

    /// Binds an address and listens on it, or takes the socket that the service manager has bound there.
    init(_ place: ListeningPlace, isShared: Bool) throws(ServerError) {
        if let descriptor = InheritedSockets().socket(on: place) {
            let path: String? = if case .socket(let path, _) = place { path } else { nil }
            if let address = path.map(BoundAddress.init(path:)) ?? Self.boundAddress(of: descriptor) {
                self.init(descriptor: descriptor, address: address)
                isInherited = true
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

    func another() throws(ServerError) -> ListeningSocket {
        guard isInherited || address.path != nil else {
            return try Self(host: address.host, port: address.port, isShared: true)
        }
        // A Unix socket has one file, and the service manager has bound one socket: the loops share its backlog.
        let descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else {
            let reason = ServerError.words(for: errno)
            throw address.path.map { .socketUnusable(path: $0, reason: reason) }
                ?? .cannotListen(host: address.host, port: address.port, reason: reason)
        }
        var copy = Self(descriptor: descriptor, address: address)
        copy.isInherited = isInherited
        return copy
    }

    private init(descriptor: Int32, address: BoundAddress) {
        self.descriptor = descriptor
        self.address = address
    }

    func close() { Glibc.close(descriptor) }

    private init(host: String, port: UInt16, isShared: Bool) throws(ServerError) {
        do {
            try self.init(candidatesOf: host, port: port, isShared: isShared)
        } catch .cannotListen where host == "::" {
            // Where IPv6 is off, as in many containers, the server listens on all IPv4 addresses (Libmicrohttpd page,
            // 27).
            try self.init(candidatesOf: "0.0.0.0", port: port, isShared: isShared)
        }
    }

    private init(candidatesOf host: String, port: UInt16, isShared: Bool) throws(ServerError) {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let result = getaddrinfo(host, String(port), &hints, &list)
        guard result == 0, let list else {
            throw .hostUnknown(host: host, reason: String(cString: gai_strerror(result)))
        }
        defer { freeaddrinfo(list) }
        let all = Array(sequence(first: list, next: { $0.pointee.ai_next }))
        // A name such as localhost has an address of each kind, and clients differ in which one they try first; all of
        // them try the IPv4 address at last.
        let preferred = all.filter { $0.pointee.ai_family == AF_INET } + all.filter { $0.pointee.ai_family == AF_INET6 }
        var failure = ServerError.hostUnknown(host: host, reason: "it has no IPv4 or IPv6 address")
        for candidate in preferred {
            do {
                try self.init(binding: candidate.pointee, host: host, port: port, isShared: isShared)
                return
            } catch {
                failure = error
            }
        }
        throw failure
    }

    private init(binding candidate: addrinfo, host: String, port: UInt16, isShared: Bool) throws(ServerError) {
        let flags = SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
        let descriptor = socket(candidate.ai_family, Int32(flags), 0)
        guard descriptor >= 0 else { throw Self.error(errno, host: host, port: port) }
        do {
            try Self.listen(on: descriptor, at: candidate, host: host, port: port, isShared: isShared)
            address = try Self.boundAddress(of: descriptor, host: host, port: port)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
        self.descriptor = descriptor
    }

    private static func listen(
        on descriptor: Int32, at candidate: addrinfo, host: String, port: UInt16, isShared: Bool
    ) throws(ServerError) {
        var yes: Int32 = 1
        var no: Int32 = 0
        let size = socklen_t(MemoryLayout<Int32>.size)
        // Without this option, a restarted server could not bind while connections of the old one are in TIME_WAIT.
        guard setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, size) == 0 else {
            throw Self.error(errno, host: host, port: port)
        }
        // Each loop has its own socket, and the kernel distributes the clients.
        if isShared {
            guard setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &yes, size) == 0 else {
                throw Self.error(errno, host: host, port: port)
            }
        }
        if candidate.ai_family == AF_INET6 {
            // `::` accepts IPv4 clients too, whatever the default of the system.
            guard setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &no, size) == 0 else {
                throw Self.error(errno, host: host, port: port)
            }
        }
        microhttpd_bound_unsent(descriptor)
        guard bind(descriptor, candidate.ai_addr, candidate.ai_addrlen) == 0, Glibc.listen(descriptor, 4096) == 0
        else { throw Self.error(errno, host: host, port: port) }
    }

    private static func boundAddress(
        of descriptor: Int32, host: String, port: UInt16
    ) throws(ServerError) -> BoundAddress {
        guard let address = boundAddress(of: descriptor) else { throw Self.error(errno, host: host, port: port) }
        return address
    }

    /// The addresses of a host in numbers; none where it is unknown.
    static func numericHosts(of host: String) -> [String] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_PASSIVE
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, &hints, &list) == 0, let list else { return [] }
        defer { freeaddrinfo(list) }
        return sequence(first: list, next: { $0.pointee.ai_next }).compactMap {
            $0.pointee.ai_addr.flatMap { numericAddress($0)?.host }
        }
    }

    /// The address of a TCP socket; nil for one of another kind.
    static func boundAddress(of descriptor: Int32) -> BoundAddress? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                guard getsockname(descriptor, pointer, &size) == 0 else { return nil }
                return numericAddress(pointer)
            }
        }
    }

    private static func error(_ code: Int32, host: String, port: UInt16) -> ServerError {
        switch code {
        case EADDRINUSE: .addressInUse(host: host, port: port)
        case EACCES: .permissionDenied(host: host, port: port)
        default: .cannotListen(host: host, port: port, reason: ServerError.words(for: code))
        }
    }
}

/// Returns a socket address in numbers; the address of an IPv4 client of a dual-stack socket is in the form of IPv4.
func numericAddress(_ address: UnsafePointer<sockaddr>) -> BoundAddress? {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    let capacity = socklen_t(text.count)
    let raw = UnsafeRawPointer(address)
    let port: in_port_t
    switch Int32(address.pointee.sa_family) {
    case AF_INET:
        var inet = raw.loadUnaligned(as: sockaddr_in.self)
        guard inet_ntop(AF_INET, &inet.sin_addr, &text, capacity) != nil else { return nil }
        port = inet.sin_port
    case AF_INET6:
        var inet = raw.loadUnaligned(as: sockaddr_in6.self)
        guard inet_ntop(AF_INET6, &inet.sin6_addr, &text, capacity) != nil else { return nil }
        port = inet.sin6_port
    default:
        return nil
    }
    let host = text.withUnsafeBufferPointer { String(decoding: $0.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self) }
    let mapped = "::ffff:"
    let isMapped = host.hasPrefix(mapped) && host.contains(".")
    return BoundAddress(host: isMapped ? String(host.dropFirst(mapped.count)) : host, port: in_port_t(bigEndian: port))
}
