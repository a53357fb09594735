import Glibc

enum DescriptorLimit {
    /// The descriptors for everything but connections: the journal, logs, standard streams, epoll, and a margin.
    private static let reserve = 128

    static var connectionsAllowed: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
        return Int(clamping: limit.rlim_max) - reserve
    }

    /// A process that reaches the limit makes libmicrohttpd spin (Libmicrohttpd page, 16).
    static func makeRoom(connections: Int) throws(ServerError) {
        let needed = rlim_t(connections + reserve)
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw .unavailable(reason: "getrlimit: \(ServerError.words(for: errno))")
        }
        guard limit.rlim_cur < needed else { return }
        let allowed = Int(limit.rlim_max)
        limit.rlim_cur = needed
        // Only a privileged process may exceed the hard limit; setrlimit fails for any other.
        limit.rlim_max = max(limit.rlim_max, needed)
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw .descriptorLimit(needed: Int(needed), allowed: allowed)
        }
    }
}
