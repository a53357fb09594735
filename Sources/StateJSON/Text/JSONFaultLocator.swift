/// Simple rather than fast: simdjson has refused the text already.
struct JSONFaultLocator {
    private let bytes: [UInt8]
    private var index = 0
    private var path: [String] = []

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Where the parser finds no fault, a number has no value that can be represented.
    mutating func locate() -> JSONFault {
        do throws(JSONFault) {
            skipSpace()
            try value(depth: 0)
            skipSpace()
            guard index == bytes.count else { throw expected("expected the end of the text") }
        } catch {
            return error
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

    private func fault(_ detail: String, _ kind: JSONFault.Kind = .malformed) -> JSONFault {
        JSONFault(kind, at: JSONPointer(path), "\(detail) at byte \(index)")
    }

    private func expected(_ what: String) -> JSONFault {
        let found: String? = next.map { byte in
            (0x21...0x7E).contains(byte)
                ? "'\(Character(UnicodeScalar(byte)))'" : "byte 0x\(String(byte, radix: 16))"
        }
        return fault("\(what), found \(found ?? "the end of the text")")
    }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skip(_ expected: Unicode.Scalar...) -> Bool {
        guard let byte = next, expected.contains(Unicode.Scalar(byte)) else { return false }
        index += 1
        return true
    }

    private mutating func skipSpace() { while skip(" ", "\t", "\n", "\r") {} }

    private mutating func value(depth: Int) throws(JSONFault) {
        // simdjson has a lower limit; this one bounds the recursion here.
        guard depth < 1100 else { throw fault("nested too deep") }
        switch next {
        case UInt8(ascii: "{"):
            try children("}") { (locator, _) throws(JSONFault) in
                guard locator.next == UInt8(ascii: "\"") else { throw locator.expected("expected a key in quotes") }
                let start = locator.index
                try locator.string()
                let key = locator.bytes[start..<locator.index]
                locator.path.append(key.withUnsafeBufferPointer { JSONText($0).string(1..<$0.count - 1) })
                locator.skipSpace()
                guard locator.skip(":") else { throw locator.expected("expected ':'") }
                locator.skipSpace()
                try locator.value(depth: depth + 1)
            }
        case UInt8(ascii: "["):
            try children("]") { (locator, offset) throws(JSONFault) in
                locator.path.append(String(offset))
                try locator.value(depth: depth + 1)
            }
        case UInt8(ascii: "\""): try string()
        case UInt8(ascii: "t"): try literal("true")
        case UInt8(ascii: "f"): try literal("false")
        case UInt8(ascii: "n"): try literal("null")
        case let byte? where byte == UInt8(ascii: "-") || (0x30...0x39).contains(byte): try number()
        default: throw expected("expected a value")
        }
    }

    private mutating func children(
        _ end: Unicode.Scalar, _ child: (inout Self, _ offset: Int) throws(JSONFault) -> Void
    ) throws(JSONFault) {
        index += 1
        skipSpace()
        var offset = 0
        while !skip(end) {
            if offset > 0, !skip(",") { throw expected("expected ',' or '\(end)'") }
            skipSpace()
            try child(&self, offset)
            path.removeLast()
            skipSpace()
            offset += 1
        }
    }

    private mutating func string() throws(JSONFault) {
        index += 1
        while let byte = next, byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 else { throw expected("a control character in a string must be escaped") }
            index += 1
            guard byte == UInt8(ascii: "\\") else { continue }
            let start = index
            guard skip("\"", "\\", "/", "b", "f", "n", "r", "t", "u") else {
                throw expected("expected an escape that JSON has")
            }
            if bytes[start] == UInt8(ascii: "u") { try unicodeEscape(at: start - 1) }
        }
        guard skip("\"") else { throw expected("expected '\"' at the end of a string") }
    }

    private mutating func unicodeEscape(at start: Int) throws(JSONFault) {
        let unit = try fourDigits()
        var isWhole = !(0xD800...0xDFFF).contains(unit)
        if unit >> 10 == 0xD800 >> 10, bytes[index...].starts(with: #"\u"#.utf8) {
            index += 2
            isWhole = try fourDigits() >> 10 == 0xDC00 >> 10
        }
        guard isWhole else {
            index = start
            throw fault("an escape is half of a surrogate pair,")
        }
    }

    private mutating func fourDigits() throws(JSONFault) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = next.flatMap({ Character(UnicodeScalar($0)).hexDigitValue }) else {
                throw expected("expected a hexadecimal digit")
            }
            unit = unit << 4 | UInt32(digit)
            index += 1
        }
        return unit
    }

    private mutating func literal(_ text: String) throws(JSONFault) {
        for scalar in text.unicodeScalars {
            guard skip(scalar) else { throw expected("expected \(text)") }
        }
    }

    private mutating func number() throws(JSONFault) {
        let start = index
        _ = skip("-")
        let wholeStart = index
        try digits()
        if bytes[wholeStart] == UInt8(ascii: "0"), index > wholeStart + 1 {
            throw fault("a number must not begin with a zero,")
        }
        if skip(".") { try digits() }
        if skip("e", "E") {
            _ = skip("+", "-")
            try digits()
        }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        guard Double(text)?.isFinite == true else {
            throw fault("the number is out of the range of 64-bit floating point, read", .numberOutOfRange)
        }
    }

    private mutating func digits() throws(JSONFault) {
        let start = index
        while let byte = next, (0x30...0x39).contains(byte) { index += 1 }
        guard index > start else { throw expected("expected a digit") }
    }
}

package struct JSONFault: Error, Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        case malformed
        /// RFC 8259, section 6, lets a receiver limit the range.
        case numberOutOfRange
        case duplicateKey
        case tooDeep
        case mismatch
        case schema
    }

    package var place: String { pointer.tokens.isEmpty ? "its root" : pointer.description }

    package var kind: Kind
    package var pointer: JSONPointer
    package var detail: String

    package init(_ kind: Kind, at pointer: JSONPointer, _ detail: String) {
        self.kind = kind
        self.pointer = pointer
        self.detail = detail
    }
}
