/// A reader of the one spelling of JSON that has no white space, no escapes and no numbers but whole ones.
///
/// It goes through a text once, and says of each part whether it has that spelling. What it accepts, as a whole, is JSON that
/// ``JSONDocument`` reads in the same way; what it refuses may be JSON in another spelling.
package struct PlainScanner {
    private let bytes: UnsafeBufferPointer<UInt8>
    /// The offset of the next byte.
    package private(set) var index = 0
    /// Whether a string has bytes beyond ASCII, which nobody has checked.
    package private(set) var hasUnicode = false
    /// An object with more members is left to ``JSONDocument``.
    private static let membersMax = 8

    /// Begins at the first byte of a text, which has to outlive this value.
    package init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    /// Whether all bytes have been read.
    package var isAtEnd: Bool { index == bytes.count }

    /// Skips these bytes, if they come next.
    package mutating func skip(_ expected: [UInt8]) -> Bool { expected.withUnsafeBufferPointer { skip($0) } }

    /// Skips these bytes, if they come next.
    package mutating func skip(_ expected: StaticString) -> Bool {
        skip(UnsafeBufferPointer(start: expected.utf8Start, count: expected.utf8CodeUnitCount))
    }

    /// Skips a byte, if it comes next.
    package mutating func skip(_ expected: UInt8) -> Bool {
        guard index < bytes.count, bytes[index] == expected else { return false }
        index += 1
        return true
    }

    private mutating func skip(_ expected: UnsafeBufferPointer<UInt8>) -> Bool {
        guard bytes.count - index >= expected.count,
            UnsafeBufferPointer(rebasing: bytes[index..<index + expected.count]).hasBytes(of: expected)
        else { return false }
        index += expected.count
        return true
    }

    /// Reads a string without escapes; returns where its content lies.
    package mutating func string() -> Range<Int>? {
        guard skip(UInt8(ascii: "\"")) else { return nil }
        let start = index
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\"") {
                index += 1
                return start..<index - 1
            }
            if byte < 0x20 || byte == UInt8(ascii: "\\") { return nil }
            if byte >= 0x80 { hasUnicode = true }
            index += 1
        }
        return nil
    }

    /// Reads a whole number of at most `digitsMax` digits, of which minus zero is another spelling; returns where it lies.
    package mutating func integer(digitsMax: Int) -> Range<Int>? {
        let start = index
        let isNegative = skip(UInt8(ascii: "-"))
        let first = index
        while index < bytes.count, bytes[index] &- UInt8(ascii: "0") < 10 { index += 1 }
        guard (1...digitsMax).contains(index - first) else { return nil }
        if bytes[first] == UInt8(ascii: "0"), isNegative || index - first > 1 { return nil }
        return start..<index
    }

    /// Reads `true` or `false`; returns where it lies.
    package mutating func boolean() -> Range<Int>? {
        let start = index
        return skip("true") || skip("false") ? start..<index : nil
    }

    /// Reads an object whose keys differ.
    ///
    /// - Parameter depthMax: how many levels of objects and arrays it may have.
    package mutating func object(depthMax: Int) -> Range<Int>? {
        let start = index
        guard depthMax > 0, skip(UInt8(ascii: "{")) else { return nil }
        if skip(UInt8(ascii: "}")) { return start..<index }
        var keys = SIMD16<UInt32>()
        var count = 0
        repeat {
            guard count < Self.membersMax, let key = string(), isNew(key, among: keys, count),
                skip(UInt8(ascii: ":")), value(depthMax: depthMax - 1)
            else { return nil }
            keys[2 * count] = UInt32(truncatingIfNeeded: key.lowerBound)
            keys[2 * count + 1] = UInt32(truncatingIfNeeded: key.upperBound)
            count += 1
        } while skip(UInt8(ascii: ","))
        return skip(UInt8(ascii: "}")) ? start..<index : nil
    }

    private func isNew(_ key: Range<Int>, among keys: SIMD16<UInt32>, _ count: Int) -> Bool {
        // The places fit into 32 bits.
        guard key.upperBound <= UInt32.max else { return false }
        let name = UnsafeBufferPointer(rebasing: bytes[key])
        for other in 0..<count {
            let range = Int(keys[2 * other])..<Int(keys[2 * other + 1])
            if UnsafeBufferPointer(rebasing: bytes[range]).hasBytes(of: name) { return false }
        }
        return true
    }

    private mutating func value(depthMax: Int) -> Bool {
        guard index < bytes.count else { return false }
        switch bytes[index] {
        case UInt8(ascii: "\""): return string() != nil
        case UInt8(ascii: "{"): return object(depthMax: depthMax) != nil
        case UInt8(ascii: "["): return array(depthMax: depthMax)
        case UInt8(ascii: "t"): return skip("true")
        case UInt8(ascii: "f"): return skip("false")
        case UInt8(ascii: "n"): return skip("null")
        default: return integer(digitsMax: 18) != nil
        }
    }

    private mutating func array(depthMax: Int) -> Bool {
        guard depthMax > 0, skip(UInt8(ascii: "[")) else { return false }
        if skip(UInt8(ascii: "]")) { return true }
        repeat {
            guard value(depthMax: depthMax - 1) else { return false }
        } while skip(UInt8(ascii: ","))
        return skip(UInt8(ascii: "]"))
    }
}
