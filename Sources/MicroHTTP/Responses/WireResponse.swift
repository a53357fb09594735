import Glibc
import HTTPMessages
import HTTPTypes

/// A response as the bytes of an HTTP/1.1 answer, which any number of parked connections share.
///
/// libmicrohttpd encodes the answers of its own connections; this type encodes those of parked connections.
final class WireResponse {
    private let response: Response
    private let closing: Bool
    private var keepAliveBytes: [UInt8]?
    var statusCode: Int { response.status.code }

    init(_ response: Response, closing: Bool) {
        self.response = response
        self.closing = closing || response.connection == .close
    }

    /// Returns the bytes of the answer, and whether the connection closes after them.
    ///
    /// - Parameters:
    ///   - closing: whether this connection closes even if the response does not.
    ///   - isHead: whether the request is HEAD, whose answer has no body.
    func bytes(closing: Bool, isHead: Bool) -> (bytes: [UInt8], isLast: Bool) {
        let isLast = closing || self.closing
        // Nearly all connections get this form, so it is encoded once.
        if !isLast, !isHead {
            let bytes = keepAliveBytes ?? Self.bytes(of: response, isLast: false, isHead: false)
            keepAliveBytes = bytes
            return (bytes, false)
        }
        return (Self.bytes(of: response, isLast: isLast, isHead: isHead), isLast)
    }

    /// Returns the beginning of a stream: a head without a length, and the first chunk.
    static func stream(_ response: Response, isHead: Bool, isChunked: Bool) -> [UInt8] {
        var bytes = head(of: response, isLast: true)
        bytes.append(contentsOf: (isChunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n").utf8)
        if !isHead {
            bytes += StreamChunk(response.body).bytes(isChunked: isChunked)
        }
        return bytes
    }

    private static func bytes(of response: Response, isLast: Bool, isHead: Bool) -> [UInt8] {
        var bytes = head(of: response, isLast: isLast)
        // By RFC 9110, section 8.6, 204 has no length, and 304 would have that of the representation, which is unknown
        // here.
        let hasLength = response.status != .noContent && response.status != .notModified
        if hasLength { bytes.append(contentsOf: "Content-Length: \(response.body.count)\r\n".utf8) }
        bytes.append(contentsOf: "\r\n".utf8)
        if hasLength, !isHead { bytes.append(contentsOf: response.body) }
        return bytes
    }

    private static func head(of response: Response, isLast: Bool) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(512 + response.body.count)
        bytes.append(contentsOf: "HTTP/1.1 \(response.status.code) \(response.status.reasonPhrase)\r\n".utf8)
        bytes.append(contentsOf: "Date: \(now())\r\n".utf8)
        if isLast { bytes.append(contentsOf: "Connection: close\r\n".utf8) }
        // libmicrohttpd refuses empty fields, so the answers of parked connections have none either.
        for field in response.fields where !field.value.isEmpty {
            bytes.append(contentsOf: field.name.rawName.utf8)
            bytes.append(contentsOf: ": ".utf8)
            bytes.append(contentsOf: field.value.utf8)
            bytes.append(contentsOf: "\r\n".utf8)
        }
        return bytes
    }

    /// Returns the current time in the form of RFC 9110, section 5.6.7.
    private static func now() -> String {
        var seconds = time(nil)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        // strftime uses the names of the C locale, which every process has until it sets another.
        var text = [CChar](repeating: 0, count: 40)
        let count = strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        return String(decoding: text.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
