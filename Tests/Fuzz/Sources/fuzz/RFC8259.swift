/// The grammar of JSON (RFC 8259, sections 2 to 8.1), independent of the parser that is checked.
struct RFC8259 {
    private let bytes: [UInt8]
    private var index = 0

    /// Whether bytes are a JSON text in UTF-8.
    static func accepts(_ bytes: [UInt8]) -> Bool {
        guard String(validating: bytes, as: UTF8.self) != nil else { return false }
        var grammar = RFC8259(bytes: bytes)
        return grammar.element(depth: 0) && grammar.index == bytes.count
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private mutating func take(_ wanted: Character) -> Bool {
        guard index < bytes.count, bytes[index] == wanted.asciiValue else { return false }
        index += 1
        return true
    }

    private mutating func takeAll(_ isWanted: (UInt8) -> Bool) -> Int {
        let start = index
        while index < bytes.count, isWanted(bytes[index]) { index += 1 }
        return index - start
    }

    private mutating func space() { _ = takeAll { [0x20, 0x09, 0x0A, 0x0D].contains($0) } }

    private mutating func element(depth: Int) -> Bool {
        space()
        guard depth < 2000, value(depth: depth) else { return false }
        space()
        return true
    }

    private mutating func value(depth: Int) -> Bool {
        if take("{") {
            return list(until: "}") {
                $0.space(); return $0.string() && $0.colon() && $0.element(depth: depth + 1)
            }
        }
        if take("[") { return list(until: "]") { $0.element(depth: depth + 1) } }
        if index < bytes.count, bytes[index] == UInt8(ascii: "\"") { return string() }
        for literal in ["true", "false", "null"] where bytes[index...].starts(with: literal.utf8) {
            index += literal.utf8.count
            return true
        }
        return number()
    }

    private mutating func colon() -> Bool {
        space()
        return take(":")
    }

    private mutating func list(until end: Character, _ member: (inout RFC8259) -> Bool) -> Bool {
        space()
        if take(end) { return true }
        while true {
            guard member(&self) else { return false }
            space()
            if take(end) { return true }
            guard take(",") else { return false }
        }
    }

    private mutating func string() -> Bool {
        guard take("\"") else { return false }
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""):
                index += 1
                return true
            case UInt8(ascii: "\\"):
                index += 1
                guard index < bytes.count else { return false }
                index += 1
                if bytes[index - 1] == UInt8(ascii: "u") {
                    let digits = bytes[index...].prefix(4)
                    let isHexadecimal = digits.allSatisfy { Character(UnicodeScalar($0)).isHexDigit && $0 < 0x80 }
                    guard digits.count == 4, isHexadecimal else { return false }
                    index += 4
                } else if !"\"\\/bfnrt".utf8.contains(bytes[index - 1]) {
                    return false
                }
            case 0..<0x20: return false
            default: index += 1
            }
        }
        return false
    }

    private mutating func number() -> Bool {
        let isDigit = { (byte: UInt8) in (0x30...0x39).contains(byte) }
        _ = take("-")
        if !take("0") { guard takeAll(isDigit) > 0 else { return false } }
        if take(".") { guard takeAll(isDigit) > 0 else { return false } }
        if take("e") || take("E") {
            _ = take("+") || take("-")
            guard takeAll(isDigit) > 0 else { return false }
        }
        return true
    }
}
