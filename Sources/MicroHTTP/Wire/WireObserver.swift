import CMicroHTTPD
import CSocketCalls
import Glibc
import HTTPMessages

/// What libmicrohttpd receives and sends on its sockets, seen before it does and changed where it must be.
///
/// libmicrohttpd reads and writes its sockets by itself. It takes chunk lines that another reader of HTTP takes otherwise,
/// answers some requests with pages of its own, and some with silence. The observer sees the bytes of each call, counts
/// them, ends the connections of requests that the server refuses while they are still being received, and replaces
/// libmicrohttpd's own answers with problem documents: `Decisions/SocketCalls.md`.
///
/// Only the loop thread uses it.
final class WireObserver {
    private let context: LoopContext
    private let idle: IdleConnections
    private let calls: UnsafeMutablePointer<SocketCalls>
    /// The connections that libmicrohttpd has, by descriptor.
    ///
    /// unsafe: libmicrohttpd has a reference to each of them until ``remove(_:)`` has returned, so this list counts none: each
    /// request needs them three times.
    @exclusivity(unchecked) private var connections: [Unmanaged<ClientConnection>?] = []
    private let headBytesMax: Int
    @exclusivity(unchecked) private var longHeads = LongHeads()
    private let later: LaterCalls
    /// Whether the loop is handing a connection to the large daemon.
    @exclusivity(unchecked) private(set) var isMoving = false
    @exclusivity(unchecked) private var isCheckDue = false
    /// A message up to this size is always sent.
    private static let shortBytesMax = 64 << 10
    /// How often the time of requests that are being received is checked.
    private static let checkInterval = Duration.milliseconds(500)

    init(_ context: LoopContext, idle: IdleConnections) {
        self.context = context
        self.idle = idle
        headBytesMax = context.configuration.headBytesMax
        later = LaterCalls(context)
        calls = .allocate(capacity: 1)
        calls.initialize(to: SocketCalls())
        calls.pointee.asked = { observer, socket, bytes, count in
            WireObserver.with(observer) {
                $0.asked(on: socket, for: UnsafeMutableRawBufferPointer(start: bytes, count: count))
            }
        }
        calls.pointee.received = { observer, socket, bytes, count in
            WireObserver.with(observer) {
                $0.received(on: socket, UnsafeMutableRawBufferPointer(start: bytes, count: count))
            }
        }
        calls.pointee.sending = { observer, socket, bytes, count, all in
            WireObserver.with(observer) {
                $0.sending(UnsafeRawBufferPointer(start: bytes, count: count), of: all, on: socket)
            }
        }
        calls.pointee.context = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit { calls.deallocate() }

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

    /// Notes that libmicrohttpd is about to close a connection, which it may do without having said a word.
    func remove(_ connection: ClientConnection) {
        let index = Int(connection.descriptor)
        let own = Unmanaged.passUnretained(connection).toOpaque()
        guard connections.indices.contains(index), connections[index]?.toOpaque() == own else { return }
        if moveKept(connection) {
            connections[index] = nil
            return
        }
        if case .idle = connection.phase, connection.answersCount == 0, connection.unansweredCount > 0,
            !connection.isRefused
        {
            refuse(connection, .malformed("the bytes are not a request of HTTP/1.1"))
        }
        connections[index] = nil
        longHeads.forget(connection.descriptor)
    }

    /// Moves a connection with a long head that came behind a request, if it has one; returns whether it does.
    func moveKept(_ connection: ClientConnection) -> Bool { longHeads.moveKept(connection) }

    /// Hands the connections with long heads to the large daemon, after the small one has forgotten them.
    func moveConnections() {
        guard !longHeads.isEmpty else { return }
        isMoving = true
        defer { isMoving = false }
        for descriptor in longHeads.takeMoves() where !context.daemons.large.add(descriptor) {
            longHeads.forget(descriptor)
            context.handlers.debugLog("libmicrohttpd refused a connection with a long head")
        }
    }

    /// Calls a function with the connection of a descriptor; returns nil where there is none.
    private func with<Result>(_ socket: Int32, _ body: (ClientConnection) -> Result) -> Result? {
        let index = Int(socket)
        guard connections.indices.contains(index), let connection = connections[index] else { return nil }
        return connection._withUnsafeGuaranteedRef(body)
    }

    /// Ends a connection on which nothing is being worked on, of a client that has far more than this one.
    ///
    /// The cost is O(n) in the number of descriptors; the loop calls it only where all places are taken.
    ///
    /// - Returns: whether a place is free, or about to be.
    func makeRoom(for client: String) -> Bool {
        guard let hog = context.clients.hog(for: client, placesCount: context.configuration.connectionsMax) else {
            return false
        }
        var receiving: ClientConnection?
        for case let listed? in connections {
            let connection = listed.takeUnretainedValue()
            guard connection.client == hog, !connection.isRefused else { continue }
            if connection.isReceiving {
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

    /// Handles that libmicrohttpd asks for bytes; returns how many it gets without a look at the socket, 0 for none, or -1
    /// where it gets none in this iteration.
    private func asked(on socket: Int32, for buffer: UnsafeMutableRawBufferPointer) -> Int {
        // Of bytes that the loop has, the kernel would report nothing again.
        let count = longHeads.replay(on: socket, into: buffer)
        if count == 0, with(socket, { later.postpones($0, .receive) }) == true { return -1 }
        return count
    }

    /// Handles bytes that libmicrohttpd is about to get; false tells it that the input has ended.
    private func received(on socket: Int32, _ received: UnsafeMutableRawBufferPointer) -> Bool {
        with(socket) { self.received(on: $0, received) } ?? true
    }

    private func received(on connection: ClientConnection, _ received: UnsafeMutableRawBufferPointer) -> Bool {
        let bytes = UnsafeRawBufferPointer(received)
        connection.receivedCount += bytes.count
        connection.receivedEnd = bytes.baseAddress.map { $0 + bytes.count }
        guard !connection.isRefused else { return false }
        if let fault = connection.chunks?.take(bytes) {
            refuse(connection, .malformed(fault))
            return false
        }
        let earlierCount = connection.unansweredCount - bytes.count
        if earlierCount == 0, case .idle = connection.phase { CodingSpaces.move(in: received) }
        if !connection.hasLongHeads, connection.overCapacity == nil {
            // Bytes behind an earlier request belong to a head that is followed only where its beginning was kept.
            switch connection.phase {
            case .idle where earlierCount == 0: return takeHead(bytes, of: connection)
            case .idle, .lineReceived: return connection.partialHead.isEmpty || takeHead(bytes, of: connection)
            case .reading:
                connection.keepBehindBody(bytes)
                idle.note(connection)
                return true
            case .draining:
                idle.note(connection)
                return true
            case .held, .suspended, .resumed, .answered, .queued, .parked: return true
            }
        }
        switch connection.phase {
        case .idle, .lineReceived:
            idle.note(connection)
            // libmicrohttpd asks for more although it has as many bytes as a head may have.
            if earlierCount >= headBytesMax, !Self.hasEndOfHead(bytes, earlierCount) {
                refuse(connection, context.configuration.headFault)
            }
        case .reading, .draining: idle.note(connection)
        case .held, .suspended, .resumed, .answered, .queued, .parked: break
        }
        return !connection.isRefused
    }

    /// Follows bytes of a head; the end of the input may have come with those that do not end it.
    private func takeHead(_ bytes: UnsafeRawBufferPointer, of connection: ClientConnection) -> Bool {
        let isTaken = longHeads.take(bytes, of: connection)
        if !connection.partialHead.isEmpty { idle.note(connection) }
        return isTaken
    }

    /// Whether a head ends in bytes that were received, or in those that libmicrohttpd has in memory before them.
    private static func hasEndOfHead(_ bytes: UnsafeRawBufferPointer, _ earlierCount: Int) -> Bool {
        guard let base = bytes.baseAddress else { return false }
        let all = UnsafeRawBufferPointer(start: base - earlierCount, count: earlierCount + bytes.count)
        return (3..<all.count).contains { index in
            all[index] == 0x0A && all[index - 1] == 0x0D && all[index - 2] == 0x0A && all[index - 3] == 0x0D
        }
    }

    /// Handles that libmicrohttpd is about to send a message.
    ///
    /// - Parameter count: how many bytes it has; `bytes` are the first of them.
    private func sending(
        _ bytes: UnsafeRawBufferPointer, of count: Int, on socket: Int32
    ) -> SocketCallsSending {
        with(socket) { sending(bytes, of: count, on: $0) } ?? SOCKET_CALLS_SEND
    }

    private func sending(
        _ bytes: UnsafeRawBufferPointer, of count: Int, on connection: ClientConnection
    ) -> SocketCallsSending {
        guard connection.isAnswering else {
            return withholds(bytes, from: connection) ? SOCKET_CALLS_WITHHOLD : SOCKET_CALLS_SEND
        }
        return count > Self.shortBytesMax && later.postpones(connection, .send) ? SOCKET_CALLS_LATER : SOCKET_CALLS_SEND
    }

    /// Whether a message is an answer that libmicrohttpd has made by itself, which a problem document replaces.
    private func withholds(_ bytes: UnsafeRawBufferPointer, from connection: ClientConnection) -> Bool {
        if connection.isRefused || connection.isAnsweredEarly { return true }
        // "HTTP/1.1 100 Continue" asks for the body.
        let status = bytes.dropFirst(9).prefix(3).reduce(0) { $0 * 10 + Int($1) - 0x30 }
        guard status != 100 else { return false }
        if moveKept(connection) { return true }
        refuse(connection, fault(of: status))
        return true
    }

    private func fault(of status: Int) -> TransportFault {
        switch status {
        case 413: .bodyTooLarge(bytesMax: context.configuration.bodyBytesMax)
        case 431: context.configuration.headFault
        case 414: context.configuration.targetFault
        case 505: .versionNotSupported
        default: .malformed("the request breaks a rule of RFC 9112")
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
            fault, connection.request ?? connection.head?.request(client: connection.requestClient))
        let (bytes, _) = WireResponse(response, closing: true).bytes(closing: true, isHead: false)
        // An empty socket takes a problem document at once, and a client that has left an answer unread gets none.
        _ = bytes.withUnsafeBytes { bytes in
            sendto(connection.descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT), nil, 0)
        }
        shutdown(connection.descriptor, Int32(SHUT_WR))
    }

    /// Refuses the requests that have taken too long to arrive.
    ///
    /// The cost is O(n) in the number of descriptors, twice a second while there are connections.
    func check() {
        let now = LoopInstant.now
        var isUsed = false
        for connection in connections {
            guard let connection = connection?.takeUnretainedValue() else { continue }
            isUsed = true
            guard connection.isReceiving, !connection.isRefused else {
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
}

extension ClientConnection {
    /// Whether a request has begun to arrive and is not complete.
    fileprivate var isReceiving: Bool {
        switch phase {
        case .idle: unansweredCount > 0
        case .lineReceived, .reading, .draining: true
        case .held, .suspended, .resumed, .answered, .queued, .parked: false
        }
    }
}

extension ServerConfiguration {
    /// How long the current request of a connection may take to arrive.
    fileprivate func receivingTime(for connection: ClientConnection) -> Duration {
        switch connection.phase {
        case .reading, .draining:
            // A client that sends steadily may take as long as it needs.
            headTime + bodyTime + .seconds(connection.unansweredCount / bodyBytesPerSecondMin)
        case .idle, .lineReceived, .held, .suspended, .resumed, .answered, .queued, .parked: headTime
        }
    }
}
