import CMicroHTTPD
import Glibc
import HTTPMessages

/// The way of a request from the socket to libmicrohttpd: head and body are read here, by the letter of RFC 9112.
///
/// libmicrohttpd gets a request only when all of it has come and has been accepted, in the one spelling of
/// ``RequestSpelling``. So the version of libmicrohttpd does not decide what is a request, and no byte of a client reaches it.
/// It gets one request at a time: what has come behind it waits in ``RequestInput``.
///
/// Only the loop thread uses it.
final class RequestIntake {
    /// What has become of received bytes.
    enum Progress {
        /// A request is complete, and libmicrohttpd can have it.
        case complete
        /// More bytes are needed.
        case incomplete
        /// The request is refused.
        case refused(TransportFault)
        /// Its body is refused, and the rest of it is discarded.
        case bodyRefused(TransportFault)
        /// All has been discarded that may be.
        case ended
    }

    private let context: LoopContext
    private var heads: RequestHeads

    init(_ context: LoopContext) {
        self.context = context
        heads = RequestHeads(context.configuration)
    }

    /// Takes the bytes that wait behind the last request.
    func takeUnread(of connection: ClientConnection) -> Progress {
        let held = exchange(&connection.input.held, with: [])
        return held.withUnsafeBytes { take($0, of: connection) }
    }

    /// Takes bytes that have been received.
    func take(_ bytes: UnsafeRawBufferPointer, of connection: ClientConnection) -> Progress {
        switch connection.input.position {
        case .head:
            if connection.input.held.isEmpty { return takeHead(bytes, of: connection) }
            connection.input.held += bytes
            let held = exchange(&connection.input.held, with: [])
            return held.withUnsafeBytes { takeHead($0, of: connection) }
        case .declared, .chunked, .discarding:
            return takeBody(bytes, of: connection)
        case .complete, .ended:
            preconditionFailure("nothing is received while libmicrohttpd has a request, or behind the last one")
        }
    }

    // MARK: The head

    private func takeHead(_ received: UnsafeRawBufferPointer, of connection: ClientConnection) -> Progress {
        let start = connection.input.scannedLine ?? 0
        let emptyCount = start == 0 ? HeadScan.emptyLinesCount(received) : 0
        let bytes = UnsafeRawBufferPointer(rebasing: received[emptyCount...])
        connection.input.scannedLine = nil
        do throws(TransportFault) {
            switch try HeadScan.scan(bytes, from: start) {
            case .incomplete(let lineStart):
                if let fault = HeadScan.fault(inBeginning: bytes, lineStart: lineStart, context.configuration) {
                    throw fault
                }
                connection.input.held = Array(bytes)
                connection.input.scannedLine = lineStart
                return .incomplete
            case .complete(let count):
                let framing = try heads.read(UnsafeRawBufferPointer(rebasing: bytes[..<count]), of: connection)
                connection.isInFlight = true
                context.inFlightCount += 1
                return begin(framing, of: connection, rest: UnsafeRawBufferPointer(rebasing: bytes[count...]))
            }
        } catch {
            // A client that sends on after its connection is closed could lose the answer.
            if case .bodyTooLarge = error, connection.head?.head[.expect] == nil {
                return refuseBody(of: connection, error)
            }
            return .refused(error)
        }
    }

    private func begin(
        _ framing: BodyFraming, of connection: ClientConnection, rest: UnsafeRawBufferPointer
    ) -> Progress {
        switch framing {
        case .none: return complete(connection, rest: rest)
        case .declared(let count): connection.input.position = .declared(bytesLeft: count)
        case .chunked: connection.input.position = .chunked(ChunkFraming())
        }
        if rest.isEmpty {
            connection.continueIfAsked()
            return .incomplete
        }
        return takeBody(rest, of: connection)
    }

    // MARK: The body

    private func takeBody(_ bytes: UnsafeRawBufferPointer, of connection: ClientConnection) -> Progress {
        connection.input.bodyBytes += bytes.count
        switch connection.input.position {
        case .declared(let left):
            let piece = UnsafeRawBufferPointer(rebasing: bytes.prefix(left))
            if let fault = connection.append(piece, declared: left, in: context) {
                return refuseBody(of: connection, fault)
            }
            if piece.count == left {
                return complete(connection, rest: UnsafeRawBufferPointer(rebasing: bytes[left...]))
            }
            connection.input.position = .declared(bytesLeft: left - piece.count)
            return .incomplete
        case .chunked(var framing):
            let earlierCount = framing.count
            var refusal: TransportFault?
            let fault = framing.take(bytes) { piece in
                if refusal == nil { refusal = connection.append(piece, declared: 0, in: context) }
            }
            if let refusal { return refuseBody(of: connection, refusal) }
            if let fault { return .refused(.malformed(fault)) }
            if framing.isComplete {
                let count = framing.count - earlierCount
                return complete(connection, rest: UnsafeRawBufferPointer(rebasing: bytes[count...]))
            }
            connection.input.position = .chunked(framing)
            return .incomplete
        case .discarding(let left):
            guard bytes.count < left else { return .ended }
            connection.input.position = .discarding(bytesLeft: left - bytes.count)
            return .incomplete
        case .head, .complete, .ended:
            preconditionFailure("a body is received behind its head")
        }
    }

    private func refuseBody(of connection: ClientConnection, _ fault: TransportFault) -> Progress {
        connection.releaseBody(in: context)
        connection.input.position = .discarding(bytesLeft: context.configuration.drainBytesMax)
        return .bodyRefused(fault)
    }

    private func complete(_ connection: ClientConnection, rest: UnsafeRawBufferPointer) -> Progress {
        connection.input.position = .complete
        connection.input.held = rest.isEmpty ? [] : Array(rest)
        return .complete
    }
}
