import CMicroHTTPD
import Glibc
import HTTPMessages

/// The reading of a request, up to its last byte.
extension RequestReceiver {
    /// Copies the target of a request, which libmicrohttpd decodes in place afterwards.
    func lineReceived(_ target: UnsafePointer<CChar>?, on connection: ClientConnection) {
        connection.target.removeAll(keepingCapacity: true)
        guard let target else { return }
        connection.target.append(contentsOf: UnsafeRawBufferPointer(start: target, count: strlen(target)))
        connection.targetEnd = UInt(bitPattern: target) + UInt(connection.target.count)
        connection.lineSince = context.time()
    }

    /// Reads the head of a request, and refuses the request or waits for its body; returns false where libmicrohttpd closes
    /// the connection.
    func readHead(
        of connection: ClientConnection, _ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>
    ) -> Bool {
        context.noteProgress()
        connection.isInFlight = true
        context.inFlightCount += 1
        do throws(TransportFault) {
            try begin(try readFraming(of: connection, method, version), of: connection)
            return true
        } catch {
            // A client that sends on after its connection is closed could lose the answer.
            if case .bodyTooLarge = error, connection.head?.head[.expect] == nil {
                refuseBody(of: connection, error)
                return true
            }
            context.statistics.refused += 1
            var response = context.handlers.refuse(
                error, connection.head.map { Request($0.head, client: connection.requestClient) })
            response.connection = .close
            connection.mustDiscard = true
            return send(response, on: connection)
        }
    }

    private func readFraming(
        of connection: ClientConnection, _ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>
    ) throws(TransportFault) -> BodyFraming {
        guard isStrict || UInt(bitPattern: version) == connection.targetEnd + 1 else {
            throw .malformed("the request target holds a byte that must be percent-encoded")
        }
        let count = connection.target.withUnsafeBytes { target in
            microhttpd_head(
                connection.handle, method, target.baseAddress?.assumingMemoryBound(to: CChar.self), target.count, version,
                !isStrict, headBuffer.baseAddress, headBuffer.count)
        }
        guard count > 0 else { throw .malformed("a line of the head is not of the form name, colon, value, CR LF") }
        return try heads.read(UnsafeRawBufferPointer(start: headBuffer.baseAddress, count: count), of: connection)
    }

    /// Counts the bytes of a request whose head is accepted.
    private func begin(_ framing: BodyFraming, of connection: ClientConnection) throws(TransportFault) {
        switch framing {
        case .none:
            connection.input.position = .complete
            connection.consumedCount? += microhttpd_head_size(connection.handle)
        case .declared(let count):
            connection.input.position = .declared(bytesLeft: count)
            connection.consumedCount? += microhttpd_head_size(connection.handle) + count
        case .chunked:
            // Below 1.0, the end of a chunked body can be hidden from a proxy in front.
            guard isStrict else { throw .unsupportedTransferCoding }
            connection.input.position = .chunked(ChunkFraming())
            connection.consumedCount = nil
        }
    }

    /// Takes a piece of the body; returns false where libmicrohttpd closes the connection.
    func take(_ piece: UnsafeRawBufferPointer, of connection: ClientConnection) -> Bool {
        context.noteProgress()
        connection.input.bodyBytes += piece.count
        idle.note(connection)
        switch connection.input.position {
        case .discarding(let left):
            connection.input.position = .discarding(bytesLeft: left - piece.count)
            return piece.count < left
        case .declared(let left):
            if let fault = connection.append(piece, declared: left, in: context) {
                refuseBody(of: connection, fault)
            } else {
                connection.input.position = .declared(bytesLeft: left - piece.count)
            }
        case .chunked:
            if let fault = connection.append(piece, declared: 0, in: context) { refuseBody(of: connection, fault) }
        case .head, .complete, .ended:
            // The head has no body: libmicrohttpd and this server do not agree.
            return false
        }
        return true
    }

    private func refuseBody(of connection: ClientConnection, _ fault: TransportFault) {
        connection.releaseBody(in: context)
        connection.input.position = .discarding(bytesLeft: context.configuration.drainBytesMax)
        connection.mustDiscard = true
        open.refuseBody(of: connection, fault)
    }
}
