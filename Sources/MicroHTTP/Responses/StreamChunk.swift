/// A piece of streams as the bytes on the wire, which any number of parked connections share.
///
/// HTTP/1.1 frames it as a chunk (RFC 9112, section 7.1), so that a client knows at once that a piece is complete, and
/// that the stream has not broken off where it ends. HTTP/1.0 has no chunks.
final class StreamChunk {
    private let content: [UInt8]
    let isLast: Bool
    private var framed: [UInt8]?

    init(_ content: [UInt8], isLast: Bool) {
        self.content = content
        self.isLast = isLast
    }

    /// The bytes of the piece.
    func bytes(isChunked: Bool) -> [UInt8] {
        guard isChunked else { return content }
        if let framed { return framed }
        // Nearly all streams are chunked, so the framing is made once.
        let bytes = Self.frame(content, isLast: isLast)
        framed = bytes
        return bytes
    }

    private static func frame(_ content: [UInt8], isLast: Bool) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(content.count + 32)
        // An empty chunk would end the stream.
        if !content.isEmpty {
            bytes.append(contentsOf: String(content.count, radix: 16).utf8)
            bytes.append(contentsOf: "\r\n".utf8)
            bytes.append(contentsOf: content)
            bytes.append(contentsOf: "\r\n".utf8)
        }
        if isLast { bytes.append(contentsOf: "0\r\n\r\n".utf8) }
        return bytes
    }
}
