internal import Benchmarking
internal import CEpoll
internal import Glibc

/// Thousands of connections on one thread, which notes the time of each answer.
///
/// wrk cannot measure long-polls: it sends the next request after each answer, and does not know when all clients wait.
final class Fleet {
    private let poller: Int32
    private let sockets: [Int32]
    /// The bytes of the incomplete answer on each connection.
    private var partials: [[UInt8]]
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)

    /// An answer or event, with the time of its arrival.
    struct Arrival {
        var index: Int
        var instant: ContinuousClock.Instant
    }

    var count: Int { sockets.count }

    init(_ count: Int, _ port: UInt16) throws {
        poller = epoll_create1(Int32(EPOLL_CLOEXEC))
        var sockets: [Int32] = []
        defer { if sockets.count < count { for socket in sockets { close(socket) } } }
        for index in 0..<count {
            // Servers limit the waiters of one address, and an address has about 28,000 ports.
            guard let socket = Loopback.connect(port, from: UInt8(2 + index / 9000)) else {
                throw Failure("connection \(index) of \(count) failed: \(String(cString: strerror(errno)))")
            }
            sockets.append(socket)
            var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: UInt64(index)))
            _ = fcntl(socket, F_SETFL, O_NONBLOCK)
            guard epoll_ctl(poller, EPOLL_CTL_ADD, socket, &event) == 0 else { throw Failure("epoll_ctl failed") }
        }
        self.sockets = sockets
        partials = Array(repeating: [], count: count)
    }

    deinit {
        // A reset, unlike a close, frees ten thousand ports at once.
        var linger = linger(l_onoff: 1, l_linger: 0)
        for socket in sockets {
            setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
            close(socket)
        }
        close(poller)
    }

    /// Raises the limit of open files, for this process and its children, to the most that the system allows.
    static func raiseDescriptorLimit() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        return Int(limit.rlim_cur)
    }

    /// Sends a request on each connection.
    func send(_ request: (Int) -> [UInt8]) throws {
        for (index, socket) in sockets.enumerated() {
            let bytes = request(index)
            let count = Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
            guard count == bytes.count else { throw Failure("connection \(index) did not take a request") }
        }
    }

    /// Waits for a number of answers or events, at most one on each connection, and returns them in the order of arrival.
    ///
    /// - Parameter seconds: the longest wait; after it fewer are returned.
    func receive(_ awaited: Awaited, count: Int, seconds: Double = 60) throws -> [Arrival] {
        var arrivals: [Arrival] = []
        arrivals.reserveCapacity(min(count, sockets.count))
        var hasArrived = [Bool](repeating: false, count: sockets.count)
        var events = [epoll_event](repeating: epoll_event(), count: 512)
        let end = ContinuousClock.now + .seconds(seconds)
        while arrivals.count < count {
            let left = ContinuousClock.now.duration(to: end) / .milliseconds(1)
            guard left > 0 else { break }
            let ready = epoll_wait(poller, &events, Int32(events.count), Int32(left.rounded(.up)))
            for event in events.prefix(max(0, Int(ready))) {
                let index = Int(event.data.u64)
                guard try read(index, hasArrived[index] ? nil : awaited) else { continue }
                hasArrived[index] = true
                arrivals.append(Arrival(index: index, instant: .now))
            }
        }
        return arrivals
    }

    /// Discards the received bytes, and those that come within a time.
    func drain(seconds: Double) throws {
        _ = try receive(.event, count: .max, seconds: seconds)
        for index in partials.indices { partials[index] = [] }
    }

    /// Receives on a connection, and keeps what does not belong to the awaited unit.
    ///
    /// - Returns: whether the unit is whole; false without one.
    private func read(_ index: Int, _ awaited: Awaited?) throws -> Bool {
        let count = recv(sockets[index], &buffer, buffer.count, 0)
        if count < 0, errno == EAGAIN || errno == EINTR { return false }
        guard count > 0 else { throw Failure("the server has closed connection \(index) of \(sockets.count)") }
        // Nearly every answer is all of what has come: it is not copied.
        if partials[index].isEmpty, let awaited,
            buffer.withUnsafeBytes({ awaited.end(in: UnsafeRawBufferPointer(rebasing: $0[..<count])) }) == count
        {
            return true
        }
        partials[index] += buffer[..<count]
        guard let end = awaited.flatMap({ partials[index].withUnsafeBytes($0.end) }) else { return false }
        partials[index].removeFirst(end)
        return true
    }
}
