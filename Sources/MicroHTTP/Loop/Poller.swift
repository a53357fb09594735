import CMicroHTTPD
import Glibc

/// The epoll instance of a loop, which watches libmicrohttpd's epoll descriptor, the wake-up descriptor, the listening
/// socket and the parked connections.
///
/// Only the loop thread uses it.
struct Poller: ~Copyable {
    struct Event {
        var number: UInt64
        var isReadable: Bool
        var isWritable: Bool
        /// The client has finished sending.
        var isHungUp: Bool
        var isBroken: Bool
    }

    private let descriptor: Int32
    private let buffer: UnsafeMutableBufferPointer<epoll_event>
    /// The tag of the descriptors whose events only start an iteration.
    private static let iteration = UInt64.max
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

    /// Watches libmicrohttpd's epoll descriptor, level-triggered, or the wake-up descriptor, edge-triggered: each write is an
    /// event then, and the loop need not read the descriptor.
    func watch(_ other: Int32, isEdgeTriggered: Bool) throws(ServerError) {
        try add(other, isEdgeTriggered ? EPOLLIN.rawValue | EPOLLET.rawValue : EPOLLIN.rawValue, Self.iteration)
    }

    /// Watches the listening socket, level-triggered: `wait` reports it as long as clients are in its backlog.
    func watchListener(_ socket: Int32) throws(ServerError) { try add(socket, EPOLLIN.rawValue, Self.listener) }

    private func add(_ other: Int32, _ events: UInt32, _ tag: UInt64) throws(ServerError) {
        guard control(EPOLL_CTL_ADD, other, events, tag) else {
            throw .unavailable(reason: "epoll_ctl: \(ServerError.words(for: errno))")
        }
    }

    /// Watches the socket of a parked connection; returns false if the system has no memory for it.
    ///
    /// Edge-triggered: `wait` reports the state at registration once, and then each change once.
    func watch(_ socket: Int32, number: UInt64) -> Bool {
        control(EPOLL_CTL_ADD, socket, EPOLLIN.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue, number)
    }

    /// Watches a socket for room to send, too.
    ///
    /// The change of the registration makes the next `wait` report room that the socket already has.
    func watchRoom(_ socket: Int32, number: UInt64) {
        let events = EPOLLIN.rawValue | EPOLLOUT.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue
        let isChanged = control(EPOLL_CTL_MOD, socket, events, number)
        precondition(isChanged, "only a watched socket is watched for room")
    }

    func unwatch(_ socket: Int32) {
        let result = epoll_ctl(descriptor, EPOLL_CTL_DEL, socket, nil)
        precondition(result == 0, "a watched socket is closed only after it has been unwatched")
    }

    /// Waits for at most this many milliseconds, without limit if negative, and calls the closures with up to 512 events.
    ///
    /// Where more are due, the next call returns at once: thousands of clients may leave together, and the loop serves the
    /// others in between. A wait that a signal interrupts reports no events.
    func wait(milliseconds: Int32, newClients: () -> Void, event: (Event) -> Void) {
        let count = Int(epoll_wait(descriptor, buffer.baseAddress, Int32(buffer.count), milliseconds))
        for index in 0..<max(0, count) {
            let (bits, tag) = (buffer[index].events, buffer[index].data.u64)
            switch tag {
            case Self.iteration: break
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
    }

    private func control(_ operation: Int32, _ socket: Int32, _ events: UInt32, _ tag: UInt64) -> Bool {
        var event = epoll_event(events: events, data: epoll_data_t(u64: tag))
        return epoll_ctl(descriptor, operation, socket, &event) == 0
    }
}
