import CMicroHTTPD
import Glibc
import HTTPMessages

/// The daemon of libmicrohttpd, whose callbacks call the loop.
///
/// The initializer runs before the loop thread starts; all other methods and the callbacks run on the loop thread.
struct Daemon {
    let handle: OpaquePointer
    let epollDescriptor: Int32
    /// Each connection that does not wait occupies it, and libmicrohttpd clears all of it for each request.
    private static let memoryBytes = 16 << 10

    /// Starts a daemon, which keeps unowned pointers to the loop and the log: they have to outlive it.
    init(_ loop: EventLoop, _ log: UnsafeMutablePointer<MicroHTTPDLog>) throws(ServerError) {
        // The daemon has no internal thread, which deadlocks when exactly 128, 256, ... connections are ready
        // (Libmicrohttpd page, 11 and 12). In this version, MHD_USE_TURBO closes a socket without a shutdown, which
        // lets the loop keep a duplicate of the socket, and reads a new connection at once instead of after a wait in
        // epoll.
        var flags =
            MHD_USE_EPOLL.rawValue | MHD_ALLOW_SUSPEND_RESUME.rawValue | MHD_USE_ERROR_LOG.rawValue
            | MHD_USE_TURBO.rawValue | MHD_USE_NO_LISTEN_SOCKET.rawValue
        // MHD_USE_NO_THREAD_SAFETY, which the header of 0.9.75 does not have: without it, versions from 1.0 on begin a
        // connection that is added only in the next run.
        if loop.isStrict { flags |= 1 << 19 }
        var callbacks = MicroHTTPDCallbacks(
            context: Unmanaged.passUnretained(loop).toOpaque(), handle: handleRequest, request_line: requestLine,
            completed: requestCompleted, connection: connectionChanged)
        let options = Self.options(loop.context.configuration)
        guard let handle = microhttpd_start(flags, &callbacks, log, options) else {
            throw .unavailable(reason: "libmicrohttpd did not start")
        }
        epollDescriptor = microhttpd_epoll_descriptor(handle)
        self.handle = handle
    }

    private static func options(_ configuration: ServerConfiguration) -> [MHD_OptionItem] {
        let connections = configuration.connectionsMax + configuration.overCapacityMax
        return [
            MHD_OptionItem(option: .CONNECTION_LIMIT, value: connections, ptr_value: nil),
            MHD_OptionItem(option: .CONNECTION_MEMORY_LIMIT, value: memoryBytes, ptr_value: nil),
            // All connections have the same timeout: each iteration walks those with another (Libmicrohttpd page, 14).
            MHD_OptionItem(
                option: .CONNECTION_TIMEOUT, value: max(1, Int(configuration.idleTimeout.components.seconds)),
                ptr_value: nil),
            // With 1, versions below 1.0 answer a request without Host twice, and close silently on a space in a target.
            MHD_OptionItem(
                option: .STRICT_FOR_CLIENT, value: LibraryVersion.current.isStrict ? 1 : 0, ptr_value: nil),
            // `HTTPServer.start` ignores SIGPIPE.
            MHD_OptionItem(option: .SIGPIPE_HANDLED_BY_APP, value: 1, ptr_value: nil),
            MHD_OptionItem(option: .END, value: 0, ptr_value: nil),
        ]
    }

    /// Never blocks.
    func run() {
        let result = MHD_run(handle)
        precondition(result == .YES, "MHD_run fails only for a daemon with a thread of its own or after its stop")
    }

    /// Nil if `run` need not be called without an event.
    var timeoutMilliseconds: UInt64? {
        var milliseconds: UInt64 = 0
        return MHD_get_timeout(handle, &milliseconds) == .YES ? milliseconds : nil
    }

    /// Closes the socket where libmicrohttpd refuses it.
    @discardableResult
    func add(_ socket: Int32) -> Bool { microhttpd_add(handle, socket) }

    /// None may be suspended: libmicrohttpd would abort the process (Libmicrohttpd page, 9).
    func stop() {
        MHD_stop_daemon(handle)
    }
}

/// Counts no references: the loop outlives the daemon, which has the connection until it notifies of its end.
@inline(__always)
private func with<Result>(
    _ context: UnsafeMutableRawPointer, _ connection: UnsafeMutableRawPointer,
    _ body: (EventLoop, ClientConnection) -> Result
) -> Result {
    let loop = Unmanaged<EventLoop>.fromOpaque(context)
    let client = Unmanaged<ClientConnection>.fromOpaque(connection)
    return loop._withUnsafeGuaranteedRef { loop in client._withUnsafeGuaranteedRef { body(loop, $0) } }
}

/// MHD_OPTION_NOTIFY_CONNECTION, at the start and behind the end of a connection.
private func connectionChanged(
    _ context: UnsafeMutableRawPointer?, _ handle: OpaquePointer?,
    _ storage: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ change: MHD_ConnectionNotificationCode
) {
    guard let context, let handle, let storage else { return }
    let loop = Unmanaged<EventLoop>.fromOpaque(context).takeUnretainedValue()
    if change == .CONNECTION_NOTIFY_STARTED {
        // Released below, at the end of the connection.
        storage.pointee = Unmanaged.passRetained(loop.connectionStarted(handle)).toOpaque()
    } else if let pointer = storage.pointee {
        loop.connectionClosed(Unmanaged<ClientConnection>.fromOpaque(pointer).takeRetainedValue())
        storage.pointee = nil
    }
}

/// MHD_OPTION_URI_LOG_CALLBACK, before the target is decoded in place; the result is the request's context in the next
/// two callbacks: the connection, which outlives the request.
private func requestLine(
    _ context: UnsafeMutableRawPointer?, _ uri: UnsafePointer<CChar>?, _ handle: OpaquePointer?
) -> UnsafeMutableRawPointer? {
    guard let context, let handle, let pointer = microhttpd_socket_context(handle) else { return nil }
    with(context, pointer) { $0.lineReceived(uri, on: $1) }
    return pointer
}

/// MHD_AccessHandlerCallback; the server does not use the decoded URL (Libmicrohttpd page, 19).
private func handleRequest(
    _ context: UnsafeMutableRawPointer?, _ handle: OpaquePointer?, _: UnsafePointer<CChar>?,
    _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ upload: UnsafePointer<CChar>?,
    _ count: UnsafeMutablePointer<Int>?, _ request: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
    guard let context, let client = request?.pointee, let method, let version, let count else { return .NO }
    let piece = UnsafeRawBufferPointer(start: upload, count: upload == nil ? 0 : count.pointee)
    let goesOn = with(context, client) { $0.advance($1, method: method, version: version, piece, left: &count.pointee) }
    return goesOn ? .YES : .NO
}

/// MHD_OPTION_NOTIFY_COMPLETED, once for each request whose line was received.
private func requestCompleted(
    _ context: UnsafeMutableRawPointer?, _ handle: OpaquePointer?,
    _ request: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _: MHD_RequestTerminationCode
) {
    guard let context, let pointer = request?.pointee else { return }
    with(context, pointer) { $0.requestCompleted($1) }
}

/// The version of libmicrohttpd that the program runs with, which may be another than the one it was built with.
package struct LibraryVersion: Sendable {
    package let text: String
    private let numbers: [Int]

    /// The first and the last version with which the tests of this package run.
    package static let tested = (first: LibraryVersion("0.9.75"), last: LibraryVersion("1.0.1"))

    package static var current: LibraryVersion { LibraryVersion(String(cString: MHD_get_version())) }

    init(_ text: String) {
        self.text = text
        numbers = text.split(separator: ".").prefix(3).map { Int($0.prefix { $0.isNumber }) ?? 0 }
    }

    package var isTested: Bool {
        !numbers.lexicographicallyPrecedes(Self.tested.first.numbers)
            && !Self.tested.last.numbers.lexicographicallyPrecedes(numbers)
    }

    /// Whether libmicrohttpd reads requests strictly by RFC 9112, and with them the framing of chunked bodies.
    package var isStrict: Bool { !numbers.lexicographicallyPrecedes([1, 0, 0]) }
}
