import CMicroHTTPD
import Glibc

/// Only the loop thread uses it.
struct Poller: ~Copyable {
    private let descriptor: Int32
    private let buffer: UnsafeMutableBufferPointer<epoll_event>
    /// Tags descriptors whose events only start an iteration.
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

    /// Level-triggered for libmicrohttpd's descriptor; edge-triggered, each write to the wake-up descriptor is an
    /// event, and the loop need not read it.
    func watch(_ other: Int32, isEdgeTriggered: Bool) throws(ServerError) {
        try add(other, isEdgeTriggered ? EPOLLIN.rawValue | EPOLLET.rawValue : EPOLLIN.rawValue, Self.iteration)
    }

    /// Level-triggered: `wait` reports it as long as clients are in its backlog.
    func watchListener(_ socket: Int32) throws(ServerError) { try add(socket, EPOLLIN.rawValue, Self.listener) }

    private func add(_ other: Int32, _ events: UInt32, _ tag: UInt64) throws(ServerError) {
        guard control(EPOLL_CTL_ADD, other, events, tag) else {
            throw .unavailable(reason: "epoll_ctl: \(ServerError.words(for: errno))")
        }
    }

    /// Edge-triggered: `wait` reports the state at registration, and then each change once; false without memory.
    func watch(_ socket: Int32, number: UInt64) -> Bool {
        control(EPOLL_CTL_ADD, socket, EPOLLIN.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue, number)
    }

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

    /// Waits without limit if negative, and takes up to 512 events, so that the loop serves others where thousands of
    /// clients leave together; a wait that a signal interrupts reports none.
    func wait(milliseconds: Int32, newClients: () -> Void, event: (UInt64, UInt32) -> Void) {
        let count = Int(epoll_wait(descriptor, buffer.baseAddress, Int32(buffer.count), milliseconds))
        for index in 0..<max(0, count) {
            let (bits, tag) = (buffer[index].events, buffer[index].data.u64)
            switch tag {
            case Self.iteration: break
            case Self.listener: newClients()
            default: event(tag, bits)
            }
        }
    }

    private func control(_ operation: Int32, _ socket: Int32, _ events: UInt32, _ tag: UInt64) -> Bool {
        var event = epoll_event(events: events, data: epoll_data_t(u64: tag))
        return epoll_ctl(descriptor, operation, socket, &event) == 0
    }
}
