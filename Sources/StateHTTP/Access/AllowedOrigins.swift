internal import HTTPMessages
package import HTTPTypes
internal import StateJSON

/// The origins whose pages may use the server (Fetch standard, section 3.2): no cookies, so no credentials allowed.
package struct AllowedOrigins: Sendable {
    package let origins: [String]

    package init(_ origins: [String]) { self.origins = origins }

    package static let varying: HTTPFields = [.vary: "Origin"]

    package static func fields(for origin: String) -> HTTPFields {
        [.accessControlAllowOrigin: origin, .accessControlExposeHeaders: exposed, .vary: "Origin"]
    }

    /// The answer needs no credential, because a browser sends none with the request before the real one.
    func preflight(_ request: Request) -> Response? {
        guard request.method == .options, request.fields.contains(.accessControlRequestMethod),
            let origin = request[.origin], origins.contains(where: { JSONPointer.sameBytes($0, origin) })
        else { return nil }
        return Response(
            status: .noContent,
            fields: [
                .accessControlAllowMethods: "GET, HEAD, POST, DELETE", .accessControlAllowHeaders: Self.requested,
                // Browsers cut it to two hours or to a day.
                .accessControlMaxAge: "86400",
            ])
    }

    private static let exposed =
        """
        ETag, Idempotency-Replayed, Link, Preference-Applied, Retry-After, State-Cursor, State-Wait, \
        Stream-Cursor, Stream-Next-Offset, Stream-Up-To-Date, WWW-Authenticate
        """

    private static let requested =
        "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer, traceparent, X-Request-ID"

    /// The fault in an origin, or nil; extensions and shells for apps have schemes such as `capacitor://localhost`.
    package static func fault(in origin: String) -> String? {
        let fault = { (words: String) in "\"\(origin)\" is not an origin: \(words)" }
        let isNamePart = { (byte: UInt8) in byte.isLowercaseLetter || byte.isDigit || "-._".utf8.contains(byte) }
        guard origin.utf8.allSatisfy({ $0 < 0x80 }) else {
            return fault("a browser writes the name of a host in ASCII, such as https://xn--bcher-kva.example")
        }
        let parts = origin.split(separator: "://", omittingEmptySubsequences: false)
        guard parts.count == 2 else {
            return fault("it must be one such as https://app.example or http://localhost:5173")
        }
        let (scheme, authority) = (parts[0], parts[1])
        let isAddress = authority.hasPrefix("[")
        let host = isAddress ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" }
        let port = authority.dropFirst(host.count)
        let isHost =
            isAddress
            ? authority.contains("]")
                && host.dropFirst().dropLast().utf8.allSatisfy { $0.isDigit || "abcdef:.".utf8.contains($0) }
            : !host.isEmpty && host.utf8.allSatisfy(isNamePart)
        let isPort = port.isEmpty || port.first == ":" && UInt16(port.dropFirst()).map { ":\($0)" == port } ?? false
        guard let first = scheme.utf8.first, first.isLowercaseLetter,
            scheme.utf8.allSatisfy({ isNamePart($0) || $0 == UInt8(ascii: "+") }), scheme != "file", isHost, isPort
        else {
            return fault("it must be one such as https://app.example or http://localhost:5173, in small letters")
        }
        guard (scheme, port) != ("https", ":443"), (scheme, port) != ("http", ":80") else {
            return fault("a browser writes it without the usual port, \(scheme)://\(host)")
        }
        return nil
    }
}

extension UInt8 {
    fileprivate var isLowercaseLetter: Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= self }
    fileprivate var isDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }
}
