import CMicroHTTPD
import Glibc
import HTTPMessages

/// The reading of request heads: from the head cache, or by the reader and the screening.
///
/// Only the loop thread uses it.
final class RequestHeads {
    private let configuration: ServerConfiguration
    private let reader = RequestReader()
    private let cache = HeadCache()
    private let sections = SectionCache()

    init(_ configuration: ServerConfiguration) { self.configuration = configuration }

    /// Reads the head of a connection's current request and counts the bytes of the request.
    ///
    /// - Returns: the fault for which the server refuses the request; the connection has the request if its head could be
    ///   read.
    func read(
        _ connection: ClientConnection, method: UnsafePointer<CChar>, version: UnsafePointer<CChar>
    ) -> TransportFault? {
        let headCount = Int(microhttpd_head_size(connection.handle))
        let end = UnsafeRawPointer(method + headCount)
        let isVersion10 = RequestReader.version(version) == .http10
        connection.isVersion10 = isVersion10
        connection.namedClient = nil
        let bytes = HeadBytes(of: connection, method: method, version: version)
        if connection.overCapacity == nil, let head = cache.entry(of: connection, bytes) {
            if connection.isProxy { connection.namedClient = head.namedClient(by: configuration.trustedProxies) }
            connection.isLastRequest = head.isLast
            let framing = head.framing
            connection.head = consume head
            return connection.accept(framing, headCount: headCount, end: end)
        }
        do throws(TransportFault) {
            let isGet = strcmp(method, "GET") == 0 && connection.overCapacity == nil
            let section = isGet ? bytes.flatMap { sections.entry(of: connection, $0) } : nil
            let head: Request.Head
            if let section {
                head = try reader.head(of: connection, version: version, section)
            } else {
                head = try reader.head(of: connection, method: method, version: version)
            }
            if connection.isProxy { connection.namedClient = configuration.trustedProxies.client(by: head) }
            let request = Request(head, client: connection.requestClient)
            connection.request = request
            guard connection.overCapacity == nil || configuration.reservedTargets.contains(request.target) else {
                throw .connectionsExhausted
            }
            guard headCount <= configuration.headBytesMax, head.list.count <= configuration.fieldsMax else {
                throw configuration.headFault
            }
            let framing: BodyFraming
            let isLast: Bool
            if let section {
                (framing, isLast) = (section.framing, section.isLast)
            } else {
                framing = try RequestScreening.framing(
                    of: head.list, version: isVersion10 ? .http10 : .http11,
                    bodyBytesMax: configuration.bodyBytesMax)
                isLast = head.endsConnection(isVersion10: isVersion10)
                if isGet, let bytes { sections.store(bytes, of: head, framing, isLast: isLast) }
            }
            // The cache has not been asked for the head of a connection over capacity, and must not take it for the last one.
            connection.head = connection.overCapacity == nil ? cache.store(request, framing, isLast: isLast) : nil
            connection.isLastRequest = isLast
            return connection.accept(framing, headCount: headCount, end: end)
        } catch {
            return error
        }
    }

    /// Stores the reusable answer to a connection's current request, if the cache has its head.
    func store(
        _ prepared: PreparedResponse, _ bodyCount: Int, of generation: UInt64, for connection: ClientConnection
    ) {
        guard let head = connection.head else { return }
        cache.store(prepared, bodyCount, of: generation, for: head)
    }
}
