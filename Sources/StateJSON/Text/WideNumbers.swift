/// Whole numbers that do not fit 64 bits, which simdjson refuses; JavaScript writes 1e20 as `100000000000000000000`.
enum WideNumbers {
    /// An exponent behind each of them makes simdjson read them; nil without such a number; O(n).
    static func asFloatingPoint(_ bytes: [UInt8]) -> [UInt8]? {
        var result: [UInt8] = []
        var (kept, index) = (0, 0)
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""):
                index += 1
                while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
                    index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
                }
                index += 1
            case 0x30...0x39:
                let start = index
                let isNegative = start > 0 && bytes[start - 1] == UInt8(ascii: "-")
                while index < bytes.count, (0x30...0x39).contains(bytes[index]) { index += 1 }
                // Digits behind a point or in an exponent belong to a floating-point number already.
                let before = start - (isNegative ? 2 : 1)
                let isFraction = before >= 0 && [0x2E, 0x45, 0x65, 0x2B].contains(bytes[before])
                let isFollowed = index < bytes.count && [0x2E, 0x45, 0x65].contains(bytes[index])
                guard index - start >= 19, !isFraction, !isFollowed,
                    !fits(bytes[start..<index], isNegative: isNegative)
                else { continue }
                result += bytes[kept..<index]
                result += "e0".utf8
                kept = index
            default: index += 1
            }
        }
        return kept > 0 ? result + bytes[kept...] : nil
    }

    private static func fits(_ digits: ArraySlice<UInt8>, isNegative: Bool) -> Bool {
        let text = String(decoding: digits, as: UTF8.self)
        return isNegative ? Int64("-" + text) != nil : UInt64(text) != nil
    }
}
