import CMicroHTTPD
import HTTPMessages

/// The exchanges on which handlers work, with their connections, which libmicrohttpd has.
///
/// A connection goes from held to suspended, and from either to answered.
///
/// **Held.** The access handler returns without an answer and without suspending, which leaves the connection in
/// libmicrohttpd's ready list; libmicrohttpd calls the handler again in the next iteration. An answer that exists by
/// then needs neither the four system calls of a suspension nor a walk over all suspended connections (Libmicrohttpd
/// page, 8). The loop holds a connection for `parkingDelay`.
///
/// **Suspended.** The iterations before a suspension also change what a resumption does. libmicrohttpd reads from a
/// connection that was suspended in the iteration in which its request was read, and drops it without an answer if the
/// client has finished sending (Libmicrohttpd page, 3 and 18). A connection that was held in between is in
/// libmicrohttpd's state "blocked by the application", and a resumption leads to its answer. So a client that has
/// finished sending, such as `nc -N`, is answered too.
///
/// Only the loop thread uses it.
final class PendingExchanges {
    // exclusivity unchecked: only the loop thread uses the variables, and a check takes as long as ten accesses.

    private let context: LoopContext
    /// In no order; each exchange has its index, so that neither holding it nor finding it takes a search.
    @exclusivity(unchecked) private var connections: [ClientConnection] = []
    /// The exchanges with a deadline, by number.
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

    /// The connection of an exchange, while a handler works on it.
    subscript(exchange: Exchange) -> ClientConnection? { exchange.place.map { connections[$0] } }

    /// The connection of the exchange with this number, while a handler works on it until a deadline.
    func timed(_ number: UInt64) -> ClientConnection? { timed[number] }

    /// Holds the connection of an exchange that a handler works on.
    func hold(_ connection: ClientConnection, _ exchange: Exchange, atMost time: Duration?) {
        exchange.place = connections.count
        connections.append(connection)
        context.statistics.working += 1
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

    /// Ends the work on an exchange, unless its answer is on its way.
    func expire(_ connection: ClientConnection, _ reason: Expiry) {
        guard let exchange = connection.exchange, let response = context.handlers.end(exchange, reason) else { return }
        finish(connection, context.admitted(WireResponse(response)))
    }

    /// Ends the work on all exchanges because the server is stopping.
    func stopAll() {
        for connection in connections { expire(connection, .stopping) }
    }

    /// Gives a connection its answer, which the access handler queues in the same iteration.
    func finish(_ connection: ClientConnection, _ response: WireResponse) {
        let mustResume = remove(connection)
        connection.phase = .answered(response)
        if mustResume { MHD_resume_connection(connection.handle) }
    }

    /// Has the access handler hand the request of a connection to the handlers again, in the same iteration.
    func resume(_ connection: ClientConnection, _ exchange: Exchange) {
        let mustResume = remove(connection)
        connection.phase = .resumed(exchange)
        if mustResume { MHD_resume_connection(connection.handle) }
    }

    /// Removes a held or suspended connection; returns whether it is suspended.
    @discardableResult
    func remove(_ connection: ClientConnection) -> Bool {
        context.statistics.working -= 1
        let (exchange, isSuspended): (Exchange, Bool) =
            switch connection.phase {
            case .held(let exchange): (exchange, false)
            case .suspended(let exchange): (exchange, true)
            case .idle, .receiving, .discarding, .complete, .resumed, .answered, .queued, .parked:
                preconditionFailure("only held and suspended connections are pending")
            }
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
    /// The exchange on which a handler works.
    fileprivate var exchange: Exchange? {
        switch phase {
        case .held(let exchange), .suspended(let exchange): exchange
        case .idle, .receiving, .discarding, .complete, .resumed, .answered, .queued, .parked: nil
        }
    }
}
