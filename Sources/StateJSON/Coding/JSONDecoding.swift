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

    func decode(_ type: String.Type) throws -> String {
        guard document.kind(index) == UInt8(ascii: "\"") else { throw mismatch("a string") }
        return document.string(index)
    }

    func decode(_ type: Bool.Type) throws -> Bool {
        switch document.kind(index) {
        case UInt8(ascii: "t"): return true
        case UInt8(ascii: "f"): return false
        default: throw mismatch("true or false")
        }
    }

    func decode<Number: FixedWidthInteger & Decodable>(_ type: Number.Type) throws -> Number {
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

    func decode(_ type: Double.Type) throws -> Double {
        switch document.kind(index) {
        case UInt8(ascii: "d"): return Double(bitPattern: document.bits(index))
        case UInt8(ascii: "l"): return Double(Int64(bitPattern: document.bits(index)))
        case UInt8(ascii: "u"): return Double(document.bits(index))
        default: throw mismatch("a number")
        }
    }

    func decode(_ type: Float.Type) throws -> Float {
        let float = Float(try decode(Double.self))
        guard float.isFinite else {
            throw JSONFault(.mismatch, at: document.pointer(to: index), "expected a number that a Float holds")
        }
        return float
    }

    var isNull: Bool { document.kind(index) == UInt8(ascii: "n") }
}

extension JSONValueDecoder: Decoder, SingleValueDecodingContainer {
    var codingPath: [any CodingKey] { document.pointer(to: index).tokens.map { JSONCodingKey(stringValue: $0) } }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard document.kind(index) == UInt8(ascii: "{") else { throw mismatch("an object") }
        session.note(index, type)
        let hint = index == session.outermost ? nil : JSONDecodingSession.Hint(document.firstChild(index))
        return KeyedDecodingContainer(JSONKeyedDecoding<Key>(session: session, object: index, hint: hint))
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
}

struct JSONKeyedDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let session: JSONDecodingSession
    let object: Int
    /// Where the next member is looked for: most types ask for fields in the order of the text.
    let hint: JSONDecodingSession.Hint?

    private var document: JSONDocument { session.document }

    private func value(_ key: Key, _ type: Any.Type) throws -> JSONValueDecoder {
        guard let value = session.member(key.stringValue, of: object, hint) else {
            throw JSONFault(
                .mismatch, at: document.pointer(to: object).appending(key.stringValue),
                "is missing; expected \(expectation(of: type))")
        }
        return value
    }

    var codingPath: [any CodingKey] { JSONValueDecoder(session: session, index: object).codingPath }

    var allKeys: [Key] {
        JSONNode(document, object).members?.compactMap { Key(stringValue: $0.key) } ?? []
    }

    func contains(_ key: Key) -> Bool { session.member(key.stringValue, of: object, hint) != nil }
    func decodeNil(forKey key: Key) throws -> Bool { try value(key, Never.self).isNull }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try value(key, type).decode(type) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try value(key, type).decode(type) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try value(key, type).decode(type) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try value(key, type).decode(type) }
    @inline(__always)
    func decode<Number: FixedWidthInteger & Decodable>(_ type: Number.Type, forKey key: Key) throws -> Number {
        try value(key, type).decode(type)
    }
    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try value(key, type).decode(type)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try value(key, [String: Never].self).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try value(key, [Never].self).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder {
        JSONValueDecoder(session: session, index: object)
    }

    func superDecoder(forKey key: Key) throws -> any Decoder { try value(key, Never.self) }
}

struct JSONUnkeyedDecoding: UnkeyedDecodingContainer {
    let session: JSONDecodingSession
    let array: Int
    private var next: Int
    private(set) var currentIndex = 0

    init(session: JSONDecodingSession, array: Int) {
        self.session = session
        self.array = array
        next = session.document.firstChild(array)
    }

    private var document: JSONDocument { session.document }

    var codingPath: [any CodingKey] { JSONValueDecoder(session: session, index: array).codingPath }
    var count: Int? { JSONNode(document, array).elements?.count }
    var isAtEnd: Bool { document.isEnd(next) }

    /// The container moves past an element only after it has decoded.
    private mutating func element<Result>(
        _ type: Any.Type, _ read: (JSONValueDecoder) throws -> Result
    ) throws -> Result {
        guard !isAtEnd else {
            throw JSONFault(
                .mismatch, at: document.pointer(to: array).appending(String(currentIndex)),
                "is missing; expected \(expectation(of: type))")
        }
        let result = try read(JSONValueDecoder(session: session, index: next))
        next = document.after(next)
        currentIndex += 1
        return result
    }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd, JSONValueDecoder(session: session, index: next).isNull else { return false }
        return try element(Never.self) { $0.isNull }
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try element(type) { try $0.decode(type) } }
    mutating func decode(_ type: String.Type) throws -> String { try element(type) { try $0.decode(type) } }
    mutating func decode(_ type: Double.Type) throws -> Double { try element(type) { try $0.decode(type) } }
    mutating func decode(_ type: Float.Type) throws -> Float { try element(type) { try $0.decode(type) } }
    @inline(__always)
    mutating func decode<Number: FixedWidthInteger & Decodable>(_ type: Number.Type) throws -> Number {
        try element(type) { try $0.decode(type) }
    }
    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try element(type) { try $0.decode(type) }
    }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> {
        try element([String: Never].self) { try $0.container(keyedBy: type) }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try element([Never].self) { try $0.unkeyedContainer() }
    }

    mutating func superDecoder() throws -> any Decoder { try element(Never.self) { $0 } }
}

package struct JSONCodingKey: CodingKey {
    package var stringValue: String
    package var intValue: Int? { JSONPointer.index(stringValue) }

    package init(stringValue: String) { self.stringValue = stringValue }
    package init(intValue: Int) { stringValue = String(intValue) }
}
