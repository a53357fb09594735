import CMicroHTTPD
import CXXHash
import Glibc
import HTTPMessages
import HTTPTypes

struct RequestHeads {
    private let configuration: ServerConfiguration
    private var cache = HeadCache()

    init(_ configuration: ServerConfiguration) { self.configuration = configuration }

    /// Where it throws, the connection has the head if it could be read.
    mutating func read(
        _ received: borrowing ReceivedHead, of connection: ClientConnection
    ) throws(Problem) -> ParsedHead {
        let bytes = received.lines
        // A connection over capacity serves few targets.
        guard connection.overCapacitySince == nil, let key = HeadCache.Key(bytes, isLocal: connection.isLocal) else {
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
    ) throws(Problem) -> ParsedHead {
        let target = try target(of: line)
        let fields = try line.fields(of: received.lines)
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
    ) throws(Problem) {
        (connection.head, connection.own) = (head, received.own)
        connection.isLastRequest = head.isLast
        connection.namedClient = connection.isProxy ? configuration.trustedProxies.client(by: head.head) : nil
        guard connection.overCapacitySince == nil || configuration.reservedTargets.contains(head.head.target) else {
            throw .connectionsExhausted
        }
        guard received.size <= configuration.headBytesMax, received.fieldsCount <= configuration.fieldsMax else {
            throw Problem(
                .requestHeaderFieldsTooLarge, "head-too-large",
                "a request's head has at most \(configuration.headBytesMax) bytes and \(configuration.fieldsMax) fields here"
            )
        }
    }

    private func target(of line: RequestLine) throws(Problem) -> String {
        let parametersMax = configuration.parametersMax
        guard line.target.count <= configuration.targetBytesMax,
            line.target.count < parametersMax
                || line.target.count(where: { $0 == UInt8(ascii: "&") }) < parametersMax
        else {
            throw Problem(
                .uriTooLong, "target-too-long",
                "a request's target has at most \(configuration.targetBytesMax) bytes and \(parametersMax) parameters here"
            )
        }
        return String(decoding: line.target, as: UTF8.self)
    }
}

final class ParsedHead {
    let head: Request.Head
    let version: ProtocolVersion
    let isLast: Bool
    let isChunked: Bool
    let methodIndex: UInt8
    private var answer: (response: WireResponse, generation: UInt64, own: OwnFields?)?
    private static let bodyBytesMax = 4 << 10

    init(_ head: Request.Head, _ version: ProtocolVersion) {
        self.head = head
        self.version = version
        methodIndex = Answers.index(of: head.method)
        isChunked = head.list.contains { $0.name == .transferEncoding }
        isLast = head.endsConnection(isVersion10: version == .http10)
    }

    init(_ line: RequestLine, target: String, restOf other: ParsedHead) {
        head = Request.Head(method: line.method, target: target, fieldsOf: other.head)
        (version, isLast, isChunked) = (other.version, other.isLast, other.isChunked)
        methodIndex = Answers.index(of: head.method)
    }

    func answer(of generation: UInt64, to own: OwnFields?) -> WireResponse? {
        guard let answer, answer.generation == generation, answer.own == own else { return nil }
        return answer.response
    }

    func keep(_ answer: WireResponse, of generation: UInt64, to own: OwnFields?) {
        if answer.bodyCount <= Self.bodyBytesMax { self.answer = (answer, generation, own) }
    }
}

/// A second key is the bytes from the version on, with which no head begins: clients repeat what follows the target; a
/// colliding head replaces the older one, and all takes some 30 MB at most.
struct HeadCache {
    /// On a Unix socket any `Host` is allowed, and the answers must not be those of other connections.
    struct Key {
        fileprivate let bytes: UnsafeRawBufferPointer
        fileprivate let isLocal: Bool
        fileprivate let hash: UInt64

        init?(_ bytes: UnsafeRawBufferPointer, isLocal: Bool) {
            guard bytes.count <= HeadCache.bytesMax else { return nil }
            self.bytes = bytes
            self.isLocal = isLocal
            hash = storekeeper_short_hash(bytes.baseAddress, bytes.count)
        }
    }

    fileprivate struct Entry {
        let bytes: [UInt8]
        let isLocal: Bool
        let head: ParsedHead
    }

    private var entries = [Entry?](repeating: nil, count: 4096)
    /// Heads that came once: the cache takes a head when it comes again.
    private var seen = [UInt64](repeating: 0, count: 4096)
    private static let bytesMax = 1024

    private func slot(of key: Key) -> Int { Int(truncatingIfNeeded: key.hash) & (entries.count - 1) }

    subscript(key: Key) -> ParsedHead? {
        guard let entry = entries[slot(of: key)], entry.isLocal == key.isLocal, entry.bytes.count == key.bytes.count,
            let bytes = key.bytes.baseAddress, memcmp(entry.bytes, bytes, key.bytes.count) == 0
        else { return nil }
        return entry.head
    }

    mutating func insert(_ head: ParsedHead, for key: Key) {
        let slot = slot(of: key)
        guard seen[slot] == key.hash else {
            seen[slot] = key.hash
            return
        }
        entries[slot] = Entry(bytes: Array(key.bytes), isLocal: key.isLocal, head: head)
    }
}

extension Request.Head {
    /// RFC 9112, section 9.3.
    fileprivate func endsConnection(isVersion10: Bool) -> Bool {
        let options = self[values: RequestField.connection].flatMap { value in
            value.split(separator: ",").map { $0.trimmingSpaces().lowercased() }
        }
        return options.contains("close") || isVersion10 && !options.contains("keep-alive")
    }
}

/// Lies in memory that the next head takes.
struct ReceivedHead: ~Copyable {
    private static let bytesMax = 32 << 10

    let head = UnsafeMutablePointer<MicroHTTPDHead>.allocate(capacity: 1)

    init() {
        head.initialize(to: MicroHTTPDHead())
        head.pointee.bytes = .allocate(capacity: Self.bytesMax)
        head.pointee.capacity = Self.bytesMax
    }

    deinit {
        head.pointee.bytes.deallocate()
        head.deallocate()
    }

    /// Lacks the fields that are the request's own.
    var lines: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: head.pointee.bytes, count: head.pointee.count) }

    var size: Int { head.pointee.size }
    var fieldsCount: Int { head.pointee.fields_count }

    /// The value of Content-Length; nil without one, and for one that the lines have, because it is none.
    var declaredBytes: Int? { head.pointee.length < 0 ? nil : Int(head.pointee.length) }

    var own: OwnFields? {
        let count = head.pointee.own_count
        guard count > 0 else { return nil }
        return withUnsafeBytes(of: &head.pointee.own) { bytes in
            OwnFields(
                bytes.bindMemory(to: MicroHTTPDOwnValue.self).prefix(count).map { value in
                    let bytes = UnsafeRawBufferPointer(start: value.value, count: value.count)
                    return (Self.name(of: value.field), String(decoding: bytes, as: UTF8.self))
                })
        }
    }

    private static func name(of field: MicroHTTPDOwnField) -> RequestField {
        switch field {
        case MICROHTTPD_IDEMPOTENCY_KEY: .idempotencyKey
        case MICROHTTPD_IF_MATCH: .ifMatch
        case MICROHTTPD_IF_NONE_MATCH: .ifNoneMatch
        case MICROHTTPD_LAST_EVENT_ID: .lastEventID
        case MICROHTTPD_TRACEPARENT: .traceParent
        case MICROHTTPD_X_REQUEST_ID: .requestID
        default: preconditionFailure("a length and what nobody reads are not kept")
        }
    }
}

enum BodyFraming: Equatable {
    case none
    case declared(bytes: Int)
    case chunked
}

/// A proxy and this server must find the same requests in a connection, or an attacker can hide a request in the body
/// of another; the server refuses a head that allows two readings, by RFC 9112, sections 3.2 and 6.
enum RequestScreening {
    /// The head cache keeps lines that pass, for requests with any length: nothing passes because of its own.
    static func screen(
        _ fields: [HTTPField], declared: Int?, version: ProtocolVersion, bodyBytesMax: Int
    ) throws(Problem) {
        func values(of name: String) -> [String] { fields.filter { $0.name.canonicalName == name }.map(\.value) }
        let (lengths, codings) = (values(of: "content-length"), values(of: "transfer-encoding"))
        let hostsCount = values(of: "host").count
        guard lengths.count + (declared == nil ? 0 : 1) <= 1 else {
            throw .malformed("expected one Content-Length, found several")
        }
        guard codings.count <= 1 else { throw .malformed("expected one Transfer-Encoding, found several") }
        guard hostsCount <= 1 else { throw .malformed("expected one Host, found several") }
        guard hostsCount == 1 || version == .http10 else { throw .malformed("expected a Host, found none") }

        if let coding = codings.first {
            guard version == .http11 else { throw .malformed("HTTP/1.0 has no Transfer-Encoding") }
            guard lengths.isEmpty, declared == nil else { throw Self.lengthAndCoding }
            guard coding.lowercased() == "chunked" else {
                throw Problem(
                    .notImplemented, "transfer-coding", "a body can be chunked or have a Content-Length, nothing else")
            }
        }
        guard let digits = lengths.first?.utf8 else { return }
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw .malformed("Content-Length is not a number")
        }
        // A number that has not been taken out has too many digits.
        throw .tooLarge(limit: bodyBytesMax)
    }

    static func framing(
        isChunked: Bool, declared: Int?, bodyBytesMax: Int
    ) throws(Problem) -> BodyFraming {
        if isChunked {
            guard declared == nil else { throw lengthAndCoding }
            return .chunked
        }
        guard let declared, declared > 0 else { return .none }
        guard declared <= bodyBytesMax else { throw .tooLarge(limit: bodyBytesMax) }
        return .declared(bytes: declared)
    }

    private static var lengthAndCoding: Problem {
        .malformed("expected Content-Length or Transfer-Encoding, found both")
    }
}
