import CMicroHTTPD
import Glibc

/// The loop's own epoll: it waits for libmicrohttpd's descriptor, for the bell, for new clients, and for what happens on
/// parked connections.
struct Poller: ~Copyable {
    /// What has happened on a parked connection.
    struct Event {
        /// The number under which it is watched.
        var number: UInt64
        /// There is something to read.
        var isReadable: Bool
        /// There is room to write.
        var isWritable: Bool
        /// The other side has finished sending.
        var isHungUp: Bool
        /// The connection is broken.
        var isBroken: Bool
    }

    private let descriptor: Int32
    private let buffer: UnsafeMutableBufferPointer<epoll_event>
    /// The tag of whatever only asks for a pass: the pass finds out what there is to do.
    private static let pass = UInt64.max
    /// The tag of the listening socket.
    private static let listener = UInt64.max - 1

    init() throws(ServerError) {
        descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw .unavailable(reason: "epoll_create1: \(ServerError.words(for: errno))") }
        buffer = .allocate(capacity: 512)
    }

    deinit {
        buffer.deallocate()
        close(descriptor)
    }

    /// Wakes the loop whenever libmicrohttpd's own epoll descriptor is ready.
    func watchDaemon(_ daemonDescriptor: Int32) throws(ServerError) {
        guard control(EPOLL_CTL_ADD, daemonDescriptor, EPOLLIN.rawValue, Self.pass) else {
            throw .unavailable(reason: "epoll_ctl: \(ServerError.words(for: errno))")
        }
    }

    /// Wakes the loop at each write to the bell; edge-triggered, so that nobody has to read it.
    func watchBell(_ bell: Int32) throws(ServerError) {
        guard control(EPOLL_CTL_ADD, bell, EPOLLIN.rawValue | EPOLLET.rawValue, Self.pass) else {
            throw .unavailable(reason: "epoll_ctl: \(ServerError.words(for: errno))")
        }
    }

    /// Reports clients who want to be let in, as long as there are some.
    func watchListener(_ socket: Int32) throws(ServerError) {
        guard control(EPOLL_CTL_ADD, socket, EPOLLIN.rawValue, Self.listener) else {
            throw .unavailable(reason: "epoll_ctl: \(ServerError.words(for: errno))")
        }
    }

    /// Watches a parked connection; false if the system has no room for a watch.
    ///
    /// Edge-triggered: what has happened before is reported once, what happens later once each time.
    func watch(_ socket: Int32, number: UInt64) -> Bool {
        control(EPOLL_CTL_ADD, socket, EPOLLIN.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue, number)
    }

    /// Reports when a watched connection has room to write, too.
    func watchRoom(_ socket: Int32, number: UInt64) {
        let events = EPOLLIN.rawValue | EPOLLOUT.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue
        let isChanged = control(EPOLL_CTL_MOD, socket, events, number)
        precondition(isChanged, "only a watched socket is asked for room")
    }

    /// Ends a watch.
    func unwatch(_ socket: Int32) {
        let result = epoll_ctl(descriptor, EPOLL_CTL_DEL, socket, nil)
        precondition(result == 0, "a watched socket is closed only after it has been unwatched")
    }

    /// Waits for at most this many milliseconds, for ever if negative, and reports what has happened.
    func wait(milliseconds: Int32, newClients: () -> Void, event: (Event) -> Void) {
        var milliseconds = milliseconds
        while true {
            // Interrupted by a signal counts as nothing seen: the loop comes round again.
            let count = Int(epoll_wait(descriptor, buffer.baseAddress, Int32(buffer.count), milliseconds))
            for index in 0..<max(0, count) {
                let (bits, tag) = (buffer[index].events, buffer[index].data.u64)
                switch tag {
                case Self.pass: break
                case Self.listener: newClients()
                default:
                    event(
                        Event(
                            number: tag, isReadable: bits & EPOLLIN.rawValue != 0,
                            isWritable: bits & EPOLLOUT.rawValue != 0,
                            isHungUp: bits & (EPOLLRDHUP.rawValue | EPOLLHUP.rawValue) != 0,
                            isBroken: bits & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0))
                }
            }
            guard count == buffer.count else { return }
            milliseconds = 0
        }
    }

    private func control(_ operation: Int32, _ socket: Int32, _ events: UInt32, _ tag: UInt64) -> Bool {
        var event = epoll_event(events: events, data: epoll_data_t(u64: tag))
        return epoll_ctl(descriptor, operation, socket, &event) == 0
    }
}
