/// A parsed request target: the path's segments and the query's parameters, each percent-decoded exactly once.
package struct RequestTarget: Sendable, Equatable {
    /// A query parameter: `?pretty` has no value, and `?pretty=` has an empty one.
    package struct Parameter: Sendable, Equatable {
        package var name: String
        package var value: String?
    }

    package struct Fault: Error, Sendable, Equatable {
        package var detail: String
    }

    /// The path's segments: `/v1/state/a%2Fb` has `v1`, `state` and `a/b`, and `/` has none.
    package var segments: [String]
    package var parameters: [Parameter]

    /// Parses a raw target, which must be a path with good percent escapes of UTF-8.
    package init(_ target: String) throws(Fault) {
        segments = []
        // Most paths have fewer: the array is then made once.
        segments.reserveCapacity(6)
        parameters = []
        var origin = Self.originForm(target)
        let fault: Fault? = origin.withUTF8 { bytes in
            do throws(Fault) {
                try parse(bytes)
                return nil
            } catch {
                return error
            }
        }
        if let fault { throw fault }
    }

    private mutating func parse(_ bytes: UnsafeBufferPointer<UInt8>) throws(Fault) {
        guard bytes.first == UInt8(ascii: "/") else {
            throw Fault(detail: "the request target must be a path that begins with /")
        }
        let pathEnd = Self.index(of: UInt8(ascii: "?"), in: bytes[...])
        var rest = bytes[1..<pathEnd]
        while pathEnd > 1 {
            let end = Self.index(of: UInt8(ascii: "/"), in: rest)
            segments.append(try Self.decoded(rest[..<end], plusIsSpace: false))
            guard end < pathEnd else { break }
            rest = rest[(end + 1)...]
        }
        rest = bytes[pathEnd...].dropFirst()
        while !rest.isEmpty {
            let end = Self.index(of: UInt8(ascii: "&"), in: rest)
            let pair = rest[..<end]
            rest = rest[end...].dropFirst()
            guard !pair.isEmpty else { continue }
            let nameEnd = Self.index(of: UInt8(ascii: "="), in: pair)
            let name = try Self.decoded(pair[..<nameEnd], plusIsSpace: true)
            let value = nameEnd < end ? try Self.decoded(pair[(nameEnd + 1)...], plusIsSpace: true) : nil
            parameters.append(Parameter(name: name, value: value))
        }
    }

    private static func index(of byte: UInt8, in bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Int {
        let base = bytes.base
        var index = bytes.startIndex
        while index < bytes.endIndex, base[index] != byte { index += 1 }
        return index
    }

    /// The authority in a target of absolute form, which counts in place of `Host` (RFC 9112, section 3.2.2).
    package static func authority(of target: String) -> Substring? {
        absoluteForm(target).map { Substring($0.authority) }
    }

    /// Bytes are compared: to Swift, a slash with a combining accent behind it is another character.
    private static func absoluteForm(_ target: String) -> (authority: Substring.UTF8View, rest: Substring.UTF8View)? {
        guard target.utf8.first != UInt8(ascii: "/") else { return nil }
        for scheme in ["http://", "https://"] where target.utf8.starts(with: scheme.utf8) {
            let rest = target.utf8.dropFirst(scheme.utf8.count)
            let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
            return (authority, rest[authority.endIndex...])
        }
        return nil
    }

    /// The target without scheme and authority (RFC 9112, section 3.2.2); an empty path is `/`.
    package static func originForm(_ target: String) -> String {
        guard let (_, rest) = absoluteForm(target) else { return target }
        return rest.first == UInt8(ascii: "/") ? String(Substring(rest)) : "/\(Substring(rest))"
    }

    private static func decoded(
        _ encoded: Slice<UnsafeBufferPointer<UInt8>>, plusIsSpace: Bool
    ) throws(Fault) -> String {
        // Most parts have no escapes. A part of a string that was split at ASCII is UTF-8.
        if index(of: UInt8(ascii: "%"), in: encoded) == encoded.endIndex,
            index(of: UInt8(ascii: "+"), in: encoded) == encoded.endIndex
        {
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
