/// A piece of streams as the bytes on the wire, which any number of streams share.
///
/// HTTP/1.1 frames it as a chunk (RFC 9112, section 7.1), so that a client knows at once that a piece is complete, and
/// that the stream has not broken off where it ends. HTTP/1.0 has no chunks.
package final class StreamChunk: Sendable {
    /// The chunk before a shared one, or empty.
    private let head: Framed
    private let body: Framed
    /// Whether the streams end after it.
    package let isLast: Bool

    /// Frames a piece; the cost is O(n) in its bytes.
    ///
    /// - Parameter isLast: whether the streams end after it.
    package init(_ content: [UInt8], isLast: Bool = false) {
        head = Framed([])
        body = Framed(content, isLast: isLast)
        self.isLast = isLast
    }

    /// Puts a short piece before a long one, which it shares with other streams.
    package init(_ content: [UInt8], before rest: StreamChunk) {
        head = Framed(content)
        body = rest.body
        isLast = rest.isLast
    }

    /// The piece without frames, in a copy.
    package var content: [UInt8] { head.content + body.content }

    /// The bytes of the piece for a client with or without chunks, in a copy.
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
