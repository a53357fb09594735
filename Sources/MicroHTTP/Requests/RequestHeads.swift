import HTTPMessages
import HTTPTypes

/// The reading of request heads: from the head cache, or by the reader and the screening.
///
/// Only the loop thread uses it.
final class RequestHeads {
    private let configuration: ServerConfiguration
    private let reader = HeadReader()
    private let cache = HeadCache()
    private let sections = SectionCache()

    init(_ configuration: ServerConfiguration) { self.configuration = configuration }

    /// Reads a head, which is complete and whose lines end with CR LF; the connection has it then.
    ///
    /// - Returns: how the body is delimited.
    /// - Throws: the fault for which the server refuses the request; the connection has the request if its head could be
    ///   read.
    func read(_ bytes: UnsafeRawBufferPointer, of connection: ClientConnection) throws(TransportFault) -> BodyFraming {
        let key = HeadBytes(bytes, of: connection)
        connection.namedClient = nil
        if connection.overCapacity == nil, let head = cache.entry(of: connection, key) {
            if connection.isProxy { connection.namedClient = head.namedClient(by: configuration.trustedProxies) }
            (connection.version, connection.isLastRequest) = (head.version, head.isLast)
            let framing = head.framing
            connection.head = consume head
            return framing
        }
        let line = try RequestLine(bytes)
        let target = try target(of: line)
        let sectionBytes = UnsafeRawBufferPointer(rebasing: bytes[line.sectionStart...])
        let section =
            line.method == .get && connection.overCapacity == nil ? HeadBytes(sectionBytes, of: connection) : nil
        let known = section.flatMap { sections.entry(of: connection, $0) }
        let head: Request.Head
        if let known {
            head = Request.Head(
                method: .get, target: target, fields: known.fields, known: known.known, isLocal: connection.isLocal,
                sectionMemo: known.memo)
        } else {
            let fields = try reader.fields(of: bytes, behind: line)
            head = Request.Head(
                method: line.method, target: target, fields: fields.list, known: fields.known,
                isLocal: connection.isLocal)
        }
        if connection.isProxy { connection.namedClient = configuration.trustedProxies.client(by: head) }
        let request = Request(head, client: connection.requestClient)
        connection.request = request
        connection.version = line.version
        guard connection.overCapacity == nil || configuration.reservedTargets.contains(target) else {
            throw .connectionsExhausted
        }
        guard bytes.count <= configuration.headBytesMax, head.list.count <= configuration.fieldsMax else {
            throw configuration.headFault
        }
        let framing: BodyFraming
        let isLast: Bool
        if let known {
            (framing, isLast) = (known.framing, known.isLast)
        } else {
            framing = try RequestScreening.framing(
                of: head.list, version: line.version, bodyBytesMax: configuration.bodyBytesMax)
            isLast = head.endsConnection(isVersion10: line.version == .http10)
            if let section { sections.store(section, of: head, framing, isLast: isLast) }
        }
        // The cache has not been asked for the head of a connection over capacity, and must not take it for the last one.
        connection.head =
            connection.overCapacity == nil ? cache.store(key, request, framing, line.version, isLast: isLast) : nil
        connection.isLastRequest = isLast
        return framing
    }

    private func target(of line: RequestLine) throws(TransportFault) -> String {
        let parametersMax = configuration.parametersMax
        guard line.target.count <= configuration.targetBytesMax,
            line.target.count < parametersMax
                || line.target.count(where: { $0 == UInt8(ascii: "&") }) < parametersMax
        else { throw configuration.targetFault }
        return String(decoding: line.target, as: UTF8.self)
    }

    /// Stores the reusable answer to a connection's current request, if the cache has its head.
    func store(
        _ answer: WireResponse, _ bodyCount: Int, of generation: UInt64, for connection: ClientConnection
    ) {
        guard let head = connection.head else { return }
        cache.store(answer, bodyCount, of: generation, for: head)
    }
}
