import CMicroHTTPD
import HTTPMessages

/// The exchanges that are being worked on.
///
/// A connection goes from held to suspended, and from either to answered.
///
/// **Held.** The handler returns without an answer and without suspending, which leaves the connection in
/// libmicrohttpd's ready list, to be looked at in the next pass. An answer that has come by then is queued without the
/// suspension's four system calls and without a walk over all suspended connections (Libmicrohttpd page, 8). It is held
/// for `parkingDelay`.
///
/// **Suspended.** The passes before also change what a resumption does. A connection that is suspended in the pass in
/// which it was read is read again when it resumes, and dropped without an answer if the client has closed its side
/// (Libmicrohttpd page, 3, 18). One that was looked at in between is in libmicrohttpd's state "blocked by the
/// application", and goes straight to its answer. So a client that has only finished sending, such as `nc -N`, is
/// answered too.
extension EventLoop {
    func hold(_ connection: ClientConnection, _ exchange: Exchange, atMost time: Duration?) -> Bool {
        if stage.refusesWork, exchange.fire() {
            return send(handlers.stop(exchange), on: connection)
        }
        pending[exchange.id] = connection
        statistics.working += 1
        heldWorkCount += 1
        connection.phase = .held(exchange)
        connection.heldUntil = timeOfIteration() + configuration.parkingDelay
        if let time { alarms.set(.exchange(exchange.id), at: timeOfIteration() + time) }
        return true
    }

    func suspend(_ connection: ClientConnection, _ exchange: Exchange) {
        iterationMoved = true
        heldWorkCount -= 1
        // Only here, inside the access handler, is it safe (Libmicrohttpd page, 5).
        MHD_suspend_connection(connection.handle)
        connection.phase = .suspended(exchange)
    }

    /// Carries what others have for these exchanges; those whose client has left meanwhile are no longer there.
    func deliver(_ transmission: Transmission) {
        switch transmission {
        case .answer(let exchanges, let response):
            // Made when somebody needs it in this form, and then for all.
            var (prepared, wire): (PreparedResponse??, WireResponse?)
            for exchange in exchanges {
                if let connection = pending[exchange.id] {
                    let form = prepared ?? prepare(response)
                    prepared = .some(form)
                    finish(connection, form)
                } else if let connection = parked[exchange.id] {
                    let form = wire ?? WireResponse(response, closing: false)
                    wire = form
                    answer(connection, form)
                }
            }
        case .chunk(let exchanges, let bytes, let isLast):
            for exchange in exchanges {
                if let connection = parked[exchange.id] { write(bytes, to: connection, exchange, isLast: isLast) }
            }
        }
    }

    /// Ends work in place of its answer, unless that is on its way.
    func expire(_ connection: ClientConnection, _ reason: Expiry) {
        guard let exchange = connection.exchange, let response = end(exchange, reason) else { return }
        finish(connection, prepare(response))
    }

    /// Ends an exchange and says what to send; nil where its answer is on its way.
    func end(_ exchange: Exchange, _ reason: Expiry) -> Response? {
        if case .stopping = reason { return exchange.fire() ? handlers.stop(exchange) : nil }
        // Asked before the exchange is claimed: a deadline must not overtake an answer that is being given.
        guard !exchange.isOver, let response = handlers.expire(exchange, reason), exchange.fire() else { return nil }
        return response
    }

    private func finish(_ connection: ClientConnection, _ response: PreparedResponse?) {
        let mustResume = release(connection)
        connection.phase = .answered(response)
        // The pass that follows calls the handler again, which queues the answer.
        if mustResume { MHD_resume_connection(connection.handle) }
    }

    /// Takes a connection out of the books; true if it is suspended.
    @discardableResult
    func release(_ connection: ClientConnection) -> Bool {
        statistics.working -= 1
        switch connection.phase {
        case .held(let exchange):
            pending[exchange.id] = nil
            heldWorkCount -= 1
            return false
        case .suspended(let exchange):
            pending[exchange.id] = nil
            return true
        case .idle, .lineReceived, .reading, .draining, .answered, .queued, .parked:
            preconditionFailure("only held and suspended connections are pending")
        }
    }
}

extension ClientConnection {
    /// The exchange that is being worked on.
    var exchange: Exchange? {
        switch phase {
        case .held(let exchange), .suspended(let exchange): exchange
        case .idle, .lineReceived, .reading, .draining, .answered, .queued, .parked: nil
        }
    }
}
