internal import StateJSON

/// The names by which clients may reach the server.
///
/// A page of another site can point a name of its own at this server's address and let the browser of a visitor send
/// requests (DNS rebinding). The browser then names that site in `Host`, so the server refuses names that are not its own.
package struct AllowedHosts: Sendable {
    /// The names in lower case, with a port where only that port is allowed; nil allows every name.
    private let names: Set<ExactText>?

    package static let any = AllowedHosts(names: nil)

    private init(names: Set<ExactText>?) { self.names = names }

    /// Allows the names of the listened addresses and further ones.
    ///
    /// Where one of them is a wildcard address, every name is allowed until there are further ones.
    ///
    /// - Parameters:
    ///   - hosts: the addresses or names that the server listens on, without brackets.
    ///   - further: names, addresses in brackets where they are IPv6, each with a port or without one for all ports.
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

    /// Whether a listened address, without brackets, is one that only this machine reaches.
    package static func isLoopback(_ host: String) -> Bool {
        host.hasPrefix("127.") || host == "::1" || host.lowercased() == "localhost"
    }

    /// Whether a request can name a server so in `Host`: a name of ASCII letters, digits, hyphens, dots and underscores or
    /// an address, in brackets where it is IPv6, with a port or without one.
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

    /// The host of a name that ``isName(_:)`` takes: without its port and without brackets.
    package static func host(of name: String) -> String {
        (withoutPort(name) ?? name).filter { $0 != "[" && $0 != "]" }
    }

    package func allows(_ value: String) -> Bool {
        guard let names else { return true }
        // A name has letters of ASCII only, and the sign of kelvin becomes a k in lower case.
        guard value.utf8.allSatisfy({ $0 < 0x80 }) else { return false }
        let isLower = !value.utf8.contains { (0x41...0x5A).contains($0) }
        let value = isLower ? value : value.lowercased()
        // Most clients send the port, and most names are allowed with any.
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
