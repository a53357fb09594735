internal import Glibc

/// The service manager, such as systemd, which gets datagrams at the socket in `NOTIFY_SOCKET`: sd_notify(3).
struct ServiceManager: Sendable {
    enum Notification: String {
        case ready = "READY=1"
        case stopping = "STOPPING=1"
    }

    private let path: [UInt8]

    init?(name: String? = getenv("NOTIFY_SOCKET").map({ String(cString: $0) })) {
        // A path is absolute, and other kinds of sockets are for virtual machines.
        guard let name, name.hasPrefix("/") || name.hasPrefix("@"), name.utf8.count > 1,
            name.utf8.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path)
        else { return nil }
        path = name.hasPrefix("@") ? [0] + name.utf8.dropFirst() : Array(name.utf8)
    }

    /// Sends a notification; waits at most a second for room in the service manager's queue.
    func send(_ notification: Notification) -> String? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return String(cString: strerror(errno)) }
        defer { close(descriptor) }
        var timeout = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        // The length of an abstract name counts: bytes behind it would belong to it.
        let size = socklen_t(MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2) + socklen_t(path.count)
        let bytes = Array(notification.rawValue.utf8)
        let sent = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, size)
            }
        }
        return sent == bytes.count ? nil : String(cString: strerror(errno))
    }
}
