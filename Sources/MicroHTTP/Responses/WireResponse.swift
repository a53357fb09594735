import Glibc
import HTTPMessages
import HTTPTypes

/// A response as the bytes of an HTTP/1.1 answer, made once and sent to any number of parked connections.
///
/// libmicrohttpd writes the answers of the connections that it holds; this is for those that it has given up.
final class WireResponse {
    private let response: Response
    private let closing: Bool
    private var keeping: [UInt8]?

    init(_ response: Response, closing: Bool) {
        self.response = response
        self.closing = closing || response.connection == .close
    }

    /// The answer's bytes, and whether the connection ends behind them.
    ///
    /// - Parameters:
    ///   - closing: whether this connection has to end in any case.
    ///   - isHead: whether the body is left out.
    func bytes(closing: Bool, isHead: Bool) -> (bytes: [UInt8], isLast: Bool) {
        let isLast = closing || self.closing
        // What nearly everybody gets is kept.
        if !isLast, !isHead {
            let bytes = keeping ?? Self.bytes(of: response, isLast: false, isHead: false)
            keeping = bytes
            return (bytes, false)
        }
        return (Self.bytes(of: response, isLast: isLast, isHead: isHead), isLast)
    }

    /// The beginning of an answer without a length, which ends with its connection.
    static func stream(_ response: Response, isHead: Bool) -> [UInt8] {
        var bytes = head(of: response, isLast: true)
        bytes.append(contentsOf: "\r\n".utf8)
        if !isHead { bytes.append(contentsOf: response.body) }
        return bytes
    }

    private static func bytes(of response: Response, isLast: Bool, isHead: Bool) -> [UInt8] {
        var bytes = head(of: response, isLast: isLast)
        // RFC 9110, section 8.6: 204 has no length, and that of 304 would be the value's, which is not at hand.
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
        // An empty field says what a missing one does, and libmicrohttpd would refuse it.
        for field in response.fields where !field.value.isEmpty {
            bytes.append(contentsOf: field.name.rawName.utf8)
            bytes.append(contentsOf: ": ".utf8)
            bytes.append(contentsOf: field.value.utf8)
            bytes.append(contentsOf: "\r\n".utf8)
        }
        return bytes
    }

    /// The present moment in the form of RFC 9110, section 5.6.7.
    private static func now() -> String {
        var seconds = time(nil)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        // The names of days and months are those of the C locale, which a process has unless it asks for another.
        var text = [CChar](repeating: 0, count: 40)
        let count = strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        return String(decoding: text.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
