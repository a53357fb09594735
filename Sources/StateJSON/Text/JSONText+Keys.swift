extension JSONText {
    /// A key as a string, without its escapes.
    func string(_ key: Span) -> String {
        let escaped = slice(key)
        guard escaped.contains(UInt8(ascii: "\\")) else { return String(decoding: escaped, as: UTF8.self) }
        // Few keys get here: the writer escapes only quotes, backslashes and control characters.
        var bytes: [UInt8] = []
        var index = 0
        while index < escaped.count {
            guard escaped[index] == UInt8(ascii: "\\") else {
                bytes.append(escaped[index])
                index += 1
                continue
            }
            switch escaped[index + 1] {
            case UInt8(ascii: "b"): bytes.append(0x08)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "f"): bytes.append(0x0C)
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "u"):
                // The writer spells only control characters below U+0020 this way.
                let digits = String(decoding: escaped[index + 2..<index + 6], as: UTF8.self)
                bytes.append(UInt8(digits, radix: 16) ?? UInt8(ascii: "?"))
                index += 4
            case let other: bytes.append(other)
            }
            index += 2
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
