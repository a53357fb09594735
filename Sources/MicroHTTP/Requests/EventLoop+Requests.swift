import CMicroHTTPD
import HTTPMessages

/// How far a request has come, call by call of libmicrohttpd.
extension EventLoop {
    func connectionStarted(_ handle: OpaquePointer) -> ClientConnection {
        iterationMoved = true
        statistics.connections += 1
        if let returning {
            return ClientConnection(handle: handle, overCapacity: nil, consumedCount: returning.consumedCount)
        }
        guard statistics.connections > configuration.connectionsMax else {
            return ClientConnection(handle: handle, overCapacity: nil, consumedCount: 0)
        }
        let number = nextNumber()
        let connection = ClientConnection(handle: handle, overCapacity: number, consumedCount: 0)
        overCapacity[number] = connection
        alarms.set(.overCapacity(number), at: timeOfIteration() + .seconds(2))
        return connection
    }

    func connectionClosed(_ connection: ClientConnection) {
        // A parked connection goes on; only libmicrohttpd's part of it has ended.
        if case .parked = connection.phase { return }
        statistics.connections -= 1
        if let number = connection.overCapacity { overCapacity[number] = nil }
    }

    func lineReceived(_ target: UnsafePointer<CChar>?, on connection: ClientConnection) {
        iterationMoved = true
        inFlightCount += 1
        connection.target.take(target)
        connection.phase = .lineReceived
    }

    /// One call of the access handler: first with the head, then with each piece of the body, then with an empty piece
    /// until there is an answer; false closes the connection.
    func advance(
        _ connection: ClientConnection, method: UnsafePointer<CChar>, version: UnsafePointer<CChar>,
        piece: UnsafeRawBufferPointer
    ) -> Bool {
        switch connection.phase {
        case .lineReceived:
            return readHead(connection, method: method, version: version)
        case .reading:
            if piece.isEmpty { return receive(connection) }
            take(piece, on: connection)
            return true
        case .draining(let bytesLeft):
            // An answer cannot be queued while the body comes in (Libmicrohttpd page, 21).
            if piece.isEmpty { return refuse(connection, .bodyTooLarge(bytesMax: configuration.bodyBytesMax)) }
            iterationMoved = true
            connection.phase = .draining(bytesLeft: bytesLeft - piece.count)
            return piece.count <= bytesLeft
        case .held(let exchange):
            if parkHeld(connection, exchange) { return false }
            if let until = connection.heldUntil, until > timeOfIteration() { return true }
            suspend(connection, exchange)
            return true
        case .answered(let response):
            return queue(response, on: connection)
        case .idle, .suspended, .queued, .parked:
            // libmicrohttpd calls in none of these; should it ever, the connection is not to be trusted.
            return false
        }
    }

    func requestCompleted(_ connection: ClientConnection) {
        iterationMoved = true
        inFlightCount -= 1
        connection.request = nil
        connection.parkingOptions = nil
        connection.head = nil
        connection.body = []
        switch connection.phase {
        case .held(let exchange), .suspended(let exchange):
            // The connection broke before the answer: Libmicrohttpd page, 3 makes this the only notice of it.
            release(connection)
            if exchange.fire() { _ = handlers.expire(exchange, .hangUp) }
        case .parked: return
        case .idle, .lineReceived, .reading, .draining, .answered, .queued:
            break
        }
        connection.phase = .idle
    }

    /// The first call, with all of the head.
    ///
    /// Answering here closes the connection (Libmicrohttpd page, 6) and saves an upload that waits for `100 Continue`
    /// (22), so only refusals are answered here.
    private func readHead(
        _ connection: ClientConnection, method: UnsafePointer<CChar>, version: UnsafePointer<CChar>
    ) -> Bool {
        let headCount = microhttpd_head_size(connection.handle)
        let isVersion10 = RequestReader.version(version) == .http10
        connection.isVersion10 = isVersion10
        if connection.overCapacity == nil,
            let head = heads.entry(of: connection.handle, method: method, target: connection.target, version: version)
        {
            connection.head = head
            connection.consumed(headCount, head.framing)
            connection.phase = .reading
            return true
        }
        do throws(TransportFault) {
            let request = try reader.head(
                of: connection.handle, target: connection.target, method: method, version: version,
                client: connection.client)
            connection.request = request
            guard connection.overCapacity == nil else { throw .connectionsExhausted }
            let framing = try RequestScreening.framing(
                of: request.fields, version: isVersion10 ? .http10 : .http11, bodyBytesMax: configuration.bodyBytesMax)
            connection.consumed(headCount, framing)
            connection.head = heads.store(request, framing)
            connection.phase = .reading
            return true
        } catch {
            return refuse(connection, error)
        }
    }

    private func take(_ piece: UnsafeRawBufferPointer, on connection: ClientConnection) {
        iterationMoved = true
        let count = connection.body.count + piece.count
        guard count <= configuration.bodyBytesMax else {
            connection.body = []
            connection.phase = .draining(bytesLeft: configuration.drainBytesMax)
            return
        }
        if connection.body.isEmpty, connection.bodyCountDeclared > 0 {
            // Not all of what the client promises: a promise costs it nothing.
            connection.body.reserveCapacity(min(connection.bodyCountDeclared, 64 << 10))
        }
        connection.body.append(contentsOf: piece)
    }

    private func receive(_ connection: ClientConnection) -> Bool {
        iterationMoved = true
        statistics.requests += 1
        let generation = handlers.generation()
        // Who stops has another answer to everything.
        if let answer = connection.head?.answer(of: generation), !stage.isStopping, connection.body.isEmpty {
            return queue(answer, on: connection)
        }
        guard var request = connection.request.take() ?? connection.head?.request(client: connection.client) else {
            return false
        }
        swap(&request.body, &connection.body)
        iterationReceived = true
        let exchange = Exchange(id: nextNumber(), client: connection.client, sink: mailbox)
        switch handlers.receive(request, exchange) {
        case .reusable(let response):
            guard exchange.fire(), let prepared = prepare(response) else { return false }
            if let head = connection.head, response.connection == .keep, !stage.isStopping {
                heads.store(prepared, response.body.count, of: generation, for: head)
            }
            return queue(prepared, on: connection)
        case .now(let response):
            guard exchange.fire() else {
                // It was answered through the exchange before: that answer is on its way.
                return hold(connection, exchange, atMost: nil)
            }
            return send(response, on: connection)
        case .working(let time):
            return hold(connection, exchange, atMost: time)
        case .waiting(let time):
            let options = ResponseOptions(request, isVersion10: connection.isVersion10)
            return park(connection, exchange, options, atMost: time)
        case .streaming(let response, let heartbeat):
            let options = ResponseOptions(request, isVersion10: connection.isVersion10)
            return beginStream(connection, exchange, options, response, heartbeat: heartbeat)
        }
    }

    private func refuse(_ connection: ClientConnection, _ fault: TransportFault) -> Bool {
        statistics.refused += 1
        var response = handlers.refuse(fault, connection.request)
        response.connection = .close
        return send(response, on: connection)
    }

    /// Answers inside the access handler.
    func send(_ response: Response, on connection: ClientConnection) -> Bool {
        queue(prepare(response), on: connection)
    }

    /// The response in libmicrohttpd's form; nil, with a debugLog, if it cannot be had.
    func prepare(_ response: Response) -> PreparedResponse? {
        let prepared = PreparedResponse(response, closing: stage.isStopping)
        if prepared == nil { handlers.debugLog("libmicrohttpd refused a response: no memory, or a forbidden field") }
        return prepared
    }

    private func queue(_ response: PreparedResponse?, on connection: ClientConnection) -> Bool {
        iterationMoved = true
        guard let response, response.queue(on: connection.handle) else { return false }
        connection.phase = .queued
        return true
    }
}

extension ClientConnection {
    /// Counts what a request takes up.
    fileprivate func consumed(_ headCount: Int, _ framing: BodyFraming) {
        bodyCountDeclared = 0
        switch framing {
        case .none: consumedCount = consumedCount.map { $0 + headCount }
        case .declared(let bytes):
            bodyCountDeclared = bytes
            consumedCount = consumedCount.map { $0 + headCount + bytes }
        case .chunked: consumedCount = nil
        }
    }
}
