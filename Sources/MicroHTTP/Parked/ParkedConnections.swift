import CMicroHTTPD
import Glibc
import HTTPMessages
import HTTPTypes
import Threads

/// The connections that the loop has taken from libmicrohttpd because their requests wait.
///
/// A connection that is suspended in libmicrohttpd keeps its memory pool, and each resumption of another connection
/// walks it (Libmicrohttpd page, 8). The loop therefore takes the socket of a request that waits: it duplicates the
/// descriptor, and the access handler returns false, at which libmicrohttpd forgets the connection and closes its own
/// descriptor; with `MHD_USE_TURBO` it does not shut the socket down. The loop writes the answer by itself. When the
/// client sends its next request, the loop hands the socket back with `MHD_add_connection`.
///
/// Only the loop thread uses it.
final class ParkedConnections {
    // exclusivity unchecked: only the loop thread uses the variables, and a check takes as long as ten accesses.

    private let context: LoopContext
    private let open: OpenConnections
    @exclusivity(unchecked) private var connections: [UInt64: ClientConnection] = [:]
    /// The connections that continue to send in a later iteration, one client after the other.
    ///
    /// A paused connection has no event to wait for: its socket may have room already, and the poller, edge-triggered,
    /// reports only changes. It may have closed since.
    @exclusivity(unchecked) private var paused = ClientTurns<UInt64>()
    @exclusivity(unchecked) private var sentCount = 0
    // Above this sum, about half a millisecond, long answers wait for their turn; short ones are always sent directly,
    // which for thousands of waiters is the fastest way.
    private static let iterationBytesMax = 1 << 20
    private static let shortBytesMax = 64 << 10
    @exclusivity(unchecked) private var writable: [Exchange] = []
    @exclusivity(unchecked) private var silent: [Exchange] = []

    init(_ context: LoopContext, open: OpenConnections) { (self.context, self.open) = (context, open) }

    var count: Int { connections.count }
    var isEmpty: Bool { connections.isEmpty }
    var hasPaused: Bool { paused.count > 0 }

    subscript(number: UInt64) -> ClientConnection? { connections[number] }

    /// The connection that the loop is handing back to libmicrohttpd, until libmicrohttpd has it.
    @exclusivity(unchecked) var returning: ClientConnection?

    // MARK: Parking

    /// Returns false if the process has no descriptor for it: libmicrohttpd closes its own at the end of each
    /// iteration, so that for a moment more may be needed than there are.
    func park(_ connection: ClientConnection, _ exchange: Exchange, as phase: ClientConnection.Phase) -> Bool {
        context.hasProgressed = true
        let descriptor = fcntl(connection.descriptor, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { return false }
        guard context.poller.watch(descriptor, number: exchange.id) else {
            Glibc.close(descriptor)
            return false
        }
        open.remove(connection)
        connection.park(exchange, on: descriptor, as: phase, now: context.time())
        connections[exchange.id] = connection
        context.gauges.waiting.add(1)
        return true
    }

    /// Returns false if the process has no descriptor for it.
    func beginStream(
        _ connection: ClientConnection, _ exchange: Exchange, _ response: Response, heartbeat: Duration
    ) -> Bool {
        connection.isLastRequest = true
        guard park(connection, exchange, as: .streaming(exchange)) else { return false }
        connection.heartbeat = heartbeat
        if let counted = connection.counted {
            context.gauges.answers.count(counted, response.status.code, isTimed: false)
        }
        microhttpd_prepare_stream(connection.descriptor)
        context.setAlarm(.exchange(connection.number), after: heartbeat)
        let head = WireResponse.stream(
            response, isHead: connection.isHead, isChunked: !connection.isVersion10, at: context.date.now())
        send(Outgoing(head), isLast: false, of: exchange, on: connection)
        return true
    }

    // MARK: Events

    func handle(_ number: UInt64, _ events: UInt32) {
        guard let connection = connections[number] else { return }
        let isReadable = events & EPOLLIN.rawValue != 0
        let isWritable = events & EPOLLOUT.rawValue != 0
        let isHungUp = events & (EPOLLRDHUP.rawValue | EPOLLHUP.rawValue) != 0
        if isReadable { connection.hasInput = true }
        if isHungUp { connection.hasHungUp = true }
        if events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 { return fail(connection) }
        switch connection.phase {
        case .waiting(let exchange):
            guard isHungUp else { return }
            // The client may have only finished sending, and then gets the answer.
            if connection.isOfWork { exchange.noteHangUp() } else { expire(connection, exchange, .hangUp) }
        case .streaming(let exchange):
            // The client may have only finished sending, and gets the end of its stream.
            if isHungUp { return expire(connection, exchange, .hangUp) }
            if isWritable { resumeLater(connection) }
        case .answering:
            if isWritable { resumeLater(connection) }
        case .keepAliveIdle:
            // The socket may report room for an answer that it has taken in the meantime: that is no reason to end it.
            if isReadable || isHungUp { handBack(connection) }
        default: break
        }
    }

    func handleAlarm(of connection: ClientConnection) {
        switch connection.phase {
        case .waiting(let exchange): expire(connection, exchange, .deadline)
        case .streaming(let exchange): heartbeatDue(connection, exchange)
        case .answering, .keepAliveIdle:
            // The timeout counts from the last bytes that the socket has taken.
            let due = connection.lastSent + context.configuration.idleTimeout
            if due <= .now { close(connection) } else { context.alarms.set(.exchange(connection.number), at: due) }
        default: break
        }
    }

    private func heartbeatDue(_ connection: ClientConnection, _ exchange: Exchange) {
        let isSending = connection.unsent != nil
        let now = LoopInstant.now
        let due = connection.lastSent + connection.heartbeat
        if isSending, connection.lastSent + context.configuration.idleTimeout <= now { return fail(connection) }
        if !isSending, due <= now { silent.append(exchange) }
        context.alarms.set(.exchange(connection.number), at: due > now ? due : now + connection.heartbeat)
    }

    private func fail(_ connection: ClientConnection) {
        switch connection.phase {
        case .waiting(let exchange), .streaming(let exchange):
            context.gauges.waiting.add(-1)
            close(connection)
            if exchange.fire() { _ = context.handlers.expire(exchange, .hangUp) }
        case .answering, .keepAliveIdle: close(connection)
        default: break
        }
    }

    func cut(_ connection: ClientConnection) {
        guard case .streaming = connection.phase else { return }
        context.gauges.waiting.add(-1)
        close(connection)
    }

    private func expire(_ connection: ClientConnection, _ exchange: Exchange, _ reason: Expiry) {
        guard let response = context.handlers.end(exchange, reason) else { return }
        if case .streaming = connection.phase {
            write(StreamChunk(response.body, isLast: true), to: connection, exchange)
        } else {
            answer(connection, WireResponse(response))
        }
    }

    // MARK: Answers and chunks

    func answer(_ connection: ClientConnection, _ response: WireResponse) {
        guard case .waiting = connection.phase else { return }
        context.gauges.waiting.add(-1)
        if let counted = connection.counted {
            context.gauges.answers.count(counted, response.statusCode, isTimed: connection.isOfWork)
        }
        let isLast = connection.isLastRequest || response.endsConnection || context.stage.isStopping
        let answer = response.outgoing(isClosing: isLast, isHead: connection.isHead, at: context.date.now())
        send(answer, isLast: isLast, on: connection)
    }

    func write(_ chunk: StreamChunk, to connection: ClientConnection, _ exchange: Exchange) {
        guard case .streaming = connection.phase else { return }
        let isLast = chunk.isLast
        if isLast { context.gauges.waiting.add(-1) }
        let outgoing = chunk.outgoing(isChunked: !connection.isVersion10)
        guard let unsent = connection.unsent else {
            return send(outgoing, isLast: isLast, of: exchange, on: connection)
        }
        // Only the last chunk of a stream may come while another is being sent. A client that has had its share of the
        // iteration gets the rest of its chunk and the last one; one whose socket is full is too slow for it.
        guard isLast else { return }
        guard connection.isPaused else { return close(connection) }
        keepAnswering(connection, unsent.followed(by: outgoing), isLast: true)
    }

    private func send(
        _ outgoing: Outgoing, isLast: Bool, of stream: Exchange? = nil, on connection: ClientConnection
    ) {
        var outgoing = outgoing
        let stream = isLast ? nil : stream
        switch push(&outgoing, to: connection) {
        case .done where isLast: closeGracefully(connection)
        case .done:
            guard let stream else { return awaitNextRequest(connection) }
            connection.phase = .streaming(stream)
            writable.append(stream)
        case .full, .paused:
            guard stream != nil else { return keepAnswering(connection, outgoing, isLast: isLast) }
            connection.unsent = outgoing
        // The last bytes have ended the wait already.
        case .broken: if stream == nil { close(connection) } else { fail(connection) }
        }
    }

    private func keepAnswering(_ connection: ClientConnection, _ outgoing: Outgoing, isLast: Bool) {
        // The alarm closes the connection if the client does not read; it is set once, when the answering begins.
        switch connection.phase {
        case .waiting, .streaming:
            context.alarms.set(.exchange(connection.number), at: .now + context.configuration.idleTimeout)
        default: break
        }
        connection.phase = .answering(isLast: isLast)
        connection.unsent = outgoing
    }

    /// An event reports room in a full socket; the loop itself continues with a paused connection.
    private func push(_ outgoing: inout Outgoing, to connection: ClientConnection) -> Outgoing.Progress {
        let before = outgoing.sentCount
        let isLong = outgoing.unsentCount > Self.shortBytesMax
        guard !isLong || sentCount < Self.iterationBytesMax else {
            resumeLater(connection)
            return hold(outgoing, for: connection) ? .paused : .broken
        }
        let progress = outgoing.send { Outgoing.send($0, to: connection.descriptor) }
        sentCount += outgoing.sentCount - before
        switch progress {
        case .done:
            connection.lastSent = context.time()
            connection.holding = nil
        case .full:
            if outgoing.sentCount > before { connection.lastSent = .now }
            guard hold(outgoing, for: connection) else { return .broken }
            context.poller.watchRoom(connection.descriptor, number: connection.number)
        case .paused:
            connection.lastSent = context.time()
            resumeLater(connection)
            guard hold(outgoing, for: connection) else { return .broken }
        case .broken:
            break
        }
        return progress
    }

    /// Returns false where the client is too slow for the memory that is left.
    private func hold(_ outgoing: Outgoing, for connection: ClientConnection) -> Bool {
        connection.holding = outgoing.hold(in: context.memory, for: connection.client)
        return connection.holding == nil || !context.memory.isExceeded(by: connection.client)
    }

    private func resumeLater(_ connection: ClientConnection) {
        guard !connection.isPaused else { return }
        connection.isPaused = true
        paused.append(connection.number, of: connection.client)
    }

    func resumePaused() {
        sentCount = 0
        // A connection whose socket has no room costs a system call.
        var triesLeft = 32
        while triesLeft > 0, sentCount < Self.iterationBytesMax, paused.count > 0, let number = paused.next() {
            guard let connection = connections[number] else { continue }
            triesLeft -= 1
            connection.isPaused = false
            guard let unsent = connection.unsent.take() else { continue }
            switch connection.phase {
            case .streaming(let exchange): send(unsent, isLast: false, of: exchange, on: connection)
            case .answering(let isLast): send(unsent, isLast: isLast, on: connection)
            default: break
            }
        }
    }

    var hasReports: Bool { !writable.isEmpty || !silent.isEmpty }

    func reportStreams() {
        if !writable.isEmpty { context.handlers.writable(Swift.exchange(&writable, with: [])) }
        if !silent.isEmpty { context.handlers.silent(Swift.exchange(&silent, with: [])) }
    }

    // MARK: Between two requests

    private func awaitNextRequest(_ connection: ClientConnection) {
        // The stop has looked for idle connections already.
        if context.stage.isStopping { return closeGracefully(connection) }
        connection.phase = .keepAliveIdle
        if connection.hasInput || connection.hasHungUp { return handBack(connection) }
        context.setAlarm(.exchange(connection.number), after: context.configuration.idleTimeout)
    }

    private func handBack(_ connection: ClientConnection) {
        guard connection.hasInput, !context.stage.isStopping else { return close(connection) }
        forget(connection)
        returning = connection
        if context.daemon?.add(connection.descriptor) != true {
            context.handlers.debugLog("libmicrohttpd refused a connection with a client's next request")
        }
        if let refused = returning.take() { context.forget(refused.client) }
    }

    private func forget(_ connection: ClientConnection) {
        context.poller.unwatch(connection.descriptor)
        connections[connection.number] = nil
        connection.phase = .closed
        (connection.unsent, connection.holding) = (nil, nil)
    }

    private func closeGracefully(_ connection: ClientConnection) {
        // To close a socket with unread input resets the connection, and the client may lose the answer.
        shutdown(connection.descriptor, Int32(SHUT_WR))
        microhttpd_discard_input(connection.descriptor)
        close(connection)
    }

    private func close(_ connection: ClientConnection) {
        forget(connection)
        Glibc.close(connection.descriptor)
        context.forget(connection.client)
    }

    // MARK: Stopping

    /// Ends work, too, after the grace time.
    func stop(withWork: Bool) {
        for connection in Array(connections.values) {
            switch connection.phase {
            case .waiting where connection.isOfWork && !withWork: break
            case .waiting(let exchange), .streaming(let exchange): expire(connection, exchange, .stopping)
            case .keepAliveIdle: close(connection)
            default: break
            }
        }
    }

    func closeAll() {
        for connection in Array(connections.values) { close(connection) }
    }
}
