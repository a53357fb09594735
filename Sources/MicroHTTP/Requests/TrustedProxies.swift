import CMicroHTTPD
import Glibc
import HTTPMessages
import HTTPTypes

/// Anyone can write `Forwarded` (RFC 7239) and `X-Forwarded-For`, so the server reads them only from these peers, and
/// from the right: each proxy appends the peer that it has seen, and the first address that is none of them is the
/// client.
package struct TrustedProxies: Sendable, Equatable {
    /// IPv4 is the part of IPv6 that RFC 4291, section 2.5.5.2, has for it.
    private struct Network: Equatable {
        let prefix: UInt128
        let mask: UInt128

        func contains(_ address: UInt128) -> Bool { address & mask == prefix }
    }

    private var networks: [Network] = []
    private var hasSockets = false

    package init() {}

    /// Nil if a name is not an address, a network or `unix`, the peers on Unix sockets; a network has no bits behind
    /// its prefix.
    package init?(_ names: [String]) {
        for name in names {
            guard name != "unix" else {
                hasSockets = true
                continue
            }
            guard let network = Self.network(name) else { return nil }
            networks.append(network)
        }
    }

    var isEmpty: Bool { networks.isEmpty && !hasSockets }

    private static func network(_ name: String) -> Network? {
        let parts = name.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = bits(of: String(parts[0])) else { return nil }
        guard parts.count == 2 else { return Network(prefix: address, mask: .max) }
        let bitsMax = name.contains(":") ? 128 : 32
        guard let count = Int(parts[1]), (0...bitsMax).contains(count), !parts[1].hasPrefix("+") else { return nil }
        let freeCount = bitsMax - count
        let mask = freeCount == 128 ? 0 : UInt128.max << UInt128(freeCount)
        return address & mask == address ? Network(prefix: address, mask: mask) : nil
    }

    /// Nil is the peer on a Unix socket.
    func trusts(_ peer: String?) -> Bool {
        guard let peer else { return hasSockets }
        return Self.bits(of: peer).map(trusts) ?? false
    }

    private func trusts(_ address: UInt128) -> Bool { networks.contains { $0.contains(address) } }

    /// Nil where the fields name none, or no address, and where the two fields name different clients, because a proxy
    /// that writes one of them may let the other one of its client pass.
    func client(by head: Request.Head) -> String? {
        let standard = head.list.filter { $0.name == .forwarded }.map(\.value)
        let usual = head.list.filter { $0.name == .xForwardedFor }.map(\.value)
        guard !standard.isEmpty else { return usual.isEmpty ? nil : client(in: usual, node: Self.usualNode) }
        let named = client(in: standard, node: Self.standardNode)
        guard !usual.isEmpty else { return named }
        return named == client(in: usual, node: Self.usualNode) ? named : nil
    }

    /// The first one where all are trusted.
    private func client(in values: [String], node: (Substring) -> String?) -> String? {
        var farthest: UInt128?
        for value in values.reversed() {
            guard let elements = Self.elements(of: value[...], separator: ",") else { return nil }
            // RFC 9110, section 5.6.1.2: a list may have empty elements.
            for element in elements.reversed() where !element.isEmpty {
                guard let node = node(element), let address = Self.bits(of: node) else { return nil }
                farthest = address
                guard trusts(address) else { return Self.text(of: address) }
            }
        }
        return farthest.flatMap(Self.text)
    }

    /// Nil where a quote does not end.
    private static func elements(of value: Substring, separator: Unicode.Scalar) -> [Substring]? {
        let (parts, isOpen) = value.utf8.split(outsideQuotes: UInt8(ascii: separator))
        return isOpen ? nil : parts
    }

    private static func usualNode(_ element: Substring) -> String? {
        let isBareIPv6 = element.count { $0 == ":" } > 1 && !element.hasPrefix("[")
        return isBareIPv6 ? String(element) : withoutPort(element)
    }

    /// RFC 7239, sections 4 and 6.
    private static func standardNode(_ element: Substring) -> String? {
        guard let pairs = elements(of: element, separator: ";") else { return nil }
        var node: Substring?
        for pair in pairs where !pair.isEmpty {
            guard let equals = pair.firstIndex(of: "=") else { return nil }
            guard pair[..<equals].lowercased() == "for" else { continue }
            guard node == nil else { return nil }
            node = pair[pair.index(after: equals)...]
        }
        guard let node else { return nil }
        // A colon and a bracket can stand in quotes only.
        guard node.hasPrefix("\"") else { return node.contains { ":[]\"".contains($0) } ? nil : String(node) }
        let text = node.dropFirst().dropLast()
        // No address needs an escape.
        guard node.count > 1, node.hasSuffix("\""), !text.contains(where: { "\"\\".contains($0) }) else { return nil }
        return withoutPort(text)
    }

    /// IPv6 has to be in brackets.
    private static func withoutPort(_ node: Substring) -> String? {
        let isBracketed = node.hasPrefix("[")
        guard let end = isBracketed ? node.firstIndex(of: "]") : node.firstIndex(of: ":") ?? node.endIndex else {
            return nil
        }
        let host = isBracketed ? node[..<end].dropFirst() : node[..<end]
        let rest = isBracketed ? node[end...].dropFirst() : node[end...]
        guard !isBracketed || host.contains(":") else { return nil }
        guard !rest.isEmpty else { return String(host) }
        // RFC 7239, section 6, also has obfuscated ports; none of them changes the address.
        let port = rest.dropFirst()
        let isPort = port.utf8.allSatisfy { (0x30...0x39).contains($0) } && (1...5).contains(port.utf8.count)
        return rest.first == ":" && (isPort || port.hasPrefix("_")) ? String(host) : nil
    }

    private static func bits(of text: String) -> UInt128? {
        var (inet, inet6) = (in_addr(), in6_addr())
        if inet_pton(AF_INET, text, &inet) == 1 {
            return mappedPrefix | UInt128(UInt32(bigEndian: inet.s_addr))
        }
        guard inet_pton(AF_INET6, text, &inet6) == 1 else { return nil }
        return withUnsafeBytes(of: inet6) { $0.reduce(0) { $0 << 8 | UInt128($1) } }
    }

    private static func text(of bits: UInt128) -> String? {
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        withUnsafeMutableBytes(of: &address.sin6_addr) { $0.storeBytes(of: bits.bigEndian, as: UInt128.self) }
        return numericAddress(&address)?.host
    }

    private static let mappedPrefix: UInt128 = 0xFFFF << 32
}

extension HTTPField.Name {
    fileprivate static let forwarded = Self.name("Forwarded")
    fileprivate static let xForwardedFor = Self.name("X-Forwarded-For")

    private static func name(_ text: String) -> Self {
        guard let name = Self(text) else { preconditionFailure("the name of a field is a token") }
        return name
    }
}
