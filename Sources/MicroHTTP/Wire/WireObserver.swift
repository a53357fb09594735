import CMicroHTTPD
import CSocketCalls
import Glibc
import HTTPMessages

/// The socket calls of libmicrohttpd: the loop makes them in its place.
///
/// libmicrohttpd asks for bytes, and gets a head in place of each request that has been read here (``RequestIntake``). It
/// sends an empty answer, in place of which the loop sends its own: `Decisions/SocketCalls.md`.
///
/// Only the loop thread uses it.
final class WireObserver {
    private let context: LoopContext
    private let intake: RequestIntake
    private let idle: IdleConnections
    private let calls: UnsafeMutablePointer<SocketCalls>
    private let open: OpenConnections
    private let later: LaterCalls
    /// Where bytes are received.
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: receivedBytesMax, alignment: 16)
    private static let receivedBytesMax = 64 << 10
    /// How many times a connection fills the buffer before others have their turn.
    private static let readsMax = 4
    /// A message up to this size is always sent.
    private static let shortBytesMax = 64 << 10

    init(_ context: LoopContext, intake: RequestIntake, idle: IdleConnections, open: OpenConnections) {
        self.open = open
        self.context = context
        self.intake = intake
        self.idle = idle
        later = LaterCalls(context)
        calls = .allocate(capacity: 1)
        calls.initialize(to: SocketCalls())
        calls.pointee.receive = { observer, socket, bytes, count in
            WireObserver.with(observer) {
                $0.receive(on: socket, into: UnsafeMutableRawBufferPointer(start: bytes, count: count))
            }
        }
        calls.pointee.send = { observer, socket, count in
            WireObserver.with(observer) { observer in
                observer.open.with(socket) { observer.send(on: $0, inPlaceOf: count) } ?? Int(SOCKET_CALLS_FOREIGN)
            }
        }
        calls.pointee.context = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit {
        calls.deallocate()
        buffer.deallocate()
    }

    private static func with<Result>(_ pointer: UnsafeMutableRawPointer?, _ body: (WireObserver) -> Result) -> Result {
        guard let pointer else { preconditionFailure("the observer is registered with its own pointer") }
        return Unmanaged<WireObserver>.fromOpaque(pointer)._withUnsafeGuaranteedRef(body)
    }

    /// Observes the socket calls of the current thread, which is that of the loop.
    func begin() { socket_calls_observe(calls) }

    /// Ends the observation, on the same thread.
    func end() { socket_calls_observe(nil) }

    /// Begins an iteration: libmicrohttpd uses some of the sockets again that it has left to this one.
    func beginIteration() { later.beginIteration() }

    /// Whether libmicrohttpd has left sockets to the next iteration.
    var hasLaterCalls: Bool { !later.isEmpty }

    /// Notes that libmicrohttpd is about to close a connection, whose client may have sent something that is no request.
    func noteEnd(of connection: ClientConnection) {
        if connection.answersCount == 0, case .head = connection.input.position, connection.input.isReceiving,
            !connection.isRefused
        {
            open.refuse(connection, .malformed("the bytes are not a request of HTTP/1.1"))
        }
    }

    // MARK: Socket calls

    /// Handles that libmicrohttpd asks for bytes; returns how many it gets, 0 at the end of the input, or the negative
    /// number of an error.
    private func receive(on socket: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        open.with(socket) { receive(on: $0, into: buffer) } ?? Self.receive(on: socket, into: buffer)
    }

    private static func receive(on socket: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = recvfrom(socket, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT), nil, nil)
        return count < 0 ? -Int(errno) : count
    }

    private func receive(on connection: ClientConnection, into own: UnsafeMutableRawBufferPointer) -> Int {
        guard !connection.isRefused else { return 0 }
        switch connection.input.position {
        case .complete:
            // What the client sends behind its request stays in the kernel until the answer is sent.
            connection.input.wasMissed = true
            return -Int(EAGAIN)
        case .ended: return 0
        case .head, .declared, .chunked, .discarding: break
        }
        if connection.input.hasUnread {
            if let result = proceed(connection, intake.takeUnread(of: connection), hasMore: true, own) { return result }
        } else if later.postpones(connection, .receive) {
            return -Int(EAGAIN)
        }
        for readsCount in 1... {
            let count = Self.receive(on: connection.descriptor, into: buffer)
            guard count > 0 else { return count }
            connection.activityCount &+= 1
            let isFull = count == buffer.count
            let progress = intake.take(UnsafeRawBufferPointer(rebasing: buffer[..<count]), of: connection)
            if let result = proceed(connection, progress, hasMore: isFull, own) { return result }
            idle.note(connection)
            guard isFull else { break }
            // The kernel reports the rest again, but not on a Unix socket, where all of it is received at once.
            if readsCount >= Self.readsMax, !connection.isLocal {
                microhttpd_report_readable(connection.descriptor)
                break
            }
        }
        return -Int(EAGAIN)
    }

    /// Does what follows from received bytes; returns what libmicrohttpd gets, or nil where more bytes are needed.
    ///
    /// - Parameter hasMore: whether the kernel, or the connection, may have more bytes.
    private func proceed(
        _ connection: ClientConnection, _ progress: RequestIntake.Progress, hasMore: Bool,
        _ own: UnsafeMutableRawBufferPointer
    ) -> Int? {
        switch progress {
        case .complete:
            precondition(own.count >= RequestSpelling.bytesMax, "libmicrohttpd's buffer is empty between two requests")
            return RequestSpelling.write(fillingBuffer: hasMore || connection.hasMoreInput, to: own)
        case .incomplete: return nil
        case .refused(let fault):
            open.refuse(connection, fault)
            return 0
        case .bodyRefused(let fault):
            open.refuseBody(of: connection, fault)
            return nil
        case .ended:
            shutdown(connection.descriptor, Int32(SHUT_RD))
            connection.isRefused = true
            return 0
        }
    }

    /// Sends what is left of the answer, in place of libmicrohttpd's message.
    ///
    /// - Parameter count: how many bytes the message has.
    /// - Returns: the result for libmicrohttpd: that all of it is sent, or the negative number of an error.
    private func send(on connection: ClientConnection, inPlaceOf count: Int) -> Int {
        connection.activityCount &+= 1
        guard var answer = connection.unsentAnswer else {
            if !connection.isAnswering { open.refuse(connection, .malformed("the request breaks a rule of RFC 9112")) }
            return count
        }
        guard answer.unsentCount <= Self.shortBytesMax || !later.postpones(connection, .send) else {
            return -Int(EAGAIN)
        }
        let progress = answer.send(atMost: .max) { Outgoing.send($0, to: connection.descriptor) }
        switch progress {
        case .done:
            (connection.unsentAnswer, connection.holding) = (nil, nil)
            return count
        case .full, .paused:
            connection.unsentAnswer = answer
            if connection.holding == nil { connection.holding = answer.hold(in: context.memory) }
            return -Int(EAGAIN)
        case .broken: return -Int(EPIPE)
        }
    }
}
