import CMicroHTTPD
import Glibc
import HTTPMessages

extension EventLoop {
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
    func readHead(
        of connection: ClientConnection, _ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>
    ) -> Bool {
        context.hasProgressed = true
        connection.phase = .receiving
        connection.isInFlight = true
        context.inFlightCount += 1
        do throws(TransportFault) {
            try parseHead(of: connection, method, version)
            connection.bodyBytes = 0
            switch connection.framing {
            case .none: connection.consumedCount? += microhttpd_head_size(connection.handle)
            case .declared(let count): connection.consumedCount? += microhttpd_head_size(connection.handle) + count
            case .chunked: connection.consumedCount = nil
            }
            return true
        } catch {
            // A client that does not wait for `100 Continue` is sending the body.
            if case .bodyTooLarge = error, connection.head?.head[.expect] == nil {
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

    private func parseHead(
        of connection: ClientConnection, _ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>
    ) throws(TransportFault) {
        guard isStrict || connection.targetEnd.map({ $0 + 1 == version }) ?? false else {
            throw .malformed("the request target holds a byte that must be percent-encoded")
        }
        guard
            microhttpd_head(
                connection.handle, method, connection.target, connection.target.count, version, !isStrict, received.head
            )
        else { throw .malformed("a line of the head is not of the form name, colon, value, CR LF") }
        let head = try heads.read(received, of: connection)
        connection.framing = try RequestScreening.framing(
            isChunked: head.isChunked, declared: received.declaredBytes,
            bodyBytesMax: context.configuration.bodyBytesMax)
        // Below 1.0, a bare line feed ends a line of chunks, where a proxy in front may find another end.
        guard isStrict || connection.framing != .chunked else { throw .lengthRequired }
    }

    /// Takes the last piece in any case: 0.9.75 calls again for a piece that stays only when more arrives.
    ///
    /// A piece of a chunked body may be the last one, and 1.0.1 drops it when the client has finished sending.
    func postpones(_ count: Int, of connection: ClientConnection) -> Bool {
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

    func take(_ piece: UnsafeRawBufferPointer, of connection: ClientConnection) -> Bool {
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
            if let fault = connection.append(piece, declared: count - earlierCount, in: context) {
                open.refuseBody(of: connection, fault)
            }
        case .chunked:
            if let fault = connection.append(piece, declared: 0, in: context) {
                open.refuseBody(of: connection, fault)
            }
        case .none:
            // libmicrohttpd has found a body where this server has found none.
            return false
        }
        return true
    }
}
