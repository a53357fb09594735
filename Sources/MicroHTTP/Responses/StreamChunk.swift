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
