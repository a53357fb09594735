/// RFC 6901; pointers are equal when their tokens are the same bytes: Swift's string equality would take two spellings
/// of one accented letter for the same key.
package struct JSONPointer: Sendable {
    /// Unescaped, outermost first; empty for the whole document.
    package var tokens: [String]

    package static let root = JSONPointer([])

    /// As many as the most levels of a state.
    package static var tokensMax: Int { 1000 }

    package init(_ tokens: [String]) {
        self.tokens = tokens
    }

    /// Nil when the text does not begin with `/`, has more than ``tokensMax`` tokens, or a `~` that neither `0` nor `1`
    /// follows.
    package init?(text: String) {
        guard !text.utf8.isEmpty else {
            self = .root
            return
        }
        let tokens = text.withBytes { text -> [String]? in
            let slash = UInt8(ascii: "/")
            guard text.first == slash else { return nil }
            var tokens: [String] = []
            tokens.reserveCapacity(min(text.count { $0 == slash }, JSONPointer.tokensMax))
            var (start, hasEscape) = (1, false)
            for end in 1...text.count {
                guard end == text.count || text[end] == slash else {
                    if text[end] == UInt8(ascii: "~") { hasEscape = true }
                    continue
                }
                let part = UnsafeBufferPointer(rebasing: text[start..<end])
                guard tokens.count < JSONPointer.tokensMax,
                    let token = hasEscape ? JSONPointer.unescape(part) : String(decoding: part, as: UTF8.self)
                else { return nil }
                tokens.append(token)
                (start, hasEscape) = (end + 1, false)
            }
            return tokens
        }
        guard let tokens else { return nil }
        self.tokens = tokens
    }

    package static func expectation(of text: String) -> String {
        guard text.utf8.first == UInt8(ascii: "/") else { return "expected a JSON Pointer, empty or beginning with /" }
        return text.utf8.count(where: { $0 == UInt8(ascii: "/") }) > tokensMax
            ? "expected a JSON Pointer with at most \(tokensMax) parts"
            : "expected a JSON Pointer, in which each ~ is followed by 0 (for ~) or 1 (for /)"
    }

    /// Nil when a `~` is followed by neither `0` nor `1`.
    package static func unescape(_ escaped: some Collection<UInt8>) -> String? {
        guard escaped.contains(UInt8(ascii: "~")) else { return String(decoding: escaped, as: UTF8.self) }
        var bytes: [UInt8] = []
        var rest = escaped[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "~") else {
                bytes.append(byte)
                continue
            }
            switch rest.popFirst() {
            case UInt8(ascii: "0"): bytes.append(UInt8(ascii: "~"))
            case UInt8(ascii: "1"): bytes.append(UInt8(ascii: "/"))
            default: return nil
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    package func appending(_ token: String) -> JSONPointer {
        JSONPointer(tokens + [token])
    }

    /// Equal, or one inside the other's value.
    package func overlaps(_ other: JSONPointer) -> Bool {
        for index in 0..<min(tokens.count, other.tokens.count)
        where !JSONPointer.sameBytes(tokens[index], other.tokens[index]) { return false }
        return true
    }

    /// Equal strings in Swift can have different bytes.
    package static func sameBytes(_ left: String, _ right: String) -> Bool {
        guard left.utf8.count == right.utf8.count else { return false }
        return left.withBytes { left in right.withBytes { left.hasBytes(of: $0) } }
    }

    /// Nil unless the token is digits without a leading zero.
    package static func index(_ token: String) -> Int? {
        let digits = token.utf8
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }), digits.count == 1 || digits.first != UInt8(ascii: "0")
        else { return nil }
        return Int(token)
    }
}

extension JSONPointer: CustomStringConvertible {
    package var description: String {
        var text: [UInt8] = []
        text.reserveCapacity(tokens.reduce(0) { $0 + 1 + $1.utf8.count })
        for token in tokens { token.withBytes { JSONPatch.append($0, to: &text) } }
        return String(decoding: text, as: UTF8.self)
    }

    /// Cut behind 200 characters.
    package var shown: String {
        let text = description
        return text.utf8.count > 200 ? String(text.unicodeScalars.prefix(200)) + "..." : text
    }
}

extension JSONPointer: Hashable {
    package static func == (left: JSONPointer, right: JSONPointer) -> Bool {
        guard left.tokens.count == right.tokens.count else { return false }
        // A client's pointer can be long, and is mostly compared with a copy of itself.
        let isCopy = left.tokens.withUnsafeBufferPointer { left in
            right.tokens.withUnsafeBufferPointer { left.baseAddress == $0.baseAddress }
        }
        return isCopy || zip(left.tokens, right.tokens).allSatisfy(sameBytes)
    }

    package func hash(into hasher: inout Hasher) {
        for var token in tokens {
            token.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
            // UTF-8 never has this byte, so it separates the tokens.
            hasher.combine(UInt8(0xFF))
        }
    }
}

extension JSONPointer: ExpressibleByStringLiteral {
    /// The literal has to be a JSON Pointer.
    package init(stringLiteral text: String) {
        guard let pointer = JSONPointer(text: text) else {
            preconditionFailure("\"\(text)\" is not a JSON Pointer: it must be empty or begin with /")
        }
        self = pointer
    }
}
