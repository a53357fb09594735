// microhttpd.h includes the socket headers, and the compiler attributes their declarations to its module.
import CMicroHTTPD
import Glibc

struct SocketAddress {
    private var storage = sockaddr_storage()
    private let size: socklen_t

    private init(copying address: UnsafePointer<sockaddr>, size: socklen_t) {
        self.size = size
        withUnsafeMutableBytes(of: &storage) {
            $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: Int(size)))
        }
    }

    /// Nil for a path that no socket can have.
    init?(path: String) {
        let bytes = Array(path.utf8)
        var address = sockaddr_un()
        let capacity = MemoryLayout.size(ofValue: address.sun_path)
        guard !bytes.isEmpty, bytes.count < capacity, !bytes.contains(0) else { return nil }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        size = socklen_t(MemoryLayout<sockaddr_un>.size)
        withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: address, as: sockaddr_un.self) }
    }

    /// IPv4 comes first: clients differ in which address of a name they try first, and all try this one at last.
    static func all(of host: String, port: UInt16) throws(ServerError) -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let result = getaddrinfo(host, String(port), &hints, &list)
        guard result == 0, let list else {
            throw .hostUnknown(host: host, reason: String(cString: gai_strerror(result)))
        }
        defer { freeaddrinfo(list) }
        let found = sequence(first: list, next: { $0.pointee.ai_next }).compactMap { info in
            info.pointee.ai_addr.map { SocketAddress(copying: $0, size: info.pointee.ai_addrlen) }
        }
        return found.filter { $0.family == AF_INET } + found.filter { $0.family == AF_INET6 }
    }

    /// -1 with the reason in `errno`.
    static func socket(of family: Int32) -> Int32 {
        Glibc.socket(family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }

    var family: Int32 { Int32(storage.ss_family) }

    func with<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        withUnsafePointer(to: storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, size) }
        }
    }

    /// Nil for a socket of another kind.
    static func bound(to descriptor: Int32) -> BoundAddress? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard getsockname(descriptor, address, &size) == 0 else { return nil }
                guard Int32(address.pointee.sa_family) == AF_UNIX else { return numericAddress(address) }
                let path = UnsafeRawBufferPointer(start: address, count: MemoryLayout<sockaddr_storage>.size)
                    .dropFirst(MemoryLayout<sa_family_t>.size).prefix { $0 != 0 }
                return BoundAddress(path: String(decoding: path, as: UTF8.self))
            }
        }
    }
}

/// The address of an IPv4 client of a dual-stack socket is in the form of IPv4.
func numericAddress(_ raw: UnsafeRawPointer) -> BoundAddress? {
    let address = raw.assumingMemoryBound(to: sockaddr.self)
    guard [AF_INET, AF_INET6].contains(Int32(address.pointee.sa_family)) else { return nil }
    var text = [CChar](repeating: 0, count: 64)
    let size = socklen_t(MemoryLayout<sockaddr_in6>.size)
    guard getnameinfo(address, size, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0 else { return nil }
    // The name of the interface follows an address of a link.
    let bytes = text.prefix { $0 != 0 && $0 != CChar(UInt8(ascii: "%")) }.map(UInt8.init)
    let host = String(decoding: bytes, as: UTF8.self)
    let mapped = "::ffff:"
    let isMapped = host.hasPrefix(mapped) && host.contains(".")
    // Both kinds have it behind the family.
    let port = raw.loadUnaligned(fromByteOffset: 2, as: in_port_t.self)
    return BoundAddress(host: isMapped ? String(host.dropFirst(mapped.count)) : host, port: in_port_t(bigEndian: port))
}
