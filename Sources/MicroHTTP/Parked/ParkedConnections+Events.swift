import HTTPMessages

extension ParkedConnections {
    func handle(_ event: Poller.Event) {
        guard let connection = self[event.number] else { return }
        if event.isReadable { connection.hasInput = true }
        if event.isHungUp { connection.hasHungUp = true }
        if event.isBroken { return fail(connection) }
        switch connection.phase {
        case .waiting(let exchange):
            guard event.isHungUp else { return }
            // The client may have only finished sending, and then gets the answer.
            if connection.isOfWork { exchange.noteHangUp() } else { expire(connection, exchange, .hangUp) }
        case .streaming(let exchange):
            // The client may have only finished sending, and gets the end of its stream.
            if event.isHungUp { return expire(connection, exchange, .hangUp) }
            if event.isWritable { resumeLater(connection) }
        case .answering:
            if event.isWritable { resumeLater(connection) }
        case .keepAliveIdle:
            // The socket may report room for an answer that it has taken in the meantime: that is no reason to end it.
            if event.isReadable || event.isHungUp { handBack(connection) }
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
        if !isSending, due <= now { noteSilent(exchange) }
        context.alarms.set(.exchange(connection.number), at: due > now ? due : now + connection.heartbeat)
    }

    func fail(_ connection: ClientConnection) {
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

    func expire(_ connection: ClientConnection, _ exchange: Exchange, _ reason: Expiry) {
        guard let response = context.handlers.end(exchange, reason) else { return }
        if case .streaming = connection.phase {
            write(StreamChunk(response.body, isLast: true), to: connection, exchange)
        } else {
            answer(connection, WireResponse(response))
        }
    }
}
