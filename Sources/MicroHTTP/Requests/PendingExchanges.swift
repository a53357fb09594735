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
    /// In no order; each exchange has its index, so that neither holding it nor finding it takes a search.
    @exclusivity(unchecked) private var connections: [ClientConnection] = []
    @exclusivity(unchecked) private var timed: [UInt64: ClientConnection] = [:]
    @exclusivity(unchecked) private var heldCount = 0

    private let delay: LoopInstant.Span

    init(_ context: LoopContext) {
        self.context = context
        delay = LoopInstant.Span(context.configuration.parkingDelay)
    }

    var count: Int { connections.count }
    var isEmpty: Bool { connections.isEmpty }
    /// Whether some connection is held, which makes libmicrohttpd report more work at once.
    var hasHeld: Bool { heldCount > 0 }

    subscript(exchange: Exchange) -> ClientConnection? { exchange.place.map { connections[$0] } }

    func timed(_ number: UInt64) -> ClientConnection? { timed[number] }

    func hold(_ connection: ClientConnection, _ exchange: Exchange, atMost time: Duration?) {
        exchange.place = connections.count
        connections.append(connection)
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

    /// Suspends a held connection; only the access handler may call it (Libmicrohttpd page, 5).
    func suspend(_ connection: ClientConnection, _ exchange: Exchange) {
        context.hasProgressed = true
        heldCount -= 1
        exchange.isHeld = false
        MHD_suspend_connection(connection.handle)
        connection.phase = .suspended(exchange)
    }

    func expire(_ connection: ClientConnection, _ reason: Expiry) {
        guard let exchange = connection.exchange, let response = context.handlers.end(exchange, reason) else { return }
        release(connection, as: .answered(context.admitted(WireResponse(response))))
    }

    func stopAll() {
        for connection in connections { expire(connection, .stopping) }
    }

    /// Ends the wait of a connection: the access handler queues its answer, a long one perhaps in a later iteration, or hands
    /// its request to the handlers again.
    func release(_ connection: ClientConnection, as phase: ClientConnection.Phase) {
        let mustResume = remove(connection)
        connection.phase = phase
        if mustResume { MHD_resume_connection(connection.handle) }
    }

    /// Removes a held or suspended connection; returns whether it is suspended.
    @discardableResult
    func remove(_ connection: ClientConnection) -> Bool {
        guard let exchange = connection.exchange else {
            preconditionFailure("only held and suspended connections are pending")
        }
        let isSuspended = !exchange.isHeld
        context.gauges.working.add(-1)
        // Where libmicrohttpd then refuses the answer, the exchange is not removed again.
        connection.phase = .complete
        if !isSuspended { heldCount -= 1 }
        exchange.isHeld = false
        exchange.noteSocket(-1)
        if !timed.isEmpty { timed[exchange.id] = nil }
        guard let place = exchange.place.take(), let last = connections.popLast() else { return isSuspended }
        // The last one gets its place.
        if place < connections.count {
            connections[place] = last
            last.exchange?.place = place
        }
        return isSuspended
    }
}

extension ClientConnection {
    fileprivate var exchange: Exchange? {
        switch phase {
        case .held(let exchange), .suspended(let exchange): exchange
        case .idle, .receiving, .discarding, .complete, .resumed, .answered, .queued, .parked: nil
        }
    }
}
