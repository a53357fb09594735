import CMicroHTTPD
import Glibc

/// The loop's own epoll: it waits for libmicrohttpd's descriptor, for the bell, and for clients that leave while parked.
struct Poller: ~Copyable {
    private let descriptor: Int32
    private let buffer: UnsafeMutableBufferPointer<epoll_event>
    /// The tag of whatever only asks for a pass: the pass finds out what there is to do.
    private static let pass = UInt64.max

    init() throws(ServerError) {
        descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw .unavailable(reason: "epoll_create1: \(ServerError.words(for: errno))") }
        buffer = .allocate(capacity: 256)
    }

    deinit {
        buffer.deallocate()
        close(descriptor)
    }

    /// Wakes the loop whenever libmicrohttpd's own epoll descriptor is ready.
    func watchDaemon(_ daemonDescriptor: Int32) throws(ServerError) {
        guard add(daemonDescriptor, EPOLLIN.rawValue, Self.pass) else {
            throw .unavailable(reason: "epoll_ctl: \(ServerError.words(for: errno))")
        }
    }

    /// Wakes the loop at each write to the bell; edge-triggered, so that nobody has to read it.
    func watchBell(_ bell: Int32) throws(ServerError) {
        guard add(bell, EPOLLIN.rawValue | EPOLLET.rawValue, Self.pass) else {
            throw .unavailable(reason: "epoll_ctl: \(ServerError.words(for: errno))")
        }
    }

    /// Wakes the loop when the client at the other end of this socket closes its side; false if the system refuses.
    func watchHangUp(of socket: Int32, exchange: UInt64) -> Bool {
        // Not EPOLLIN: a pipelined request must not wake the loop while the one before it is parked.
        add(socket, EPOLLRDHUP.rawValue, exchange)
    }

    /// Ends a watch; before the connection is resumed, when the socket is libmicrohttpd's again.
    func unwatchHangUp(of socket: Int32) {
        let result = epoll_ctl(descriptor, EPOLL_CTL_DEL, socket, nil)
        precondition(result == 0, "a watched socket is closed only after it has been unwatched")
    }

    /// Waits for at most this many milliseconds, for ever if negative, and reports the exchanges whose client has hung up.
    func wait(milliseconds: Int32, hangUp: (UInt64) -> Void) {
        // Interrupted by a signal counts as nothing seen: the loop comes round again.
        let count = epoll_wait(descriptor, buffer.baseAddress, Int32(buffer.count), milliseconds)
        for index in 0..<max(0, Int(count)) where buffer[index].data.u64 != Self.pass {
            hangUp(buffer[index].data.u64)
        }
    }

    private func add(_ socket: Int32, _ events: UInt32, _ tag: UInt64) -> Bool {
        var event = epoll_event(events: events, data: epoll_data_t(u64: tag))
        return epoll_ctl(descriptor, EPOLL_CTL_ADD, socket, &event) == 0
    }
}
