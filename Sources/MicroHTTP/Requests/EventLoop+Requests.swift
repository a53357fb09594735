import CMicroHTTPD
import Glibc
import HTTPMessages
import HTTPTypes

extension EventLoop {
    // MARK: Connections

    func connectionStarted(_ handle: OpaquePointer) -> ClientConnection {
        context.hasProgressed = true
        let connection = ClientConnection(handle, now: context.time())
        let returning = parked.returning.take()
        if let returning {
            connection.consumedCount = returning.consumedCount
            context.clients.remove(returning.client)
        } else {
            context.gauges.connections.add(1)
        }
        context.clients.add(connection.client)
        postponed.works(for: connection.client)
        let configuration = context.configuration
        let proxies = configuration.trustedProxies
        if !proxies.isEmpty { connection.isProxy = proxies.trusts(connection.isLocal ? nil : connection.client) }
        let isOver =
            context.gauges.connections.value > configuration.connectionsMax && returning == nil
            && !open.makeRoom(for: connection.client)
        if isOver { connection.overCapacitySince = context.time() } else { idle.note(connection) }
        open.add(connection)
        return connection
    }

    func connectionClosed(_ connection: ClientConnection) {
        postponed.forget(connection)
        // The loop has the socket of a parked connection, which counts on.
        guard !connection.isParked else { return }
        connection.isClosed = true
        open.remove(connection)
        // To close a socket with unread input resets the connection, and the client may lose its refusal.
        if connection.mustDiscard { microhttpd_discard_input(connection.descriptor) }
        if connection.isInFlight { endRequest(of: connection) }
        context.forget(connection.client)
    }

    // MARK: Heads and bodies

    /// libmicrohttpd decodes it in place afterwards.
    func lineReceived(_ target: UnsafePointer<CChar>?, on connection: ClientConnection) {
        postponed.works(for: connection.client)
        connection.target.removeAll(keepingCapacity: true)
        if connection.receivingSince == nil { connection.receivingSince = context.time() }
        // Of a head that never becomes complete, and of the framing of a body, the loop learns nothing more.
        if connection.idleCheck == .none { idle.note(connection) }
        guard let target else { return }
        connection.target.append(contentsOf: UnsafeRawBufferPointer(start: target, count: strlen(target)))
        connection.targetEnd = target + connection.target.count
    }

    /// Returns false where libmicrohttpd closes the connection, which an answer in this call does, too (Libmicrohttpd
    /// page, 6).
    private func readHead(
        of connection: ClientConnection, _ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>
    ) -> Bool {
        context.hasProgressed = true
        connection.phase = .receiving
        connection.isInFlight = true
        context.inFlightCount += 1
        do throws(Problem) {
            guard isStrict || connection.targetEnd.map({ $0 + 1 == version }) ?? false else {
                throw .malformed("the request target holds a byte that must be percent-encoded")
            }
            guard
                microhttpd_head(
                    connection.handle, method, connection.target, connection.target.count, version, !isStrict,
                    received.head)
            else { throw .malformed("a line of the head is not of the form name, colon, value, CR LF") }
            connection.framing = try RequestScreening.framing(
                isChunked: heads.read(received, of: connection).isChunked, declared: received.declaredBytes,
                bodyBytesMax: context.configuration.bodyBytesMax)
            // Below 1.0, a bare line feed ends a line of chunks, where a proxy in front may find another end.
            guard isStrict || connection.framing != .chunked else {
                throw Problem(
                    .lengthRequired, "length-required",
                    "a chunked body needs libmicrohttpd 1.0 or later at this server; send it with its Content-Length")
            }
            connection.bodyBytes = 0
            switch connection.framing {
            case .none: connection.consumedCount? += microhttpd_head_size(connection.handle)
            case .declared(let count): connection.consumedCount? += microhttpd_head_size(connection.handle) + count
            case .chunked: connection.consumedCount = nil
            }
            return true
        } catch {
            // A client that does not wait for `100 Continue` is sending the body.
            if error.status == .contentTooLarge, connection.head?.head[.expect] == nil {
                open.refuseBody(of: connection, error)
                return true
            }
            context.gauges.refused.add(1)
            var response = context.handlers.refuse(
                error, connection.head.map { Request($0.head, connection.own, client: connection.requestClient) })
            response.endsConnection = true
            connection.mustDiscard = true
            return send(response, on: connection)
        }
    }

    /// Takes the last piece in any case: 0.9.75 calls again for a piece that stays only when more arrives.
    ///
    /// A piece of a chunked body may be the last one, and 1.0.1 drops it when the client has finished sending.
    private func postpones(_ count: Int, of connection: ClientConnection) -> Bool {
        guard !connection.isRefused else { return false }
        let isLast =
            switch (connection.phase, connection.framing) {
            case (.discarding(let left), _) where count >= left: true
            case (_, .declared(let declared)): connection.bodyBytes + count >= declared
            default: true
            }
        guard !isLast, connection.leavesCount < Self.leavesMax, postponed.postponesPart(of: connection.client) else {
            connection.leavesCount = 0
            postponed.works(for: connection.client)
            return false
        }
        connection.leavesCount += 1
        return true
    }

    /// Bounds how often in a row a piece stays, so that each upload goes on.
    private static let leavesMax = 16

    private func take(_ piece: UnsafeRawBufferPointer, of connection: ClientConnection) -> Bool {
        context.hasProgressed = true
        idle.note(connection)
        let earlierCount = connection.bodyBytes
        connection.bodyBytes += piece.count
        if case .discarding(let left) = connection.phase {
            connection.phase = .discarding(bytesLeft: left - piece.count)
            return piece.count < left
        }
        switch connection.framing {
        case .declared(let count):
            if let problem = connection.append(piece, declared: count - earlierCount, in: context) {
                open.refuseBody(of: connection, problem)
            }
        case .chunked:
            if let problem = connection.append(piece, declared: 0, in: context) {
                open.refuseBody(of: connection, problem)
            }
        case .none:
            // libmicrohttpd has found a body where this server has found none.
            return false
        }
        return true
    }

    // MARK: Requests

    /// Returns false where libmicrohttpd closes the connection; it calls with the head, each piece of the body, and
    /// then an empty piece in each iteration until there is an answer or a suspension (Libmicrohttpd page, 21).
    ///
    /// A piece is taken whole, or stays in the buffer, and then nothing more is read for the connection.
    func advance(
        _ connection: ClientConnection, method: UnsafePointer<CChar>, version: UnsafePointer<CChar>,
        _ piece: UnsafeRawBufferPointer, left: inout Int
    ) -> Bool {
        if !piece.isEmpty, postpones(piece.count, of: connection) { return true }
        left = 0
        guard !connection.isRefused else { return false }
        switch connection.phase {
        case .idle: return readHead(of: connection, method, version)
        case .receiving where !piece.isEmpty, .discarding where !piece.isEmpty: return take(piece, of: connection)
        case .receiving, .complete:
            connection.phase = .complete
            connection.receivingSince = nil
            return postponed.postpones(connection) || receive(connection)
        case .held(let exchange):
            if let response = exchange.takeWireResponse() {
                postponed.works(for: connection.client)
                pending.remove(exchange)
                // Where libmicrohttpd refuses the answer, the exchange is not removed again.
                connection.phase = .complete
                return response.isLong
                    ? answer(connection, with: context.admitted(response)) : queue(response, on: connection)
            }
            postponed.rests()
            if connection.awaitsParking, parked.park(connection, exchange, as: .waiting(exchange)) {
                pending.remove(exchange)
                return false
            }
            if let until = connection.heldUntil, until > context.time() { return true }
            pending.suspend(connection, exchange)
            return true
        case .resumed(let exchange):
            guard let request = connection.deferred.take() else { return false }
            return handle(request, exchange, of: context.handlers.generation(), on: connection)
        case .answered(let response):
            return response.isLong ? answer(connection, with: response) : queue(response, on: connection)
        case .discarding, .suspended, .queued, .waiting, .streaming, .answering, .keepAliveIdle, .closed:
            // The body that is discarded has ended. In the other phases libmicrohttpd does not call; if it did, its
            // state and ours would differ.
            return false
        }
    }

    func requestCompleted(_ connection: ClientConnection) {
        context.hasProgressed = true
        connection.receivingSince = nil
        (connection.idleSince, connection.askedAt) = (context.time(), context.time())
        endRequest(of: connection)
        postponed.rests()
        switch connection.phase {
        case .held(let exchange), .suspended(let exchange):
            // The connection broke before the answer; libmicrohttpd gives no other notification of it (3).
            pending.remove(exchange)
            if exchange.fire() { _ = context.handlers.expire(exchange, .hangUp) }
        case .resumed(let exchange):
            if exchange.fire() { _ = context.handlers.expire(exchange, .hangUp) }
        case .idle, .receiving, .discarding, .complete, .answered, .queued: break
        case .waiting, .streaming, .answering, .keepAliveIdle, .closed: return
        }
        connection.phase = .idle
        idle.note(connection)
    }

    private func endRequest(of connection: ClientConnection) {
        if connection.isInFlight { context.inFlightCount -= 1 }
        connection.isInFlight = false
        connection.deferred = nil
        if connection.target.capacity > 256 { connection.target = [] }
        connection.awaitsParking = false
        (connection.head, connection.own, connection.framing) = (nil, nil, .none)
        if connection.hasBody { connection.releaseBody() }
        // The loop answers a parked connection, and holds what its socket has not taken.
        guard !connection.isParked else { return }
        connection.counted = nil
        connection.holding = nil
    }

    private func receive(_ connection: ClientConnection) -> Bool {
        guard let head = connection.head else { return false }
        context.hasProgressed = true
        // Behind the handler, which may report the requests before this one.
        defer { context.gauges.requests.add(1) }
        connection.counted = CountedRequest(method: head.methodIndex, since: context.time())
        let generation = context.handlers.generation()
        // While the server stops, handlers answer differently.
        if let answer = head.answer(of: generation, to: connection.own), !context.stage.isStopping,
            connection.body.isEmpty
        {
            return queue(answer, on: connection)
        }
        let body = Swift.exchange(&connection.body, with: [])
        let request = Request(head.head, connection.own, body: body, client: connection.requestClient)
        lastNumber += numberStride
        let exchange = Exchange(
            id: lastNumber, client: connection.requestClient, sink: mailbox, body: connection.reservation.take())
        return handle(request, exchange, of: generation, on: connection)
    }

    private func handle(
        _ request: Request, _ exchange: Exchange, of generation: UInt64, on connection: ClientConnection
    ) -> Bool {
        context.hasReceived = true
        switch context.handlers.receive(request, exchange) {
        case .reusable(var response):
            exchange.complete(&response)
            guard exchange.fire() else { return false }
            let answer = WireResponse(consume response)
            connection.head?.keep(answer, of: generation, to: request.own)
            return queue(context.admitted(answer), on: connection)
        case .now(var response):
            // A handler that has also answered through the exchange has its answer in the mailbox.
            guard exchange.fire() else { return hold(connection, exchange, atMost: nil) }
            exchange.complete(&response)
            return send(response, on: connection)
        case .working(let time):
            return hold(connection, exchange, atMost: time)
        case .deferred:
            connection.deferred = request
            return hold(connection, exchange, atMost: nil)
        case .workingLong:
            connection.isOfWork = true
            return park(connection, exchange, atMost: nil)
        case .waiting(let time):
            connection.isOfWork = false
            return park(connection, exchange, atMost: time)
        case .streaming(var response, let heartbeat):
            exchange.complete(&response)
            return beginStream(connection, exchange, response, heartbeat: heartbeat)
        }
    }

    // MARK: Replies

    private func hold(_ connection: ClientConnection, _ exchange: Exchange, atMost time: Duration?) -> Bool {
        if context.stage.refusesWork, exchange.fire() {
            return send(context.handlers.stop(exchange), on: connection)
        }
        pending.hold(connection, exchange, atMost: time)
        return true
    }

    /// Holds the connection where there is no descriptor for it, until there is one.
    private func park(_ connection: ClientConnection, _ exchange: Exchange, atMost time: Duration?) -> Bool {
        let isOver = connection.isOfWork ? context.stage.refusesWork : context.stage.isStopping
        if isOver, exchange.fire() { return send(context.handlers.stop(exchange), on: connection) }
        guard parked.park(connection, exchange, as: .waiting(exchange)) else {
            connection.awaitsParking = true
            return hold(connection, exchange, atMost: time)
        }
        if let time { context.setAlarm(.exchange(exchange.id), after: time) }
        return false
    }

    private func beginStream(
        _ connection: ClientConnection, _ exchange: Exchange, _ response: Response, heartbeat: Duration
    ) -> Bool {
        if context.stage.isStopping, exchange.fire() {
            return send(context.handlers.stop(exchange), on: connection)
        }
        guard parked.beginStream(connection, exchange, response, heartbeat: heartbeat) else {
            // The handler gives up the exchange, and the client gets the answer of a connection over capacity.
            if exchange.fire() { _ = context.handlers.expire(exchange, .hangUp) }
            var response = context.handlers.refuse(.connectionsExhausted, nil)
            response.endsConnection = true
            return send(response, on: connection)
        }
        return false
    }

    private func send(_ response: Response, on connection: ClientConnection) -> Bool {
        queue(context.admitted(WireResponse(response)), on: connection)
    }

    /// A long answer keeps within the client's share of an iteration: many may have waited for one value.
    private func answer(_ connection: ClientConnection, with response: WireResponse) -> Bool {
        guard response.isLong, postponed.postponesPart(of: connection.client) else {
            return queue(response, on: connection)
        }
        if connection.holding == nil { connection.holding = response.hold(in: context.memory, for: connection.client) }
        connection.phase = .answered(response)
        return true
    }

    /// Call it inside the access handler only.
    private func queue(_ response: WireResponse, on connection: ClientConnection) -> Bool {
        context.hasProgressed = true
        if response.endsConnection || context.stage.isStopping { connection.isLastRequest = true }
        guard response.queue(on: connection.handle, isClosing: connection.isLastRequest) else { return false }
        connection.phase = .queued
        if response.isLong, connection.head?.head.method != .head {
            postponed.sends(response.bodyCount, to: connection.client)
            connection.holding = response.hold(in: context.memory, for: connection.client)
            postponed.rests()
        }
        if let counted = connection.counted.take() { context.gauges.answers.count(counted, response.statusCode) }
        return true
    }
}
