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

/// The names by which clients may reach the server, which refuses others: DNS rebinding names another site in `Host`.
package struct AllowedHosts: Sendable {
    /// The names in lower case, with a port where only that port is allowed; nil allows every name.
    private let names: Set<ExactText>?

    package static let any = AllowedHosts(names: nil)

    private init(names: Set<ExactText>?) { self.names = names }

    /// Allows the listened addresses and `further` names; every name where one is a wildcard and none is `further`.
    ///
    /// Only the `further` names have brackets around IPv6; one without a port is for all ports.
    package init(listening hosts: [String], further: [String]) {
        guard !hosts.contains(where: Self.isWildcard) || !further.isEmpty else {
            self = .any
            return
        }
        var names = Set(further.map { $0.lowercased() })
        for host in hosts {
            let isWildcard = Self.isWildcard(host)
            if !isWildcard { names.insert(host.contains(":") ? "[\(host.lowercased())]" : host.lowercased()) }
            // A page of another site cannot be reached by a name of loopback.
            if isWildcard || Self.isLoopback(host) { names.formUnion(["localhost", "127.0.0.1", "[::1]"]) }
        }
        self.init(names: Set(names.map { ExactText($0) }))
    }

    private static func isWildcard(_ host: String) -> Bool { host == "0.0.0.0" || host == "::" }

    package static func isLoopback(_ host: String) -> Bool {
        host.hasPrefix("127.") || host == "::1" || host.lowercased() == "localhost"
    }

    /// Whether a request can name a server so in `Host`: an ASCII name or an address, with a port or without one.
    package static func isName(_ text: String) -> Bool {
        let name = withoutPort(text) ?? text
        let port = text.utf8.dropFirst(name.utf8.count + 1)
        guard name == text || UInt16(String(decoding: port, as: UTF8.self)) != nil else { return false }
        let isDigit = { (0x30...0x39).contains($0 as UInt8) }
        if name.hasPrefix("["), name.hasSuffix("]") {
            let address = name.utf8.dropFirst().dropLast()
            return address.contains(UInt8(ascii: ":"))
                && address.allSatisfy { isDigit($0) || (0x61...0x66).contains($0 | 0x20) || $0 == 0x3A || $0 == 0x2E }
        }
        return !name.isEmpty
            && name.utf8.allSatisfy { byte in
                isDigit(byte) || (0x61...0x7A).contains(byte | 0x20) || [0x2D, 0x2E, 0x5F].contains(byte)
            }
    }

    package static func host(of name: String) -> String {
        (withoutPort(name) ?? name).filter { $0 != "[" && $0 != "]" }
    }

    package func allows(_ value: String) -> Bool {
        guard let names else { return true }
        // A name has letters of ASCII only, and the sign of kelvin becomes a k in lower case.
        guard value.utf8.allSatisfy({ $0 < 0x80 }) else { return false }
        let isLower = !value.utf8.contains { (0x41...0x5A).contains($0) }
        let value = isLower ? value : value.lowercased()
        return Self.withoutPort(value).map { names.contains(ExactText($0)) } == true || names.contains(ExactText(value))
    }

    /// The value without its port, or nil for an empty value, and one that RFC 9110, section 7.2, does not allow.
    private static func withoutPort(_ value: String) -> String? {
        let bytes = value.utf8
        guard let colon = bytes.lastIndex(of: UInt8(ascii: ":")) else { return nil }
        let port = bytes[bytes.index(after: colon)...]
        guard port.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        let name = bytes[..<colon]
        let isBracketed = name.first == UInt8(ascii: "[") && name.last == UInt8(ascii: "]")
        return name.contains(UInt8(ascii: ":")) && !isBracketed ? nil : String(Substring(name))
    }
}
