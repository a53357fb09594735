/// The decoder of one value, which is also its single-value container.
struct JSONValueDecoder {
    let session: JSONDecodingSession
    let index: Int

    private var document: JSONDocument { session.document }

    @inline(__always)
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        if let kind = FoundationValue(type) { return try decode(type, as: kind) }
        do {
            return try Value(from: self)
        } catch DecodingError.dataCorrupted(let context) where context.underlyingError == nil {
            // The standard library's sentence about an enum names the Swift type and quotes the value.
            guard let names = caseNames(of: type) else { throw DecodingError.dataCorrupted(context) }
            throw mismatch("one of \(names.joined(separator: ", "))")
        }
    }

    func mismatch(_ expected: String) -> JSONFault {
        JSONFault(.mismatch, at: document.pointer(to: index), "expected \(expected), found \(found)")
    }

    private var found: String {
        switch document.kind(index) {
        case UInt8(ascii: "{"): "an object"
        case UInt8(ascii: "["): "an array"
        case UInt8(ascii: "\""): "a string"
        case UInt8(ascii: "l"), UInt8(ascii: "u"), UInt8(ascii: "d"): "a number"
        case UInt8(ascii: "t"): "true"
        case UInt8(ascii: "f"): "false"
        default: "null"
        }
    }

    func string() throws(JSONFault) -> String {
        guard document.kind(index) == UInt8(ascii: "\"") else { throw mismatch("a string") }
        return document.string(index)
    }

    func bool() throws(JSONFault) -> Bool {
        switch document.kind(index) {
        case UInt8(ascii: "t"): return true
        case UInt8(ascii: "f"): return false
        default: throw mismatch("true or false")
        }
    }

    func integer<Number: FixedWidthInteger>(_ type: Number.Type) throws(JSONFault) -> Number {
        let number: Number? =
            switch document.kind(index) {
            case UInt8(ascii: "l"): Number(exactly: Int64(bitPattern: document.bits(index)))
            case UInt8(ascii: "u"): Number(exactly: document.bits(index))
            case UInt8(ascii: "d"): Self.whole(Double(bitPattern: document.bits(index)))
            default: throw mismatch("a whole number")
            }
        guard let number else {
            throw JSONFault(
                .mismatch, at: document.pointer(to: index),
                "expected a whole number from \(Number.min) to \(Number.max), found another number")
        }
        return number
    }

    /// A number with a fraction or an exponent as a whole one: 2.0 and 2e0 are the same number as 2.
    private static func whole<Number: FixedWidthInteger>(_ double: Double) -> Number? {
        // A whole number beyond 64 bits comes as the nearest Double, and -2^63 is the nearest of some that are below it.
        double > -0x1p63 ? Number(exactly: double) : nil
    }

    func double() throws(JSONFault) -> Double {
        switch document.kind(index) {
        case UInt8(ascii: "d"): return Double(bitPattern: document.bits(index))
        case UInt8(ascii: "l"): return Double(Int64(bitPattern: document.bits(index)))
        case UInt8(ascii: "u"): return Double(document.bits(index))
        default: throw mismatch("a number")
        }
    }

    func float() throws(JSONFault) -> Float {
        let float = Float(try double())
        guard float.isFinite else {
            throw JSONFault(.mismatch, at: document.pointer(to: index), "expected a number that a Float holds")
        }
        return float
    }

    var isNull: Bool { document.kind(index) == UInt8(ascii: "n") }
}

extension JSONValueDecoder: Decoder, SingleValueDecodingContainer {
    var codingPath: [any CodingKey] { document.pointer(to: index).tokens.map { JSONCodingKey($0) } }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard document.kind(index) == UInt8(ascii: "{") else { throw mismatch("an object") }
        session.note(index, type)
        return KeyedDecodingContainer(JSONKeyedDecoding<Key>(session: session, object: index))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard document.kind(index) == UInt8(ascii: "[") else { throw mismatch("an array") }
        session.isRead = true
        return JSONUnkeyedDecoding(session: session, array: index)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer {
        session.isRead = true
        return self
    }

    func decodeNil() -> Bool { isNull }
    func decode(_ type: Bool.Type) throws -> Bool { try bool() }
    func decode(_ type: String.Type) throws -> String { try string() }
    func decode(_ type: Double.Type) throws -> Double { try double() }
    func decode(_ type: Float.Type) throws -> Float { try float() }
    func decode(_ type: Int.Type) throws -> Int { try integer(type) }
    func decode(_ type: Int8.Type) throws -> Int8 { try integer(type) }
    func decode(_ type: Int16.Type) throws -> Int16 { try integer(type) }
    func decode(_ type: Int32.Type) throws -> Int32 { try integer(type) }
    func decode(_ type: Int64.Type) throws -> Int64 { try integer(type) }
    func decode(_ type: UInt.Type) throws -> UInt { try integer(type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try integer(type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try integer(type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try integer(type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try integer(type) }
}

struct JSONCodingKey: CodingKey {
    var stringValue: String
    var intValue: Int?

    init(_ text: String) {
        stringValue = text
        intValue = JSONPointer.index(text)
    }

    init(stringValue: String) { self.init(stringValue) }
    init(intValue: Int) { self.init(String(intValue)) }
}
