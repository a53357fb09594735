import Glibc

/// The process's limit of open files, which every connection counts against.
enum DescriptorLimit {
    /// Files that are neither connections nor the server's own: journal, logs, standard streams, a margin.
    private static let reserve = 128

    /// How many connections the hard limit has room for.
    static var connectionsAllowed: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
        return Int(clamping: limit.rlim_max) - reserve
    }

    /// Raises the soft limit so that this many connections fit, and throws if the hard limit forbids it.
    ///
    /// The limit is the whole process's. Running into it would make libmicrohttpd spin (MICROHTTPD.md 16).
    static func makeRoom(connections: Int) throws(ServerError) {
        let needed = rlim_t(connections + reserve)
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw .unavailable(reason: "getrlimit: \(ServerError.words(for: errno))")
        }
        guard limit.rlim_cur < needed else { return }
        let allowed = Int(limit.rlim_max)
        limit.rlim_cur = needed
        // Above the hard limit only a privileged process gets through; the system knows whether this is one.
        limit.rlim_max = max(limit.rlim_max, needed)
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            throw .descriptorLimit(needed: Int(needed), allowed: allowed)
        }
    }
}
