import CMicroHTTPD
import CSocketCalls
import Glibc
import HTTPTypes

/// Checks that libmicrohttpd makes its socket calls through this program.
///
/// A linker, a loader or a preloaded library may bind them elsewhere. The server would then serve what it has not read. The
/// check runs a daemon over a pair of sockets on which nothing is sent: a request can come, and its answer go, through the
/// calls of this program only.
final class SocketCallsCheck {
    private var calls = SocketCalls()
    /// Whether the daemon has got a request, and whether it has completed the answer.
    private var (isAsked, isAnswered) = (false, false)
    private static let runsMax = 16

    /// - Parameter observe: registers the calls for this thread.
    /// - Throws: ``ServerError/unavailable(reason:)``.
    static func run(observe: (UnsafePointer<SocketCalls>?) -> Void = { socket_calls_observe($0) }) throws(ServerError) {
        var sockets: [Int32] = [0, 0]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &sockets) == 0 else {
            throw .unavailable(reason: "no pair of sockets can be made: \(ServerError.words(for: errno))")
        }
        defer { close(sockets[1]) }
        let check = SocketCallsCheck()
        let isInForce = check.serves(sockets[0], observe)
        var byte: UInt8 = 0
        guard isInForce, recvfrom(sockets[1], &byte, 1, Int32(MSG_DONTWAIT), nil, nil) < 1 else {
            throw .unavailable(
                reason:
                    "libmicrohttpd \(LibraryVersion.current.text) does not make its socket calls through this program, "
                    + "which defines recv, send and sendmsg: another library or the way of linking has taken their place"
            )
        }
    }

    private func serves(_ socket: Int32, _ observe: (UnsafePointer<SocketCalls>?) -> Void) -> Bool {
        let own = Unmanaged.passUnretained(self).toOpaque()
        calls.context = own
        calls.receive = { check, _, bytes, count in
            guard let bytes else { return -Int(EAGAIN) }
            return SocketCallsCheck.of(check).receive(into: UnsafeMutableRawBufferPointer(start: bytes, count: count))
        }
        calls.send = { _, _, count in count }
        var callbacks = MicroHTTPDCallbacks(
            context: own,
            handle: { check, connection, _, _, _, _, _, request in
                guard let connection, let request else { return .NO }
                guard request.pointee != nil else {
                    request.pointee = check
                    return .YES
                }
                guard let answer = Daemon.makeAnswer() else { return .NO }
                defer { MHD_destroy_response(answer) }
                return MHD_queue_response(connection, 200, answer)
            },
            request_line: { _, _, _ in nil },
            completed: { check, _, _, code in
                if code == .REQUEST_TERMINATED_COMPLETED_OK { SocketCallsCheck.of(check).isAnswered = true }
            }, connection: nil)
        var log = MicroHTTPDLog(write: { _, _ in }, context: nil)
        // With MHD_USE_TURBO, libmicrohttpd asks for bytes without an event of the socket.
        let flags =
            MHD_USE_EPOLL.rawValue | MHD_USE_ERROR_LOG.rawValue | MHD_USE_NO_LISTEN_SOCKET.rawValue
            | MHD_USE_TURBO.rawValue
        let options = [MHD_OptionItem(option: .END, value: 0, ptr_value: nil)]
        return withUnsafePointer(to: &calls) { calls in
            withUnsafePointer(to: &log) { log in
                guard let daemon = microhttpd_start(flags, &callbacks, log, options) else {
                    close(socket)
                    return false
                }
                observe(calls)
                microhttpd_add(daemon, socket)
                for _ in 0..<Self.runsMax where !isAnswered { MHD_run(daemon) }
                MHD_stop_daemon(daemon)
                observe(nil)
                return isAnswered
            }
        }
    }

    private static func of(_ pointer: UnsafeMutableRawPointer?) -> SocketCallsCheck {
        guard let pointer else { preconditionFailure("the check is registered with its own pointer") }
        return Unmanaged<SocketCallsCheck>.fromOpaque(pointer).takeUnretainedValue()
    }

    private func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard !isAsked else { return -Int(EAGAIN) }
        isAsked = true
        return RequestSpelling.write(fillingBuffer: true, to: buffer)
    }
}
