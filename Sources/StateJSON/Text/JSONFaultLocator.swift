/// Finds the pointer of the first fault in a text that simdjson has refused; its code is simple rather than fast.
struct JSONFaultLocator {
    private let bytes: [UInt8]
    private var index = 0
    private var path: [String] = []

    private struct Stop: Error {
        var kind = JSONFault.Kind.malformed
        var detail: String
    }

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Where the parser finds no fault, a number has no value that can be represented.
    mutating func locate() -> JSONFault {
        do throws(Stop) {
            skipSpace()
            try value(depth: 0)
            skipSpace()
            guard index == bytes.count else { throw Stop(detail: "expected the end of the text, found \(found)") }
        } catch {
            return JSONFault(error.kind, at: JSONPointer(path), "\(error.detail) at byte \(index)")
        }
        return JSONFault(.malformed, at: .root, "a number in it has no value that can be represented")
    }

    static func firstInvalidUTF8(in bytes: [UInt8]) -> Int {
        var decoder = UTF8()
        var iterator = bytes.makeIterator()
        var valid = 0
        while case .scalarValue(let scalar) = decoder.decode(&iterator) { valid += UTF8.width(scalar) }
        return valid
    }

    private var found: String {
        guard index < bytes.count else { return "the end of the text" }
        let byte = bytes[index]
        return (0x21...0x7E).contains(byte)
            ? "'\(Character(UnicodeScalar(byte)))'" : "byte 0x\(String(byte, radix: 16))"
    }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skipSpace() {
        while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { index += 1 }
    }

    private mutating func value(depth: Int) throws(Stop) {
        // simdjson has a lower limit; this one bounds the recursion here.
        guard depth < 1100 else { throw Stop(detail: "nested too deep") }
        switch next {
        case UInt8(ascii: "{"): try object(depth: depth)
        case UInt8(ascii: "["): try array(depth: depth)
        case UInt8(ascii: "\""): try string()
        case UInt8(ascii: "t"): try literal("true")
        case UInt8(ascii: "f"): try literal("false")
        case UInt8(ascii: "n"): try literal("null")
        case let byte? where byte == UInt8(ascii: "-") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte):
            try number()
        default: throw Stop(detail: "expected a value, found \(found)")
        }
    }

    private mutating func object(depth: Int) throws(Stop) {
        index += 1
        skipSpace()
        if next == UInt8(ascii: "}") {
            index += 1
            return
        }
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw Stop(detail: "expected a key in quotes, found \(found)") }
            let start = index
            try string()
            path.append(Self.name(bytes[start..<index]))
            skipSpace()
            guard next == UInt8(ascii: ":") else { throw Stop(detail: "expected ':', found \(found)") }
            index += 1
            skipSpace()
            try value(depth: depth + 1)
            path.removeLast()
            skipSpace()
            switch next {
            case UInt8(ascii: ","): index += 1
            case UInt8(ascii: "}"):
                index += 1
                return
            default: throw Stop(detail: "expected ',' or '}', found \(found)")
            }
        }
    }

    private mutating func array(depth: Int) throws(Stop) {
        index += 1
        skipSpace()
        if next == UInt8(ascii: "]") {
            index += 1
            return
        }
        var offset = 0
        while true {
            path.append(String(offset))
            skipSpace()
            try value(depth: depth + 1)
            path.removeLast()
            skipSpace()
            switch next {
            case UInt8(ascii: ","):
                index += 1
                offset += 1
            case UInt8(ascii: "]"):
                index += 1
                return
            default: throw Stop(detail: "expected ',' or ']', found \(found)")
            }
        }
    }

    private static func name(_ key: ArraySlice<UInt8>) -> String {
        if case .string(let name)? = try? JSONValue(parsing: Array(key)) { return name }
        return String(decoding: key.dropFirst().dropLast(), as: UTF8.self)
    }

    private mutating func string() throws(Stop) {
        index += 1
        while let byte = next, byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 else {
                throw Stop(detail: "a control character in a string must be escaped, found \(found)")
            }
            if byte == UInt8(ascii: "\\") {
                index += 1
                guard let escaped = next, #""\/bfnrtu"#.utf8.contains(escaped) else {
                    throw Stop(detail: "expected an escape that JSON has, found \(found)")
                }
                if escaped == UInt8(ascii: "u") { try unicodeEscape() }
            }
            index += 1
        }
        guard next != nil else { throw Stop(detail: "expected '\"' at the end of a string, found \(found)") }
        index += 1
    }

    /// Reads the rest of an escape `\uXXXX`, and a second one behind the first half of a character; ends at the last digit.
    private mutating func unicodeEscape() throws(Stop) {
        let start = index - 1
        let unit = try fourDigits()
        var isWhole = !(0xD800...0xDFFF).contains(unit)
        if unit >> 10 == 0xD800 >> 10, bytes[(index + 1)...].starts(with: #"\u"#.utf8) {
            index += 2
            isWhole = try fourDigits() >> 10 == 0xDC00 >> 10
        }
        guard isWhole else {
            index = start
            throw Stop(detail: "an escape is half of a surrogate pair,")
        }
    }

    private mutating func fourDigits() throws(Stop) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            index += 1
            guard let digit = next.flatMap({ Character(UnicodeScalar($0)).hexDigitValue }) else {
                throw Stop(detail: "expected a hexadecimal digit, found \(found)")
            }
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }

    private mutating func literal(_ text: StaticString) throws(Stop) {
        for offset in 0..<text.utf8CodeUnitCount {
            guard next == text.utf8Start[offset] else { throw Stop(detail: "expected \(text), found \(found)") }
            index += 1
        }
    }

    private mutating func number() throws(Stop) {
        let start = index
        if next == UInt8(ascii: "-") { index += 1 }
        let wholeStart = index
        try digits()
        if bytes[wholeStart] == UInt8(ascii: "0"), index > wholeStart + 1 {
            throw Stop(detail: "a number must not begin with a zero,")
        }
        if next == UInt8(ascii: ".") {
            index += 1
            try digits()
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            index += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { index += 1 }
            try digits()
        }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        guard Double(text)?.isFinite == true else {
            throw Stop(
                kind: .numberOutOfRange, detail: "the number is out of the range of 64-bit floating point, read")
        }
    }

    private mutating func digits() throws(Stop) {
        let start = index
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { index += 1 }
        guard index > start else { throw Stop(detail: "expected a digit, found \(found)") }
    }
}
