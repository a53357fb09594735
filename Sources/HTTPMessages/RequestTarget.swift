/// A parsed request target: the path's segments and the query's parameters, each percent-decoded exactly once.
package struct RequestTarget: Sendable, Equatable {
    /// A query parameter.
    ///
    /// `?pretty` has no value; `?pretty=` has an empty one.
    package struct Parameter: Sendable, Equatable {
        /// The decoded name.
        package var name: String
        /// The decoded value, or nil where there is no `=`.
        package var value: String?
    }

    /// Why a target cannot be parsed.
    package struct Fault: Error, Sendable, Equatable {
        /// What is wrong, as a sentence that does not quote the target.
        package var detail: String
    }

    /// The path's segments: `/v1/state/a%2Fb` has `v1`, `state` and `a/b`.
    ///
    /// The path `/` has no segments.
    package var segments: [String]
    /// The query's parameters, in order.
    package var parameters: [Parameter]

    /// Parses a raw target.
    ///
    /// - Throws: ``Fault`` for a target that is not a path, a bad percent escape, or bytes that are not UTF-8.
    package init(_ target: String) throws(Fault) {
        let bytes = Self.originForm(target)
        let path = bytes.prefix { $0 != UInt8(ascii: "?") }
        guard path.first == UInt8(ascii: "/") else {
            throw Fault(detail: "the request target must be a path that begins with /")
        }
        segments = []
        // The path `/` has no segments.
        var rest = path.dropFirst().isEmpty ? path[path.endIndex...] : path
        while !rest.isEmpty {
            let segment = rest.dropFirst().prefix { $0 != UInt8(ascii: "/") }
            segments.append(try Self.decoded(segment, plusIsSpace: false))
            rest = rest[segment.endIndex...]
        }
        parameters = []
        guard path.endIndex < bytes.endIndex else { return }
        for pair in bytes[path.endIndex...].dropFirst().split(separator: UInt8(ascii: "&")) {
            let sides = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            parameters.append(
                Parameter(
                    name: try Self.decoded(sides[0], plusIsSpace: true),
                    value: sides.count == 2 ? try Self.decoded(sides[1], plusIsSpace: true) : nil))
        }
    }

    /// The authority in a target of absolute form, which counts in place of `Host` (RFC 9112, section 3.2.2).
    package static func authority(of target: String) -> Substring? {
        absoluteForm(target).map { Substring($0.authority) }
    }

    /// Splits a target that has the scheme and authority of a client of a proxy; nil where it has none.
    ///
    /// Bytes are compared: to Swift, a slash with a combining accent behind it is another character.
    private static func absoluteForm(
        _ target: String
    ) -> (authority: Substring.UTF8View, rest: Substring.UTF8View)? {
        for scheme in ["http://", "https://"] where target.utf8.starts(with: scheme.utf8) {
            let rest = target.utf8.dropFirst(scheme.utf8.count)
            let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
            return (authority, rest[authority.endIndex...])
        }
        return nil
    }

    /// Returns the bytes of a target without the scheme and authority that a client sends to a proxy (RFC 9112, section
    /// 3.2.2); an empty path is `/`.
    private static func originForm(_ target: String) -> [UInt8] {
        guard target.utf8.first != UInt8(ascii: "/"), let (_, rest) = absoluteForm(target) else {
            return Array(target.utf8)
        }
        return rest.first == UInt8(ascii: "/") ? Array(rest) : [UInt8(ascii: "/")] + rest
    }

    private static func decoded(_ encoded: ArraySlice<UInt8>, plusIsSpace: Bool) throws(Fault) -> String {
        // Most parts have no escapes. A part of a string that was split at ASCII is UTF-8.
        if !encoded.contains(where: { $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: "+") }) {
            return String(decoding: encoded, as: UTF8.self)
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(encoded.count)
        var rest = encoded
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(hexadecimal), let low = rest.popFirst().flatMap(hexadecimal)
                else {
                    throw Fault(detail: "a % in the request target must be followed by two hexadecimal digits")
                }
                bytes.append(high << 4 | low)
            case UInt8(ascii: "+") where plusIsSpace: bytes.append(UInt8(ascii: " "))
            default: bytes.append(byte)
            }
        }
        guard let string = String(validating: bytes, as: UTF8.self) else {
            throw Fault(detail: "the request target must be UTF-8 once its percent escapes are decoded")
        }
        return string
    }

    private static func hexadecimal(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
