/// The value of `If-Match` or `If-None-Match` (RFC 9110, section 13.1).
package enum EntityTagCondition: Sendable, Equatable {
    case any
    case tags([EntityTag])

    package struct EntityTag: Sendable, Equatable {
        package var opaque: String
        package var isWeak: Bool
    }

    package init?(_ value: String) {
        let value = value[...].utf8.trimmingSpaces
        if value.elementsEqual("*".utf8) {
            self = .any
            return
        }
        var tags: [EntityTag] = []
        var rest = value[...]
        while true {
            // A list may have empty elements (RFC 9110, section 5.6.1.2).
            while let first = rest.first, [0x20, 0x09, UInt8(ascii: ",")].contains(first) { rest = rest.dropFirst() }
            guard !rest.isEmpty else { break }
            let isWeak = rest.starts(with: "W/".utf8)
            if isWeak { rest = rest.dropFirst(2) }
            guard rest.popFirst() == UInt8(ascii: "\""), let end = rest.firstIndex(of: UInt8(ascii: "\"")) else {
                return nil
            }
            tags.append(EntityTag(opaque: String(Substring(rest[..<end])), isWeak: isWeak))
            rest = rest[rest.index(after: end)...].trimmingSpaces
            guard rest.isEmpty || rest.first == UInt8(ascii: ",") else { return nil }
        }
        guard !tags.isEmpty else { return nil }
        self = .tags(tags)
    }
}

extension Substring.UTF8View {
    var trimmingSpaces: Substring.UTF8View {
        var rest = self
        while let first = rest.first, first == 0x20 || first == 0x09 { rest = rest.dropFirst() }
        while let last = rest.last, last == 0x20 || last == 0x09 { rest = rest.dropLast() }
        return rest
    }

    /// The separators in quotes do not count; the last quote may have no end.
    package func split(outsideQuotes separator: UInt8) -> (parts: [Substring], isOpen: Bool) {
        var (isQuoted, isEscaped) = (false, false)
        let parts = split(omittingEmptySubsequences: false) { byte in
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\"") {
                isQuoted.toggle()
            } else {
                isEscaped = isQuoted && byte == UInt8(ascii: "\\")
            }
            return byte == separator && !isQuoted
        }
        return (parts.map { Substring($0.trimmingSpaces) }, isQuoted)
    }
}

extension Substring {
    package func trimmingSpaces() -> Substring { Substring(utf8.trimmingSpaces) }
}
