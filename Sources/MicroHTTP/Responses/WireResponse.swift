import CMicroHTTPD
import Glibc
import HTTPMessages
import HTTPTypes

/// Any thread makes it; only one loop's thread uses it then.
final class WireResponse: Sendable {
    let response: Response
    /// The form that nearly all connections get, once it has been encoded.
    ///
    /// unsafe, as the others: only the loop thread uses it.
    nonisolated(unsafe) private var common: Form?

    /// The responses of libmicrohttpd, once made: for connections that go on, and for those that end.
    nonisolated(unsafe) private var keeping: OpaquePointer?
    nonisolated(unsafe) private var closing: OpaquePointer?
    private static let copiedBytesMax = 16 << 10

    var statusCode: Int { response.status.code }
    var bodyCount: Int { response.body.count }
    /// Whether the body is too long to be copied for each connection.
    var isLong: Bool { bodyCount > Self.copiedBytesMax }
    var endsConnection: Bool { response.endsConnection }

    init(_ response: Response) { self.response = response }

    // A connection that still sends the response has a reference of its own.
    deinit {
        if let keeping { MHD_destroy_response(keeping) }
        if let closing { MHD_destroy_response(closing) }
    }

    /// Called inside the access handler; false where libmicrohttpd refuses it.
    func queue(on connection: OpaquePointer, isClosing: Bool) -> Bool {
        guard let handle = isClosing ? closing ?? makeHandle(isClosing: true) : keeping ?? makeHandle(isClosing: false)
        else { return false }
        if isClosing { closing = handle } else { keeping = handle }
        return MHD_queue_response(connection, UInt32(response.status.code), handle) == .YES
    }

    private func makeHandle(isClosing: Bool) -> OpaquePointer? {
        // The array of a long body is one object on the heap, which does not move. `releaseBody` releases its owner.
        let owner = isLong ? Unmanaged.passRetained(BodyOwner(response.body)).toOpaque() : nil
        guard let made = microhttpd_response(response.body, bodyCount, owner == nil ? nil : releaseBody, owner) else {
            return nil
        }
        var isComplete = true
        response.visitFields { if MHD_add_response_header(made, $0, $1) != .YES { isComplete = false } }
        // `Connection: close` in a response closes every connection that gets it.
        if isClosing, MHD_add_response_header(made, "Connection", "close") != .YES { isComplete = false }
        if !isComplete { MHD_destroy_response(made) }
        return isComplete ? made : nil
    }

    func hold(in memory: MemoryBudget, for client: String) -> MemoryBudget.Holding? {
        memory.hold(response.body, for: client)
    }

    func outgoing(isClosing: Bool, isHead: Bool, at date: HTTPDate) -> Outgoing {
        guard !isClosing, !isHead else {
            return Form(response, isClosing: isClosing, isHead: isHead, date).outgoing
        }
        if common == nil { common = Form(response, isClosing: false, isHead: false, date) }
        common?.setDate(date)
        return common?.outgoing ?? Outgoing([])
    }

    static func stream(_ response: Response, isHead: Bool, isChunked: Bool, at date: HTTPDate) -> [UInt8] {
        var bytes: [UInt8] = []
        Form.write(response, isClosing: true, date, to: &bytes)
        bytes += (isChunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n").utf8
        if !isHead { bytes += StreamChunk(response.body).bytes(isChunked: isChunked) }
        return bytes
    }

    private struct Form {
        /// The body follows where it is short.
        private var head: [UInt8] = []
        private let body: [UInt8]
        private let datePlace: Range<Int>
        private var second: Int

        init(_ response: Response, isClosing: Bool, isHead: Bool, _ date: HTTPDate) {
            // By RFC 9110, section 8.6, 204 has no length, and 304 would have that of the representation, which is unknown
            // here.
            let hasLength = response.status != .noContent && response.status != .notModified
            let hasBody = hasLength && !isHead
            let isCopied = hasBody && response.body.count <= WireResponse.copiedBytesMax
            head.reserveCapacity(512 + (isCopied ? response.body.count : 0))
            datePlace = Self.write(response, isClosing: isClosing, date, to: &head)
            second = date.second
            if hasLength { head += "Content-Length: \(response.body.count)\r\n".utf8 }
            head += "\r\n".utf8
            if isCopied { head += response.body }
            body = hasBody && !isCopied ? response.body : []
        }

        var outgoing: Outgoing { Outgoing(body, after: head) }

        mutating func setDate(_ date: HTTPDate) {
            guard date.second != second else { return }
            second = date.second
            head.replaceSubrange(datePlace, with: date.text)
        }

        /// Returns where the date is; writes no length.
        @discardableResult
        static func write(
            _ response: Response, isClosing: Bool, _ date: HTTPDate, to bytes: inout [UInt8]
        ) -> Range<Int> {
            bytes += "HTTP/1.1 \(response.status.code) \(response.status.reasonPhrase)\r\nDate: ".utf8
            let dateStart = bytes.count
            bytes += date.text
            bytes += "\r\n".utf8
            if isClosing { bytes += "Connection: close\r\n".utf8 }
            response.visitFields { name, value in
                bytes += UnsafeRawBufferPointer(start: name, count: strlen(name))
                bytes += ": ".utf8
                bytes += UnsafeRawBufferPointer(start: value, count: strlen(value))
                bytes += "\r\n".utf8
            }
            return dateStart..<dateStart + date.text.count
        }
    }
}

private final class BodyOwner {
    private let bytes: [UInt8]
    init(_ bytes: [UInt8]) { self.bytes = bytes }
}

/// MHD_ContentReaderFreeCallback, when no connection needs the body.
private func releaseBody(_ owner: UnsafeMutableRawPointer?) {
    if let owner { Unmanaged<BodyOwner>.fromOpaque(owner).release() }
}

/// RFC 9110, section 5.6.7; written once a second.
struct HTTPDate {
    private(set) var second = 0
    private(set) var text: [UInt8] = []

    mutating func now() -> HTTPDate {
        var seconds = time(nil)
        guard seconds != second else { return self }
        var parts = tm()
        gmtime_r(&seconds, &parts)
        // strftime uses the names of the C locale, which every process has until it sets another.
        var characters = [CChar](repeating: 0, count: 40)
        let count = strftime(&characters, characters.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        text = characters.prefix(count).map(UInt8.init(bitPattern:))
        second = seconds
        return self
    }
}

/// HTTP/1.1 frames it (RFC 9112, section 7.1), so that a client knows that a piece is complete; HTTP/1.0 does not.
package final class StreamChunk: Sendable {
    /// The chunk before a shared one, or empty.
    private let head: Framed
    private let body: Framed
    package let isLast: Bool

    /// O(n) in its bytes.
    package init(_ content: [UInt8], isLast: Bool = false) {
        head = Framed([])
        body = Framed(content, isLast: isLast)
        self.isLast = isLast
    }

    /// Shares the long piece with other streams.
    package init(_ content: [UInt8], before rest: StreamChunk) {
        head = Framed(content)
        body = rest.body
        isLast = rest.isLast
    }

    package var content: [UInt8] { head.content + body.content }

    func bytes(isChunked: Bool) -> [UInt8] { isChunked ? head.bytes + body.bytes : content }

    func outgoing(isChunked: Bool) -> Outgoing {
        isChunked ? Outgoing(body.bytes, after: head.bytes) : Outgoing(content)
    }
}

private struct Framed: Sendable {
    let bytes: [UInt8]
    private let place: Range<Int>

    init(_ content: [UInt8], isLast: Bool = false) {
        var bytes: [UInt8] = []
        // An empty chunk would end the stream.
        if !content.isEmpty {
            bytes.reserveCapacity(content.count + 32)
            bytes += "\(String(content.count, radix: 16))\r\n".utf8
        }
        place = bytes.count..<bytes.count + content.count
        bytes += content
        if !content.isEmpty { bytes += "\r\n".utf8 }
        if isLast { bytes += "0\r\n\r\n".utf8 }
        self.bytes = bytes
    }

    var content: [UInt8] { Array(bytes[place]) }
}
