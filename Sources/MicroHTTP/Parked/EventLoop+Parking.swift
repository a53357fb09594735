import CMicroHTTPD
import Glibc
import HTTPMessages
import HTTPTypes

/// Requests that wait, without libmicrohttpd.
///
/// A connection suspended in libmicrohttpd keeps its memory pool and is walked over at each resumption of any other
/// (Libmicrohttpd page, 8). So a request that waits takes its socket with it: the descriptor is duplicated and the
/// access handler says no, at which libmicrohttpd forgets the connection and closes its own descriptor; with
/// `MHD_USE_TURBO` it does so without shutting the socket down. The answer is written here, and when the client's next
/// request comes the socket is handed back with `MHD_add_connection`.
extension EventLoop {
    /// Takes the connection of a request that waits from libmicrohttpd; false, which is what libmicrohttpd needs to be
    /// told, or true if that has to wait for a later pass: libmicrohttpd closes its descriptors at the end of each, so
    /// that thousands who come at once may need more of them for a moment than there are.
    func park(
        _ connection: ClientConnection, _ exchange: Exchange, _ request: ResponseOptions,
        atMost time: Duration?
    ) -> Bool {
        if stage.refusesWaiting, exchange.fire() {
            return send(handlers.stop(exchange), on: connection)
        }
        if let time { alarms.set(.exchange(exchange.id), at: timeOfIteration() + time) }
        guard parkSocket(connection, exchange, request) else {
            connection.parkingOptions = request
            return hold(connection, exchange, atMost: nil)
        }
        return false
    }

    /// Parks a connection that has been held for want of a descriptor; false if there is still none.
    func parkHeld(_ connection: ClientConnection, _ exchange: Exchange) -> Bool {
        guard let request = connection.parkingOptions else { return false }
        let phase = connection.phase
        guard parkSocket(connection, exchange, request) else { return false }
        // The books know it by the phase that it was in.
        connection.phase = phase
        release(connection)
        connection.phase = .parked
        return true
    }

    private func parkSocket(_ connection: ClientConnection, _ exchange: Exchange, _ request: ResponseOptions) -> Bool {
        let closes = request.endsConnection || hasMoreInput(connection)
        guard
            take(connection, number: exchange.id, request, closesAfterAnswer: closes, phase: .waiting(exchange)) != nil
        else { return false }
        statistics.waiting += 1
        return true
    }

    /// Begins a stream; the result is ``park(_:_:_:atMost:)``'s.
    func beginStream(
        _ connection: ClientConnection, _ exchange: Exchange, _ request: ResponseOptions, _ response: Response,
        heartbeat: Duration
    ) -> Bool {
        if stage.refusesWaiting, exchange.fire() {
            return send(handlers.stop(exchange), on: connection)
        }
        guard
            let parked = take(
                connection, number: exchange.id, request, closesAfterAnswer: true, phase: .streaming(exchange, nil))
        else { return refuseForWantOfDescriptors(connection, exchange) }
        statistics.waiting += 1
        parked.heartbeat = heartbeat
        microhttpd_prepare_stream(parked.descriptor)
        alarms.set(.silence(parked.number), at: timeOfIteration() + heartbeat)
        write(WireResponse.stream(response, isHead: request.isHead), to: parked, exchange)
        return false
    }

    private func refuseForWantOfDescriptors(_ connection: ClientConnection, _ exchange: Exchange) -> Bool {
        // Whoever holds the exchange lets go of it; the client is told what a client above the cap is told.
        if exchange.fire() { _ = handlers.expire(exchange, .hangUp) }
        var response = handlers.refuse(.connectionsExhausted, nil)
        response.connection = .close
        return send(response, on: connection)
    }

    private func take(
        _ connection: ClientConnection, number: UInt64, _ request: ResponseOptions, closesAfterAnswer: Bool,
        phase: ParkedConnection.Phase
    ) -> ParkedConnection? {
        iterationMoved = true
        let descriptor = fcntl(connection.descriptor, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { return nil }
        guard poller.watch(descriptor, number: number) else {
            Glibc.close(descriptor)
            return nil
        }
        connection.phase = .parked
        let taken = ParkedConnection(
            number: number, descriptor: descriptor, isHead: request.isHead, closesAfterAnswer: closesAfterAnswer,
            consumedCount: connection.consumedCount ?? 0, phase: phase, now: timeOfIteration())
        parked[number] = taken
        return taken
    }

    /// Whether libmicrohttpd has, or may have, read more from a connection than its requests so far: what it has read
    /// is lost with it, so the client has to ask again on another connection (RFC 9112, section 9.3.2).
    private func hasMoreInput(_ connection: ClientConnection) -> Bool {
        guard let consumed = connection.consumedCount else { return true }
        return microhttpd_bytes_read(connection.descriptor) != Int64(consumed)
    }

    // MARK: Answers

    /// Answers a request that waits, unless its client has gone.
    func answer(_ connection: ParkedConnection, _ response: WireResponse) {
        guard case .waiting = connection.phase else { return }
        statistics.waiting -= 1
        let (bytes, isLast) = response.bytes(
            closing: connection.closesAfterAnswer || stage.isStopping, isHead: connection.isHead)
        send(Outgoing(bytes), isLast: isLast, on: connection)
    }

    private func send(_ outgoing: Outgoing, isLast: Bool, on connection: ParkedConnection) {
        var outgoing = outgoing
        switch push(&outgoing, to: connection) {
        case .done where isLast: closeGracefully(connection)
        case .done: rest(connection)
        case .full, .paused: connection.phase = .answering(outgoing, isLast: isLast)
        case .broken: close(connection)
        }
    }

    /// Gives a stream bytes, after those that are on their way.
    func write(_ piece: [UInt8], to connection: ParkedConnection, _ exchange: Exchange, isLast: Bool = false) {
        guard case .streaming(_, let present) = connection.phase else { return }
        if isLast { statistics.waiting -= 1 }
        guard present == nil else {
            // Only a stream's end comes while something is on its way: it would come too late for this client.
            if isLast { close(connection) }
            return
        }
        var outgoing = Outgoing(piece)
        switch push(&outgoing, to: connection) {
        case .done where isLast: closeGracefully(connection)
        case .done: writable.append(exchange)
        case .full where isLast, .paused where isLast: connection.phase = .answering(outgoing, isLast: true)
        case .full, .paused: connection.phase = .streaming(exchange, outgoing)
        case .broken: fail(connection)
        }
    }

    /// Sends bytes until the socket is full or the connection has had its share of this iteration, and arranges for what
    /// is left: an event reports room, or a later iteration continues.
    private func push(_ outgoing: inout Outgoing, to connection: ParkedConnection) -> Outgoing.Progress {
        let before = outgoing.sentCount
        let progress = outgoing.send { bytes in
            let count = Glibc.send(
                connection.descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            if count >= 0 { return .bytes(count) }
            return errno == EAGAIN ? .none : errno == EINTR ? .bytes(0) : .broken
        }
        switch progress {
        case .done:
            connection.lastSent = timeOfIteration()
        case .full:
            if outgoing.sentCount > before { connection.lastSent = .now }
            poller.watchRoom(connection.descriptor, number: connection.number)
            limitReading(of: connection)
        case .paused:
            connection.lastSent = timeOfIteration()
            connection.isPaused = true
            paused.append(connection.number)
            limitReading(of: connection)
        case .broken:
            break
        }
        return progress
    }

    /// Sets the alarm that ends a connection whose client does not read its answer; a stream has its heartbeat for that.
    private func limitReading(of connection: ParkedConnection) {
        guard case .waiting = connection.phase else { return }
        alarms.set(.parked(connection.number), at: .now + configuration.idleTimeout)
    }

    /// Continues to send on paused connections.
    func resumePaused() {
        guard !paused.isEmpty else { return }
        for number in paused.next() {
            guard let connection = parked[number] else { continue }
            connection.isPaused = false
            continueSending(connection)
        }
    }

    private func continueSending(_ connection: ParkedConnection) {
        switch connection.phase {
        case .streaming(let exchange, var outgoing?):
            switch push(&outgoing, to: connection) {
            case .done:
                connection.phase = .streaming(exchange, nil)
                writable.append(exchange)
            case .full, .paused: connection.phase = .streaming(exchange, outgoing)
            case .broken: fail(connection)
            }
        case .answering(let outgoing, let isLast):
            send(outgoing, isLast: isLast, on: connection)
        case .waiting, .streaming, .keepAliveIdle, .closed:
            break
        }
    }

    // MARK: Events

    /// Something has happened on a parked connection.
    func parkedEvent(_ event: Poller.Event) {
        guard let connection = parked[event.number] else { return }
        if event.isReadable { connection.hasInput = true }
        if event.isHungUp { connection.hasHungUp = true }
        if event.isBroken { return fail(connection) }
        switch connection.phase {
        case .waiting(let exchange):
            if event.isHungUp { expire(connection, exchange, .hangUp) }
        case .streaming:
            if event.isHungUp { return fail(connection) }
            if event.isWritable, !connection.isPaused { continueSending(connection) }
        case .answering:
            if event.isWritable, !connection.isPaused { continueSending(connection) }
        case .keepAliveIdle: resume(connection)
        case .closed: break
        }
    }

    /// Ends a wait or a stream in place of whoever holds its exchange, unless that is being done.
    func expire(_ connection: ParkedConnection, _ exchange: Exchange, _ reason: Expiry) {
        guard let response = end(exchange, reason) else { return }
        if case .streaming = connection.phase {
            write(response.body, to: connection, exchange, isLast: true)
        } else {
            answer(connection, WireResponse(response, closing: false))
        }
    }

    /// The client of a parked connection is gone.
    private func fail(_ connection: ParkedConnection) {
        switch connection.phase {
        case .waiting(let exchange), .streaming(let exchange, _):
            statistics.waiting -= 1
            close(connection)
            if exchange.fire() { _ = handlers.expire(exchange, .hangUp) }
        case .answering, .keepAliveIdle: close(connection)
        case .closed: break
        }
    }

    /// The time of a parked connection is up: of its wait, or of its silence.
    func parkedAlarm(_ number: UInt64, _ subject: Alarms.Subject) {
        guard let connection = parked[number] else { return }
        switch (connection.phase, subject) {
        case (.waiting(let exchange), .exchange): expire(connection, exchange, .deadline)
        case (.streaming(let exchange, let outgoing), .silence):
            let now = ContinuousClock.now
            let due = connection.lastSent + connection.heartbeat
            if outgoing != nil, connection.lastSent + configuration.idleTimeout <= now { return fail(connection) }
            if outgoing == nil, due <= now { silent.append(exchange) }
            alarms.set(.silence(number), at: due > now ? due : now + connection.heartbeat)
        case (.answering, .parked), (.keepAliveIdle, .parked):
            // What has moved since is given its time from there.
            let due = connection.lastSent + configuration.idleTimeout
            if due <= .now { close(connection) } else { alarms.set(.parked(number), at: due) }
        case (.waiting, _), (.streaming, _), (.answering, _), (.keepAliveIdle, _), (.closed, _): break
        }
    }

    // MARK: Between two requests

    private func rest(_ connection: ParkedConnection) {
        connection.phase = .keepAliveIdle
        if connection.hasInput || connection.hasHungUp { return resume(connection) }
        alarms.set(.parked(connection.number), at: timeOfIteration() + configuration.idleTimeout)
    }

    /// Hands a connection back to libmicrohttpd, which reads the next request, or closes it if there is none.
    private func resume(_ connection: ParkedConnection) {
        guard connection.hasInput, !stage.isStopping else { return close(connection) }
        poller.unwatch(connection.descriptor)
        parked[connection.number] = nil
        connection.phase = .closed
        statistics.connections -= 1
        returning = connection
        defer { returning = nil }
        if !daemon.add(connection.descriptor) { handlers.debugLog("a client's next request could not be taken") }
    }

    /// Closes behind an answer: the client may still be reading it.
    private func closeGracefully(_ connection: ParkedConnection) {
        // Closing with something unread would reset the connection and take the answer with it.
        shutdown(connection.descriptor, Int32(SHUT_WR))
        microhttpd_discard_input(connection.descriptor)
        close(connection)
    }

    func close(_ connection: ParkedConnection) {
        poller.unwatch(connection.descriptor)
        Glibc.close(connection.descriptor)
        connection.phase = .closed
        parked[connection.number] = nil
        statistics.connections -= 1
    }
}

/// What of a request decides the form of its answer.
struct ResponseOptions {
    /// Whether the body is left out.
    var isHead: Bool
    /// Whether the client wants the connection to end with the answer, or can read the answer only if it does.
    var endsConnection: Bool

    init(_ request: Request, isVersion10: Bool) {
        isHead = request.method == .head
        let wantsClose = request.fields[values: .connection].contains { value in
            value.split(separator: ",").contains { $0.trimmed.lowercased() == "close" }
        }
        endsConnection = isVersion10 || wantsClose
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var text = self
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return text
    }
}
