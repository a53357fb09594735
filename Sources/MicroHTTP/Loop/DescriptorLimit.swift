import Glibc

enum DescriptorLimit {
    /// The descriptors for everything but connections: the journal, logs, standard streams, epoll, and a margin.
    private static let reserve = 128

    /// Nil for the reason in `errno`.
    private static var limit: rlimit? {
        var limit = rlimit()
        return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? limit : nil
    }

    static var connectionsAllowed: Int { limit.map { Int(clamping: $0.rlim_max) - reserve } ?? 0 }

    /// A process that reaches the limit makes libmicrohttpd spin (Libmicrohttpd page, 16).
    static func makeRoom(connections: Int) throws(ServerError) {
        let needed = rlim_t(connections + reserve)
        guard var limit else {
            throw .unavailable(reason: "getrlimit: \(ServerError.words(for: errno))")
        }
        guard limit.rlim_cur < needed else { return }
        let allowed = Int(limit.rlim_max)
        limit.rlim_cur = needed
        // Only a privileged process may exceed the hard limit; setrlimit fails for any other.
        limit.rlim_max = max(limit.rlim_max, needed)
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw ServerError(
                isOfAddress: false,
                description: "the connections need \(needed) open files and this process may have \(allowed); "
                    + "raise the hard limit (ulimit -Hn) or lower the number of connections")
        }
    }
}
