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
    /// The connections that libmicrohttpd has, by descriptor.
    ///
    /// unsafe: libmicrohttpd has a reference to each of them until ``remove(_:)`` has returned, so this list counts none: each
    /// request needs them three times.
    private var connections: [Unmanaged<ClientConnection>?] = []
    private let later: LaterCalls
    private var isCheckDue = false
    /// Where bytes are received.
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: receivedBytesMax, alignment: 16)
    private static let receivedBytesMax = 64 << 10
    /// How many times a connection fills the buffer before others have their turn.
    private static let readsMax = 4
    /// A message up to this size is always sent.
    private static let shortBytesMax = 64 << 10
    /// How often the time of requests that are being received is checked.
    private static let checkInterval = Duration.milliseconds(500)

    init(_ context: LoopContext, intake: RequestIntake, idle: IdleConnections) {
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
                observer.with(socket) { observer.send(on: $0, inPlaceOf: count) } ?? Int(SOCKET_CALLS_FOREIGN)
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

    // MARK: Connections

    /// Notes that libmicrohttpd has a connection.
    func add(_ connection: ClientConnection) {
        let index = Int(connection.descriptor)
        while connections.count <= index { connections.append(contentsOf: repeatElement(nil, count: 64)) }
        connections[index] = Unmanaged.passUnretained(connection)
        guard !isCheckDue else { return }
        isCheckDue = true
        context.setAlarm(.receiving, after: Self.checkInterval)
    }

    /// Notes that libmicrohttpd is about to close a connection, whose client may have sent something that is no request.
    func remove(_ connection: ClientConnection) {
        let index = Int(connection.descriptor)
        let own = Unmanaged.passUnretained(connection).toOpaque()
        guard connections.indices.contains(index), connections[index]?.toOpaque() == own else { return }
        if connection.answersCount == 0, case .head = connection.input.position, connection.input.isReceiving,
            !connection.isRefused
        {
            refuse(connection, .malformed("the bytes are not a request of HTTP/1.1"))
        }
        connections[index] = nil
    }

    /// Calls a function with the connection of a descriptor; returns nil where there is none.
    private func with<Result>(_ socket: Int32, _ body: (ClientConnection) -> Result) -> Result? {
        let index = Int(socket)
        guard connections.indices.contains(index), let connection = connections[index] else { return nil }
        return connection._withUnsafeGuaranteedRef(body)
    }

    /// Ends a connection on which nothing is being worked on, of a client that has far more than this one.
    ///
    /// The cost is O(n) in the number of descriptors; the loop calls it only at the limit of connections.
    ///
    /// - Returns: whether there is room for a connection, or about to be.
    func makeRoom(for client: String) -> Bool {
        guard
            let largest = context.clients.largestClient(for: client, placesCount: context.configuration.connectionsMax)
        else {
            return false
        }
        var receiving: ClientConnection?
        for case let listed? in connections {
            let connection = listed.takeUnretainedValue()
            guard connection.client == largest, !connection.isRefused else { continue }
            if connection.input.isReceiving {
                receiving = connection
            } else if case .idle = connection.phase {
                // The client takes it for the end of an idle connection, and connects again.
                connection.isRefused = true
                shutdown(connection.descriptor, Int32(SHUT_RDWR))
                return true
            }
        }
        guard let receiving else { return false }
        refuse(receiving, .connectionsExhausted)
        return true
    }

    // MARK: Socket calls

    /// Handles that libmicrohttpd asks for bytes; returns how many it gets, 0 at the end of the input, or the negative
    /// number of an error.
    private func receive(on socket: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        with(socket) { receive(on: $0, into: buffer) } ?? Self.receive(on: socket, into: buffer)
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
            refuse(connection, fault)
            return 0
        case .bodyRefused(let fault):
            refuseBody(of: connection, fault)
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
            if !connection.isAnswering { refuse(connection, .malformed("the request breaks a rule of RFC 9112")) }
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

    // MARK: Refusals

    /// Answers a request that has not been received whole, and ends its connection.
    ///
    /// The answer goes to the socket directly. libmicrohttpd then reads the end of the input.
    func refuse(_ connection: ClientConnection, _ fault: TransportFault) {
        guard !connection.isRefused else { return }
        connection.isRefused = true
        if !connection.isAnsweredEarly { send(fault, on: connection) }
        // To close a socket with unread input resets the connection, and the client may lose the answer.
        microhttpd_discard_input(connection.descriptor)
        shutdown(connection.descriptor, Int32(SHUT_RD))
    }

    /// Answers a request whose body is refused; the client may send the rest of the body, which is discarded.
    ///
    /// A client that sends on after its connection is closed could lose the answer.
    func refuseBody(of connection: ClientConnection, _ fault: TransportFault) {
        guard !connection.isRefused, !connection.isAnsweredEarly else { return }
        connection.isAnsweredEarly = true
        send(fault, on: connection)
    }

    /// Sends the answer for a fault, and nothing more.
    private func send(_ fault: TransportFault, on connection: ClientConnection) {
        context.statistics.refused += 1
        let response = context.handlers.refuse(
            fault, connection.head.map { Request($0.head, client: connection.requestClient) })
        var answer = WireResponse(response).outgoing(.close, isHead: false, at: context.date.now())
        // An empty socket takes a problem document at once, and a client that has left an answer unread gets none.
        _ = answer.send { Outgoing.send($0, to: connection.descriptor) }
        shutdown(connection.descriptor, Int32(SHUT_WR))
    }

    /// Refuses the requests that have taken too long to arrive, and closes the connections that have been silent for too long.
    ///
    /// The cost is O(n) in the number of descriptors, twice a second while there are connections.
    func check() {
        let now = LoopInstant.now
        var isUsed = false
        for connection in connections {
            guard let connection = connection?.takeUnretainedValue() else { continue }
            isUsed = true
            guard !connection.isRefused else { continue }
            checkSilence(of: connection, now)
            guard connection.input.isReceiving else {
                connection.receivingSince = nil
                continue
            }
            guard let since = connection.receivingSince, connection.receivingNumber == connection.answersCount else {
                connection.receivingSince = now
                connection.receivingNumber = connection.answersCount
                continue
            }
            if since.duration(to: now) >= context.configuration.receivingTime(for: connection) {
                refuse(connection, .tooSlow)
            }
        }
        isCheckDue = isUsed
        if isUsed { context.setAlarm(.receiving, after: Self.checkInterval) }
    }

    private func checkSilence(of connection: ClientConnection, _ now: LoopInstant) {
        switch connection.phase {
        case .idle, .queued: break
        // The server is at work, or the exchange has a deadline.
        case .begun, .held, .suspended, .resumed, .answered, .parked:
            connection.silentSince = nil
            return
        }
        guard let since = connection.silentSince, connection.activityCount == connection.activityCountSeen else {
            connection.silentSince = now
            connection.activityCountSeen = connection.activityCount
            return
        }
        guard since.duration(to: now) >= context.configuration.idleTimeout else { return }
        connection.isRefused = true
        // It makes an event, at which libmicrohttpd closes the connection.
        shutdown(connection.descriptor, Int32(SHUT_RDWR))
    }
}

extension ServerConfiguration {
    /// How long the current request of a connection may take to arrive.
    fileprivate func receivingTime(for connection: ClientConnection) -> Duration {
        guard connection.input.isReceivingBody else { return headTime }
        // A client that sends steadily may take as long as it needs.
        return headTime + bodyTime + .seconds(connection.input.bodyBytes / bodyBytesPerSecondMin)
    }
}
