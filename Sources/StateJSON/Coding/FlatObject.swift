/// The members of an object of strings, whole numbers and booleans, whose places in a text are known.
///
/// A type decodes from it without a parsed document. It answers what nearly all types ask for, and notes where a type asks
/// for more: such a value is then decoded from a document. One thread at a time may use it.
package final class FlatObject {
    /// The most members.
    package static let countMax = 8

    private let text: [UInt8]
    private let names: [String]
    /// Where each value begins and ends; a string without its quotes.
    private let places: SIMD16<UInt32>
    /// The index of the member behind the last one found: most types ask for fields in the order of the text.
    @exclusivity(unchecked) private var next = 0
    /// Whether each question so far has had the answer that a document gives.
    @exclusivity(unchecked) fileprivate var isSure = true

    /// - Parameters:
    ///   - text: plain UTF-8 JSON, as ``PlainScanner`` reads it.
    ///   - names: the names of the members, at most ``countMax``, in the order of the text.
    ///   - places: the offsets at which each value begins and ends, of a string without its quotes.
    package init(in text: [UInt8], names: [String], places: SIMD16<UInt32>) {
        self.text = text
        self.names = names
        self.places = places
    }

    /// Decodes a value.
    ///
    /// - Throws: an error that says nothing, where that takes a document or the type refuses the members.
    package func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        // The result is not optional: Swift would look up the metadata of its type.
        let value = try Value(from: FlatDecoder(object: self, index: nil))
        guard isSure else { throw unsure() }
        return value
    }

    fileprivate func index(of name: String) -> Int? {
        if next < names.count, names[next] == name {
            next += 1
            return next - 1
        }
        guard let index = names.firstIndex(of: name) else { return nil }
        next = index + 1
        return index
    }

    fileprivate func bytes<Result>(_ index: Int, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        let range = Int(places[2 * index])..<Int(places[2 * index + 1])
        return text.withUnsafeBufferPointer { body(UnsafeBufferPointer(rebasing: $0[range])) }
    }

    /// Whether the value at an index is a string: a quote is before it.
    fileprivate func isString(_ index: Int) -> Bool { text[Int(places[2 * index]) - 1] == UInt8(ascii: "\"") }

    /// Notes that a document has to say where a value lies.
    fileprivate func unknownPath() -> [any CodingKey] {
        isSure = false
        return []
    }

    /// Notes that a document has to answer.
    fileprivate func unsure() -> any Error {
        isSure = false
        return DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "a document has to be read"))
    }
}

/// The decoder of a flat object, or of one of its values.
private struct FlatDecoder: Decoder, SingleValueDecodingContainer {
    let object: FlatObject
    /// The index of the value; nil for the object.
    let index: Int?

    var codingPath: [any CodingKey] { object.unknownPath() }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard index == nil else { throw object.unsure() }
        return KeyedDecodingContainer(FlatMembers<Key>(object: object))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw object.unsure() }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

    private func value() throws -> Int {
        guard let index else { throw object.unsure() }
        return index
    }

    func decodeNil() -> Bool {
        if index == nil { _ = object.unsure() }
        return false
    }

    func decode(_ type: String.Type) throws -> String {
        let index = try value()
        guard object.isString(index) else { throw object.unsure() }
        return object.bytes(index) { String(decoding: $0, as: UTF8.self) }
    }

    func decode(_ type: Bool.Type) throws -> Bool {
        let index = try value()
        guard !object.isString(index) else { throw object.unsure() }
        switch object.bytes(index, { $0[0] }) {
        case UInt8(ascii: "t"): return true
        case UInt8(ascii: "f"): return false
        default: throw object.unsure()
        }
    }

    @inline(__always)
    private func integer<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
        let index = try value()
        guard !object.isString(index),
            let number = Number(object.bytes(index) { String(decoding: $0, as: UTF8.self) })
        else { throw object.unsure() }
        return number
    }

    func decode(_ type: Double.Type) throws -> Double {
        // Up to 2^53, a Double has every whole number.
        let number = try integer(Int64.self)
        guard number.magnitude <= 1 << 53 else { throw object.unsure() }
        return Double(number)
    }

    func decode(_ type: Float.Type) throws -> Float {
        let number = try integer(Int64.self)
        guard number.magnitude <= 1 << 24 else { throw object.unsure() }
        return Float(number)
    }

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
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        // A document knows the types of Foundation that have a spelling of their own.
        guard FoundationValue(type) == nil else { throw object.unsure() }
        return try Value(from: self)
    }
}

/// The keyed container of a flat object.
private struct FlatMembers<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let object: FlatObject

    var codingPath: [any CodingKey] { object.unknownPath() }

    var allKeys: [Key] {
        _ = object.unsure()
        return []
    }

    @inline(__always)
    private func value(_ key: Key) throws -> FlatDecoder {
        guard let index = object.index(of: key.stringValue) else { throw object.unsure() }
        return FlatDecoder(object: object, index: index)
    }

    func contains(_ key: Key) -> Bool { object.index(of: key.stringValue) != nil }
    func decodeNil(forKey key: Key) throws -> Bool { try value(key).decodeNil() }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try value(key).decode(type) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try value(key).decode(type) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try value(key).decode(type) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try value(key).decode(type) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try value(key).decode(type) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try value(key).decode(type) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try value(key).decode(type) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try value(key).decode(type) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try value(key).decode(type) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try value(key).decode(type) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try value(key).decode(type) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try value(key).decode(type) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try value(key).decode(type) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try value(key).decode(type) }
    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value { try value(key).decode(type) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> { throw object.unsure() }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { throw object.unsure() }
    func superDecoder() throws -> any Decoder { throw object.unsure() }
    func superDecoder(forKey key: Key) throws -> any Decoder { throw object.unsure() }
}
