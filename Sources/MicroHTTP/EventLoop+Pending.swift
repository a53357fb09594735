import CMicroHTTPD
import HTTPMessages

/// The exchanges whose answers come later.
///
/// A connection goes from held to suspended, and from either to answered.
///
/// **Held.** The handler returns without an answer and without suspending, which leaves the connection in
/// libmicrohttpd's ready list, to be looked at in the next pass. An answer that has come by then is queued without the
/// suspension's four system calls and without a walk over all suspended connections (MICROHTTPD.md 8). Those who wait
/// are held for one pass, work in hand for `parkingDelay`.
///
/// **Suspended.** The one pass also changes what a resumption does. A connection that is suspended in the pass in which
/// it was read is read again when it resumes, and dropped without an answer if the client has closed its side
/// (MICROHTTPD.md 3, 18). One that was looked at in between is in libmicrohttpd's state "blocked by the application",
/// and goes straight to its answer. So a client that has only finished sending, such as `nc -N`, is answered too.
extension EventLoop {
    func hold(
        _ connection: ClientConnection, _ exchange: Exchange, _ patience: ClientConnection.Patience,
        deadline: ContinuousClock.Instant?
    ) -> Bool {
        if stage.refuses(patience), exchange.fire() {
            return send(handlers.expire(exchange, .stopping), on: connection)
        }
        pending[exchange.id] = connection
        switch patience {
        case .working:
            statistics.working += 1
            heldWorkCount += 1
            connection.phase = .held(exchange, patience, until: timeOfPass() + configuration.parkingDelay)
        case .waiting:
            statistics.waiting += 1
            connection.phase = .held(exchange, patience, until: nil)
        }
        if let deadline { alarms.set(.exchange(exchange.id), at: deadline) }
        return true
    }

    func suspend(
        _ connection: ClientConnection, _ exchange: Exchange, _ patience: ClientConnection.Patience
    ) {
        passMoved = true
        if patience == .working { heldWorkCount -= 1 }
        // Only here, inside the access handler, is it safe (MICROHTTPD.md 5).
        MHD_suspend_connection(connection.handle)
        // Work is answered whether or not its client still listens. A wait that cannot be watched, because the system
        // has no room for watches, still ends with its deadline.
        let isWatched =
            patience == .waiting && poller.watchHangUp(of: connection.descriptor, exchange: exchange.id)
        connection.phase = .suspended(exchange, patience, isWatched: isWatched)
    }

    /// Gives all of these exchanges one response; those whose client has left meanwhile are no longer there.
    func settle(_ exchanges: [Exchange], _ response: Response) {
        let prepared = prepare(response)
        for exchange in exchanges {
            guard let connection = pending[exchange.id] else { continue }
            settle(connection, prepared)
        }
    }

    /// Ends an exchange in place of its answer, unless that is on its way.
    func expire(_ connection: ClientConnection, _ reason: Expiry) {
        switch connection.phase {
        case .held(let exchange, _, _), .suspended(let exchange, _, _):
            guard exchange.fire() else { return }
            settle(connection, prepare(handlers.expire(exchange, reason)))
        case .idle, .lineReceived, .reading, .draining, .answered, .queued:
            preconditionFailure("only held and suspended connections are pending")
        }
    }

    /// The client of a waiting exchange has closed its side.
    func hungUp(_ number: UInt64) {
        if let connection = pending[number] { expire(connection, .hangUp) }
    }

    private func settle(_ connection: ClientConnection, _ response: PreparedResponse?) {
        let mustResume = release(connection)
        connection.phase = .answered(response)
        // The pass that follows calls the handler again, which queues the answer.
        if mustResume { MHD_resume_connection(connection.handle) }
    }

    /// Takes a connection out of the books; true if it is suspended.
    @discardableResult
    func release(_ connection: ClientConnection) -> Bool {
        switch connection.phase {
        case .held(let exchange, let patience, _):
            pending[exchange.id] = nil
            if patience == .working { heldWorkCount -= 1 }
            uncount(patience)
            return false
        case .suspended(let exchange, let patience, let isWatched):
            pending[exchange.id] = nil
            if isWatched { poller.unwatchHangUp(of: connection.descriptor) }
            uncount(patience)
            return true
        case .idle, .lineReceived, .reading, .draining, .answered, .queued:
            preconditionFailure("only held and suspended connections are pending")
        }
    }

    private func uncount(_ patience: ClientConnection.Patience) {
        switch patience {
        case .working: statistics.working -= 1
        case .waiting: statistics.waiting -= 1
        }
    }
}
