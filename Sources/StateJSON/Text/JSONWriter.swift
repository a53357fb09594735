/// The caller writes commas and braces, and keeps the JSON well formed.
package struct JSONWriter {
    package var bytes: [UInt8]

    package init(capacity: Int = 256) {
        bytes = []
        bytes.reserveCapacity(capacity)
    }

    @inline(__always)
    package mutating func raw(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    package mutating func raw(_ more: UnsafeBufferPointer<UInt8>) { bytes.append(contentsOf: more) }

    package mutating func raw(_ more: [UInt8]) { bytes.append(contentsOf: more) }

    package mutating func raw(_ more: some Collection<UInt8>) { bytes.append(contentsOf: more) }

    @inline(__always)
    package mutating func byte(_ byte: UInt8) { bytes.append(byte) }

    package mutating func bool(_ value: Bool) {
        if value { raw("true") } else { raw("false") }
    }

    package mutating func integer(_ value: some FixedWidthInteger) {
        if value < 0 { byte(UInt8(ascii: "-")) }
        var rest = UInt64(value.magnitude)
        var end = bytes.count
        repeat {
            let (quotient, remainder) = rest.quotientAndRemainder(dividingBy: 10)
            byte(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: remainder))
            rest = quotient
        } while rest > 0
        // The last digit came first.
        var start = end
        end = bytes.count - 1
        while start < end {
            bytes.swapAt(start, end)
            (start, end) = (start + 1, end - 1)
        }
    }

    /// The shortest form that reads back as the same value; false, with nothing appended, for NaN and the infinities.
    package mutating func number<Number: BinaryFloatingPoint & CustomStringConvertible>(_ value: Number) -> Bool {
        guard value.isFinite else { return false }
        // 2^53: up to here an integer spells every whole Double exactly.
        if value == value.rounded(.towardZero), value.magnitude <= 9_007_199_254_740_992 {
            // Minus zero becomes 0, because `-0` reads back as a whole number, which has no negative zero.
            integer(Int64(value))
            return true
        }
        bytes.append(contentsOf: value.description.utf8)
        return true
    }

    package mutating func string(_ value: String) { value.withBytes { string($0) } }

    static func mustEscape(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x22 || byte == 0x5C }

    /// The bytes are valid UTF-8.
    package mutating func string(_ utf8: UnsafeBufferPointer<UInt8>) {
        byte(UInt8(ascii: "\""))
        var clean = 0
        for index in utf8.indices {
            let character = utf8[index]
            guard Self.mustEscape(character) else { continue }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[clean..<index]))
            escape(character)
            clean = index + 1
        }
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[clean...]))
        byte(UInt8(ascii: "\""))
    }

    private mutating func escape(_ character: UInt8) {
        switch character {
        case UInt8(ascii: "\""): raw("\\\"")
        case UInt8(ascii: "\\"): raw("\\\\")
        case 0x08: raw("\\b")
        case 0x09: raw("\\t")
        case 0x0A: raw("\\n")
        case 0x0C: raw("\\f")
        case 0x0D: raw("\\r")
        default:
            let hexadecimal: StaticString = "0123456789abcdef"
            raw("\\u00")
            byte(hexadecimal.utf8Start[Int(character >> 4)])
            byte(hexadecimal.utf8Start[Int(character & 15)])
        }
    }

    @inline(__always)
    package mutating func separator(_ first: inout Bool) {
        if first { first = false } else { byte(UInt8(ascii: ",")) }
    }

    package mutating func array<Element>(
        _ elements: some Sequence<Element>, _ write: (Element, inout JSONWriter) -> Void
    ) {
        byte(UInt8(ascii: "["))
        var isFirst = true
        for element in elements {
            separator(&isFirst)
            write(element, &self)
        }
        byte(UInt8(ascii: "]"))
    }
}

/// The members of objects: the byte before a member says whether a comma comes between.
extension JSONWriter {
    package static func object(_ write: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.object(write)
        return writer.bytes
    }

    package mutating func object(_ write: (inout JSONWriter) throws -> Void) rethrows {
        byte(UInt8(ascii: "{"))
        try write(&self)
        byte(UInt8(ascii: "}"))
    }

    @inline(__always)
    package mutating func comma() {
        if bytes.last != UInt8(ascii: "{"), bytes.last != UInt8(ascii: "[") { byte(UInt8(ascii: ",")) }
    }

    /// The key must need no escapes.
    @inline(__always)
    package mutating func key(_ name: StaticString) {
        comma()
        byte(UInt8(ascii: "\""))
        raw(name)
        raw("\":")
    }

    package mutating func key(escaping name: String) {
        comma()
        string(name)
        byte(UInt8(ascii: ":"))
    }

    package mutating func member(_ name: StaticString, _ text: String?) {
        guard let text else { return }
        key(name)
        string(text)
    }

    package mutating func member(_ name: StaticString, _ number: some FixedWidthInteger) {
        key(name)
        integer(number)
    }

    package mutating func member(_ name: StaticString, _ flag: Bool) {
        key(name)
        bool(flag)
    }

    package mutating func member(_ name: StaticString, _ value: JSONValue) {
        key(name)
        value.write(to: &self)
    }

    package mutating func member(_ name: StaticString, json: some Collection<UInt8>) {
        key(name)
        raw(json)
    }
}
