internal import Benchmarking
internal import CEpoll
internal import Glibc

/// Thousands of connections driven by one thread: parked together, woken together, each answer with its time.
///
/// wrk cannot do this: it sends the next request when it has an answer, and knows no time at which all began to wait.
final class Fleet {
    private let poller: Int32
    private let sockets: [Int32]
    /// What has come on each connection and was not yet whole.
    private var pieces: [[UInt8]]
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)

    /// An answer or event, and when it was there.
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
            // Servers limit what one address may have; and an address has about 28,000 ports.
            guard let socket = Loopback.connect(port, from: UInt8(2 + index / 9000)) else {
                throw Failure("connection \(index) of \(count) failed: \(String(cString: strerror(errno)))")
            }
            sockets.append(socket)
            var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: UInt64(index)))
            _ = fcntl(socket, F_SETFL, O_NONBLOCK)
            guard epoll_ctl(poller, EPOLL_CTL_ADD, socket, &event) == 0 else { throw Failure("epoll_ctl failed") }
        }
        self.sockets = sockets
        pieces = Array(repeating: [], count: count)
    }

    deinit {
        // Reset rather than closed, so that ten thousand ports are free again at once.
        var linger = linger(l_onoff: 1, l_linger: 0)
        for socket in sockets {
            setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
            close(socket)
        }
        close(poller)
    }

    /// Lets this process and those that it starts have as many files as the system allows.
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

    /// Waits until so many have come, at most one on each connection and for so many seconds, and returns those that
    /// have, in the order of their coming.
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
                try read(index)
                guard !hasArrived[index], let end = awaited.end(in: pieces[index]) else { continue }
                hasArrived[index] = true
                pieces[index].removeFirst(end)
                arrivals.append(Arrival(index: index, instant: .now))
            }
        }
        return arrivals
    }

    /// Throws away what has come and what comes within this time.
    func drain(seconds: Double) throws {
        _ = try receive(.event, count: .max, seconds: seconds)
        for index in pieces.indices { pieces[index] = [] }
    }

    private func read(_ index: Int) throws {
        let count = recv(sockets[index], &buffer, buffer.count, 0)
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        guard count > 0 else { throw Failure("the server has closed connection \(index) of \(sockets.count)") }
        pieces[index] += buffer[..<count]
    }
}
