internal import Glibc
internal import Logging
internal import Synchronization
internal import Threads

/// The signals that a program receives from its first line on: the kernel drops one to process 1 that has no handler.
enum ProcessSignals {
    private static let numbers = [SIGTERM, SIGINT, SIGHUP]
    /// A bit for each signal that has arrived and that nobody has handled yet.
    private static let arrived = Atomic<UInt64>(0)
    // unchecked: sem_post(3) and sem_wait(3) may be called by any thread, and by a handler of a signal.
    private nonisolated(unsafe) static let count: UnsafeMutablePointer<sem_t> = {
        let count = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
        sem_init(count, 0, 0)
        return count
    }()
    private static let handler = Mutex<(@Sendable (Int32) -> Void)?>(nil)
    private static let hasThread = Atomic(false)

    static func receive() {
        // A handler may not initialize them.
        _ = (arrived.load(ordering: .relaxed), count)
        for number in numbers {
            signal(number) { number in
                ProcessSignals.arrived.bitwiseOr(1 << UInt64(number), ordering: .relaxed)
                sem_post(ProcessSignals.count)
            }
        }
    }

    static func restore() {
        for number in numbers { signal(number, SIG_DFL) }
        for number in take() { raise(number) }
    }

    /// Ends the process by SIGTERM and SIGINT until ``handle(_:)`` is called: every acknowledged commit is in the journal.
    static func endStart() throws(SystemThread.Unavailable) {
        guard !hasThread.exchange(true, ordering: .relaxed) else { return }
        try SystemThread {
            while true {
                sem_wait(count)
                if let handle = handler.withLock(\.self) {
                    for number in take() { handle(number) }
                } else if arrived.load(ordering: .relaxed) & (1 << UInt64(SIGTERM) | 1 << UInt64(SIGINT)) != 0 {
                    Logger(label: "signals", factory: StateLogHandler.init).info("stopped before the server was ready")
                    StateLogHandler.flush()
                    _exit(0)
                }
            }
        }.detach()
    }

    /// Calls for each signal that has arrived or arrives, on a thread of its own, in place of the call of the time before.
    static func handle(_ handle: @escaping @Sendable (Int32) -> Void) throws(SystemThread.Unavailable) {
        try endStart()
        handler.withLock { $0 = handle }
        sem_post(count)
    }

    private static func take() -> [Int32] {
        let bits = arrived.exchange(0, ordering: .relaxed)
        return numbers.filter { bits & 1 << UInt64($0) != 0 }
    }
}

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
