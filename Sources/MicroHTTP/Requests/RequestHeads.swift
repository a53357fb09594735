import HTTPMessages
import HTTPTypes

/// The reading of request heads: from the head cache, or by the reader and the screening.
struct RequestHeads {
    private let configuration: ServerConfiguration
    private var cache = HeadCache()

    init(_ configuration: ServerConfiguration) { self.configuration = configuration }

    /// Reads a head; the connection has it then, with the framing of its body.
    ///
    /// - Throws: the fault for which the server refuses the request; the connection has the head if it could be read.
    mutating func read(_ received: borrowing ReceivedHead, of connection: ClientConnection) throws(TransportFault) {
        let head = try parsed(received, of: connection)
        connection.framing = try RequestScreening.framing(
            isChunked: head.isChunked, declared: received.declaredBytes, bodyBytesMax: configuration.bodyBytesMax)
    }

    private mutating func parsed(
        _ received: borrowing ReceivedHead, of connection: ClientConnection
    ) throws(TransportFault) -> ParsedHead {
        let bytes = received.lines
        // A connection over capacity serves few targets.
        guard connection.overCapacity == nil, let key = HeadCache.Key(bytes, isLocal: connection.isLocal) else {
            return try parse(received, try RequestLine(bytes), of: connection)
        }
        if let known = cache[key] {
            try begin(known, received, on: connection)
            return known
        }
        let line = try RequestLine(bytes)
        guard
            let rest = HeadCache.Key(
                UnsafeRawBufferPointer(rebasing: bytes[line.versionStart...]), isLocal: connection.isLocal)
        else { preconditionFailure("a part of a head is no longer than the head") }
        let head: ParsedHead
        if let known = cache[rest] {
            head = ParsedHead(line, target: try target(of: line), restOf: known)
            try begin(head, received, on: connection)
        } else {
            head = try parse(received, line, of: connection)
            cache.insert(head, for: rest)
        }
        cache.insert(head, for: key)
        return head
    }

    private func parse(
        _ received: borrowing ReceivedHead, _ line: RequestLine, of connection: ClientConnection
    ) throws(TransportFault) -> ParsedHead {
        let target = try target(of: line)
        let fields = try HeadReader.fields(of: received.lines, behind: line)
        let head = ParsedHead(
            Request.Head(method: line.method, target: target, fields: fields, isLocal: connection.isLocal),
            line.version)
        try begin(head, received, on: connection)
        try RequestScreening.screen(
            fields, declared: received.declaredBytes, version: line.version, bodyBytesMax: configuration.bodyBytesMax)
        return head
    }

    private func begin(
        _ head: ParsedHead, _ received: borrowing ReceivedHead, on connection: ClientConnection
    ) throws(TransportFault) {
        (connection.head, connection.own) = (head, received.own)
        connection.isLastRequest = head.isLast
        connection.namedClient = connection.isProxy ? configuration.trustedProxies.client(by: head.head) : nil
        guard connection.overCapacity == nil || configuration.reservedTargets.contains(head.head.target) else {
            throw .connectionsExhausted
        }
        guard received.size <= configuration.headBytesMax, received.fieldsCount <= configuration.fieldsMax else {
            throw configuration.headFault
        }
    }

    private func target(of line: RequestLine) throws(TransportFault) -> String {
        let parametersMax = configuration.parametersMax
        guard line.target.count <= configuration.targetBytesMax,
            line.target.count < parametersMax
                || line.target.count(where: { $0 == UInt8(ascii: "&") }) < parametersMax
        else { throw configuration.targetFault }
        return String(decoding: line.target, as: UTF8.self)
    }
}
