internal import StateJSON

/// Hands out a value as texts of JSON, one after the other.
///
/// An object can come as several objects, which have its members in their order. Every other value comes as one text, and a
/// place without a value as none.
package typealias MemberTexts = (_ take: ([UInt8]) throws -> Void) throws -> Void

/// An object as texts of about 16 KiB, which stay in a processor's cache while they are written and parsed.
struct ObjectTexts {
    private static let bytesMax = 16 << 10

    private var writer = JSONWriter(capacity: bytesMax + 1024)
    private var (isFirst, isEmpty) = (true, true)

    mutating func add(to take: ([UInt8]) throws -> Void, _ write: (inout JSONWriter) throws -> Void) throws {
        isEmpty = false
        if isFirst { writer.byte(UInt8(ascii: "{")) }
        writer.separator(&isFirst)
        try write(&writer)
        if writer.bytes.count >= Self.bytesMax { try handOut(to: take) }
    }

    mutating func end(to take: ([UInt8]) throws -> Void) throws {
        if isEmpty { writer.byte(UInt8(ascii: "{")) }
        if isEmpty || !isFirst { try handOut(to: take) }
    }

    private mutating func handOut(to take: ([UInt8]) throws -> Void) throws {
        writer.byte(UInt8(ascii: "}"))
        try take(writer.bytes)
        // The taker may keep the text, and one with a large member leaves no large buffer behind.
        writer = JSONWriter(capacity: Self.bytesMax + 1024)
        isFirst = true
    }
}
