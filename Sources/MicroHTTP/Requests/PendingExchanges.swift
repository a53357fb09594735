import CMicroHTTPD
import HTTPMessages

/// The exchanges on which handlers work, with their connections, which libmicrohttpd has.
///
/// A connection goes from held to suspended, and from either to answered. A held one stays in libmicrohttpd's ready
/// list, and libmicrohttpd calls the access handler again in the next iteration. An answer that exists by then needs
/// neither the four system calls of a suspension nor a walk over all suspended connections (Libmicrohttpd page, 8).
///
/// On its resumption, libmicrohttpd reads from a connection that was suspended in the iteration in which its request
/// was read, and drops it without an answer if the client has finished sending, such as `nc -N` (Libmicrohttpd page, 3
/// and 18). A connection that was held in between gets its answer.
///
/// Only the loop thread uses it.
final class PendingExchanges {
    // exclusivity unchecked: only the loop thread uses the variables, and a check takes as long as ten accesses.

    private let context: LoopContext
    private let open: OpenConnections
    @exclusivity(unchecked) private var timed: [UInt64: ClientConnection] = [:]
    @exclusivity(unchecked) private var heldCount = 0

    private let delay: LoopInstant.Span

    init(_ context: LoopContext, open: OpenConnections) {
        (self.context, self.open) = (context, open)
        delay = LoopInstant.Span(context.configuration.parkingDelay)
    }

    var count: Int { context.gauges.working.value }
    var hasHeld: Bool { heldCount > 0 }

    func timed(_ number: UInt64) -> ClientConnection? { timed[number] }

    func hold(_ connection: ClientConnection, _ exchange: Exchange, atMost time: Duration?) {
        exchange.pending = connection
        context.gauges.working.add(1)
        heldCount += 1
        connection.phase = .held(exchange)
        exchange.isHeld = true
        exchange.noteSocket(connection.descriptor)
        connection.heldUntil = context.time() + delay
        guard let time else { return }
        timed[exchange.id] = connection
        context.setAlarm(.exchange(exchange.id), after: time)
    }

    /// Only the access handler may call it (Libmicrohttpd page, 5).
    func suspend(_ connection: ClientConnection, _ exchange: Exchange) {
        context.hasProgressed = true
        heldCount -= 1
        exchange.isHeld = false
        MHD_suspend_connection(connection.handle)
        connection.phase = .suspended(exchange)
    }

    func expire(_ connection: ClientConnection, _ reason: Expiry) {
        guard let exchange = connection.exchange, let response = context.handlers.end(exchange, reason) else { return }
        release(connection, exchange, as: .answered(context.admitted(WireResponse(response))))
    }

    func stopAll() {
        for connection in open.all { expire(connection, .stopping) }
    }

    func release(_ connection: ClientConnection, _ exchange: Exchange, as phase: ClientConnection.Phase) {
        let mustResume = remove(exchange)
        connection.phase = phase
        if mustResume { MHD_resume_connection(connection.handle) }
    }

    /// Returns whether the connection is suspended.
    @discardableResult
    func remove(_ exchange: Exchange) -> Bool {
        precondition(exchange.pending != nil, "only the exchanges of held and suspended connections are pending")
        let isSuspended = !exchange.isHeld
        context.gauges.working.add(-1)
        if !isSuspended { heldCount -= 1 }
        exchange.isHeld = false
        exchange.noteSocket(-1)
        if !timed.isEmpty { timed[exchange.id] = nil }
        exchange.pending = nil
        return isSuspended
    }
}

extension ClientConnection {
    fileprivate var exchange: Exchange? {
        switch phase {
        case .held(let exchange), .suspended(let exchange): exchange
        case .idle, .receiving, .discarding, .complete, .resumed, .answered, .queued: nil
        case .waiting, .streaming, .answering, .keepAliveIdle, .closed: nil
        }
    }
}
