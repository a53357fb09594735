extension JSONText {
    /// The next number in a JSON text at an offset or behind it, outside strings, or nil.
    static func nextNumber(in bytes: [UInt8], from start: Int) -> Range<Int>? {
        var index = start
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""): index = endOfString(index, in: bytes)
            case UInt8(ascii: "-"), 0x30...0x39:
                let end = bytes[index...].firstIndex { !isOfNumber($0) } ?? bytes.count
                return index..<end
            default: index += 1
            }
        }
        return nil
    }

    private static func isOfNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }

    /// The index behind the string that begins at an index of a JSON text.
    private static func endOfString(_ start: Int, in bytes: [UInt8]) -> Int {
        var index = start + 1
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return index + 1
    }

    /// The same JSON without the white space between its parts; strings and numbers keep their spelling.
    ///
    /// O(n); a text without white space is not copied.
    package static func minified(_ bytes: [UInt8]) -> [UInt8] {
        // Programs send none, not even in strings.
        if !hasSpace(bytes) { return bytes }
        var (result, kept, index) = ([UInt8](), 0, 0)
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""): index = endOfString(index, in: bytes)
            case 0x20, 0x09, 0x0A, 0x0D:
                result += bytes[kept..<index]
                index += 1
                kept = index
            default: index += 1
            }
        }
        return kept == 0 ? bytes : result + bytes[kept...]
    }

    /// Whether a text has a space or a control character, eight bytes at a time.
    private static func hasSpace(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var index = 0
            while index + 8 <= bytes.count {
                // The highest bit of a byte stays where the byte is below 0x21, and of some behind such a byte.
                let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                if (word &- 0x2121_2121_2121_2121) & ~word & 0x8080_8080_8080_8080 != 0 { return true }
                index += 8
            }
            return bytes[index...].contains { $0 <= 0x20 }
        }
    }

    /// Where the elements of an array lie in its minified text.
    package static func elements(of bytes: [UInt8]) -> [Range<Int>] {
        bytes.withUnsafeBufferPointer { JSONText($0).elements(0..<bytes.count) }
    }

    /// The members of an object in a minified text: the key without its escapes, where the member lies, and where its value
    /// does.
    package static func members(
        of bytes: [UInt8], in span: Range<Int>
    ) -> [(key: String, span: Range<Int>, value: Range<Int>)] {
        bytes.withUnsafeBufferPointer { buffer in
            let text = JSONText(buffer)
            return text.members(span).map {
                (text.string($0.key), $0.key.lowerBound - 1..<$0.value.upperBound, $0.value)
            }
        }
    }
}
