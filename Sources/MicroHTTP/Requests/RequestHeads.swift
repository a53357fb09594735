import HTTPMessages
import HTTPTypes

/// The reading of request heads: from the head cache, or by the reader and the screening.
struct RequestHeads {
    private let configuration: ServerConfiguration
    private var cache = HeadCache()

    init(_ configuration: ServerConfiguration) { self.configuration = configuration }

    /// Reads a head as it was on the wire, a line for each field that libmicrohttpd has found; the connection has it then.
    ///
    /// - Returns: how the body is delimited.
    /// - Throws: the fault for which the server refuses the request; the connection has the head if it could be read.
    mutating func read(
        _ bytes: UnsafeRawBufferPointer, of connection: ClientConnection
    ) throws(TransportFault) -> BodyFraming {
        // A connection over capacity serves few targets.
        guard connection.overCapacity == nil, let key = HeadCache.Key(bytes, isLocal: connection.isLocal) else {
            return try parse(bytes, try RequestLine(bytes), of: connection).framing
        }
        if let known = cache[key] {
            connection.begin(known, configuration.trustedProxies)
            return known.framing
        }
        let line = try RequestLine(bytes)
        guard
            let rest = HeadCache.Key(
                UnsafeRawBufferPointer(rebasing: bytes[line.versionStart...]), isLocal: connection.isLocal)
        else { preconditionFailure("a part of a head is no longer than the head") }
        let head: ParsedHead
        if let known = cache[rest], bytes.count <= configuration.headBytesMax {
            head = ParsedHead(line, target: try target(of: line), restOf: known)
            connection.begin(head, configuration.trustedProxies)
        } else {
            head = try parse(bytes, line, of: connection)
            cache.insert(head, for: rest)
        }
        cache.insert(head, for: key)
        return head.framing
    }

    private func parse(
        _ bytes: UnsafeRawBufferPointer, _ line: RequestLine, of connection: ClientConnection
    ) throws(TransportFault) -> ParsedHead {
        let target = try target(of: line)
        let fields = try HeadReader.fields(of: bytes, behind: line)
        let head = ParsedHead(
            Request.Head(method: line.method, target: target, fields: fields, isLocal: connection.isLocal),
            line.version)
        connection.begin(head, configuration.trustedProxies)
        guard connection.overCapacity == nil || configuration.reservedTargets.contains(target) else {
            throw .connectionsExhausted
        }
        guard bytes.count <= configuration.headBytesMax, fields.count <= configuration.fieldsMax else {
            throw configuration.headFault
        }
        head.framing = try RequestScreening.framing(
            of: fields, version: line.version, bodyBytesMax: configuration.bodyBytesMax)
        return head
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

extension ClientConnection {
    fileprivate func begin(_ head: ParsedHead, _ proxies: TrustedProxies) {
        self.head = head
        isLastRequest = head.isLast
        namedClient = isProxy ? proxies.client(by: head.head) : nil
    }
}
