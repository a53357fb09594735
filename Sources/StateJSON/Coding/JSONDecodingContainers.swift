/// Where a keyed container looks for the next member.
///
/// It is no part of the generic container: Swift would look up the metadata of its type for each object.
private final class MemberHint {
    // Only one access at a time lends it, to a search that calls no other code.
    var index: Int

    init(_ index: Int) { self.index = index }
}

struct JSONKeyedDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let session: JSONDecodingSession
    let object: Int
    /// The index behind the last member found: most types ask for fields in the order of the text.
    ///
    /// Nil for the outermost object, whose hint the session has.
    private let hint: MemberHint?

    init(session: JSONDecodingSession, object: Int) {
        self.session = session
        self.object = object
        hint = object == session.outermost ? nil : MemberHint(session.document.firstChild(object))
    }

    private var document: JSONDocument { session.document }

    private func find(_ key: Key) -> JSONValueDecoder? {
        if let asked = session.asked, asked.object == object, !asked.fields.contains(key.stringValue) {
            session.asked?.fields.append(key.stringValue)
        }
        let found =
            if let hint {
                document.member(key.stringValue, of: object, hint: &hint.index)
            } else {
                session.member(key.stringValue)
            }
        return found.map { JSONValueDecoder(session: session, index: $0) }
    }

    private func value(_ key: Key, _ type: Any.Type) throws -> JSONValueDecoder {
        guard let value = find(key) else {
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

    func contains(_ key: Key) -> Bool { find(key) != nil }
    func decodeNil(forKey key: Key) throws -> Bool { try value(key, Never.self).isNull }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try value(key, type).bool() }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try value(key, type).string() }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try value(key, type).double() }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try value(key, type).float() }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try value(key, type).integer(type) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try value(key, type).integer(type) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try value(key, type).integer(type) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try value(key, type).integer(type) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try value(key, type).integer(type) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try value(key, type).integer(type) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try value(key, type).integer(type) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try value(key, type).integer(type) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try value(key, type).integer(type) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try value(key, type).integer(type) }
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

    /// Reads the next element; the container moves past an element only after it has decoded.
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
        next = document.after(next)
        currentIndex += 1
        return true
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try element(type) { try $0.bool() } }
    mutating func decode(_ type: String.Type) throws -> String { try element(type) { try $0.string() } }
    mutating func decode(_ type: Double.Type) throws -> Double { try element(type) { try $0.double() } }
    mutating func decode(_ type: Float.Type) throws -> Float { try element(type) { try $0.float() } }
    mutating func decode(_ type: Int.Type) throws -> Int { try element(type) { try $0.integer(type) } }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try element(type) { try $0.integer(type) } }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try element(type) { try $0.integer(type) } }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try element(type) { try $0.integer(type) } }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try element(type) { try $0.integer(type) } }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try element(type) { try $0.integer(type) } }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try element(type) { try $0.integer(type) } }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try element(type) { try $0.integer(type) } }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try element(type) { try $0.integer(type) } }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try element(type) { try $0.integer(type) } }
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
