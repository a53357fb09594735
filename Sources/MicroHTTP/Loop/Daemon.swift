import CMicroHTTPD
import Glibc
import HTTPMessages

/// libmicrohttpd's daemon: started here, and from here its callbacks go to the loop.
///
/// Everything but the start, which comes before the thread, runs on the loop thread.
struct Daemon {
    let handle: OpaquePointer
    let epollDescriptor: Int32

    /// Starts a daemon that serves nothing until `run` is called; the loop must outlive it.
    init(
        configuration: ServerConfiguration, loop: EventLoop, log: UnsafePointer<MicroHTTPDLog>
    ) throws(ServerError) {
        // No internal thread: it deadlocks when exactly 128, 256, ... connections are ready (MICROHTTPD.md 11, 12).
        // Turbo, at this version: no shutdown before a close, without which no socket could be taken away, and a new
        // connection is read at once instead of after a turn through epoll.
        let flags =
            MHD_USE_EPOLL.rawValue | MHD_ALLOW_SUSPEND_RESUME.rawValue | MHD_USE_ERROR_LOG.rawValue
            | MHD_USE_TURBO.rawValue | MHD_USE_NO_LISTEN_SOCKET.rawValue
        var callbacks = MicroHTTPDCallbacks(
            context: Unmanaged.passUnretained(loop).toOpaque(), handle: handleRequest, request_line: requestLine,
            completed: requestCompleted, connection: connectionChanged)
        let options = Self.options(configuration)
        guard let handle = microhttpd_start(flags, &callbacks, log, options) else {
            throw .unavailable(reason: "libmicrohttpd did not start")
        }
        epollDescriptor = microhttpd_epoll_descriptor(handle)
        self.handle = handle
    }

    private static func options(_ configuration: ServerConfiguration) -> [MHD_OptionItem] {
        let connections = configuration.connectionsMax + configuration.surplusConnectionsMax
        let idleSeconds = max(1, Int(configuration.idleTimeout.components.seconds))
        return [
            MHD_OptionItem(option: .CONNECTION_LIMIT, value: connections, ptr_value: nil),
            MHD_OptionItem(
                option: .CONNECTION_MEMORY_LIMIT, value: configuration.connectionMemoryBytes, ptr_value: nil),
            // One timeout for all: connections with their own are walked in every pass (MICROHTTPD.md 14).
            MHD_OptionItem(option: .CONNECTION_TIMEOUT, value: idleSeconds, ptr_value: nil),
            // Not 1: the two checks that 1 adds, a Host and no space in the target, are made by RequestScreening and
            // RawTarget, with answers of ours. To a missing Host, 0.9.75 would send the head of its answer twice.
            MHD_OptionItem(option: .STRICT_FOR_CLIENT, value: 0, ptr_value: nil),
            // `HTTPServer.start` ignores SIGPIPE.
            MHD_OptionItem(option: .SIGPIPE_HANDLED_BY_APP, value: 1, ptr_value: nil),
            MHD_OptionItem(option: .END, value: 0, ptr_value: nil),
        ]
    }

    /// One pass over everything that is ready; never blocks.
    func run() {
        let result = MHD_run(handle)
        precondition(result == .YES, "MHD_run fails only for a daemon with a thread of its own or after its stop")
    }

    /// The milliseconds until `run` must be called even if nothing happens; nil if nothing is due.
    var timeoutMilliseconds: UInt64? {
        var milliseconds: UInt64 = 0
        return MHD_get_timeout(handle, &milliseconds) == .YES ? milliseconds : nil
    }

    /// Takes in a new client from a listening socket, see `microhttpd_accept`.
    func accept(from listener: Int32) -> Int32 { microhttpd_accept(handle, listener) }

    /// Takes over a connected socket; false, and the socket is closed, if it cannot.
    func add(_ socket: Int32) -> Bool { microhttpd_add(handle, socket) }

    /// Closes all connections; aborts the process if one is suspended (MICROHTTPD.md 9), so none may be.
    func stop() {
        MHD_stop_daemon(handle)
    }
}

private func loop(_ context: UnsafeMutableRawPointer?) -> EventLoop {
    guard let context else { preconditionFailure("libmicrohttpd gives back the pointer it was started with") }
    return Unmanaged<EventLoop>.fromOpaque(context).takeUnretainedValue()
}

/// MHD_OPTION_NOTIFY_CONNECTION: a connection's beginning and end.
private func connectionChanged(
    _ context: UnsafeMutableRawPointer?, _ handle: OpaquePointer?,
    _ storage: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ change: MHD_ConnectionNotificationCode
) {
    guard let handle, let storage else { return }
    if change == .CONNECTION_NOTIFY_STARTED {
        // Released below, at the end of the connection.
        storage.pointee = Unmanaged.passRetained(loop(context).connectionStarted(handle)).toOpaque()
    } else if let pointer = storage.pointee {
        // The release for the retain above.
        loop(context).connectionClosed(Unmanaged<ClientConnection>.fromOpaque(pointer).takeRetainedValue())
        storage.pointee = nil
    }
}

/// MHD_OPTION_URI_LOG_CALLBACK: called once for each request, before its target is decoded in place.
///
/// What it returns is the request's context in the two callbacks that follow: the connection, which outlives it.
private func requestLine(
    _ context: UnsafeMutableRawPointer?, _ uri: UnsafePointer<CChar>?, _ handle: OpaquePointer?
) -> UnsafeMutableRawPointer? {
    guard let handle, let pointer = microhttpd_socket_context(handle) else { return nil }
    loop(context).lineReceived(uri, on: Unmanaged<ClientConnection>.fromOpaque(pointer).takeUnretainedValue())
    return pointer
}

/// MHD_AccessHandlerCallback; the decoded URL is not used (MICROHTTPD.md 19).
private func handleRequest(
    _ context: UnsafeMutableRawPointer?, _ handle: OpaquePointer?, _ decodedURL: UnsafePointer<CChar>?,
    _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ upload: UnsafePointer<CChar>?,
    _ uploadCount: UnsafeMutablePointer<Int>?, _ request: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
    guard let pointer = request?.pointee, let method, let version, let uploadCount else { return .NO }
    let piece = UnsafeRawBufferPointer(start: upload, count: upload == nil ? 0 : uploadCount.pointee)
    // All of each piece is taken (MICROHTTPD.md 21).
    uploadCount.pointee = 0
    let connection = Unmanaged<ClientConnection>.fromOpaque(pointer).takeUnretainedValue()
    return loop(context).advance(connection, method: method, version: version, piece: piece) ? .YES : .NO
}

/// MHD_OPTION_NOTIFY_COMPLETED: called once for each request whose line was received, however it ended.
private func requestCompleted(
    _ context: UnsafeMutableRawPointer?, _ handle: OpaquePointer?,
    _ request: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ code: MHD_RequestTerminationCode
) {
    guard let pointer = request?.pointee else { return }
    loop(context).requestCompleted(Unmanaged<ClientConnection>.fromOpaque(pointer).takeUnretainedValue())
}
