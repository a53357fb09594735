internal import StateJSON

/// Derives the JSON Schema of a type: the type decodes from the probe, and the probe notes what the type asks for.
///
/// The probe sees the calls of `init(from:)`: fields, their types, and which of them are optional. A type that validates
/// its values can throw early; the schema then holds what the type has asked for until then.
struct SchemaProbe: Decoder, SingleValueDecodingContainer {
    final class Note {
        var schema: [(String, JSONValue)] = []
        func set(_ type: String) { schema = [("type", .string(type))] }
        var value: JSONValue {
            var object = JSONObject()
            for (key, value) in schema { object[key] = value }
            return .object(object)
        }
    }

    private struct Unsure: Error {}

    /// The values that the probe gives to those who decode from it.
    struct Samples {
        var string: String
        var integer: Int8
        var boolean: Bool

        static let first = Samples(string: "", integer: 0, boolean: false)
        /// Different from ``first`` in each value; the string changes where a type changes the case of its letters.
        static let second = Samples(string: "aB-\u{E9}/1", integer: 7, boolean: true)
    }

    let note = Note()
    private let depth: Int
    private let samples: Samples
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    private init(depth: Int, _ samples: Samples) {
        self.depth = depth
        self.samples = samples
    }

    /// A value of a type that was decoded from samples; nil for a type that refuses them.
    static func instance<Value: Decodable>(of type: Value.Type, _ samples: Samples) -> Value? {
        // The error says only that the type refuses the samples.
        try? SchemaProbe(depth: 0, samples).sample(type)
    }

    /// The schema of a type.
    static func schema(of type: any Decodable.Type) -> JSONValue {
        let probe = SchemaProbe(depth: 0, .first)
        // A type that validates its values throws on those of the probe; the note then holds the calls before.
        _ = try? probe.sample(type)
        if probe.note.schema.isEmpty { probe.note.set("object") }
        return probe.note.value
    }

    /// Decodes a sample value and notes the schema of its type.
    private func sample<Value: Decodable>(_ type: Value.Type) throws -> Value {
        guard depth < 16 else { throw Unsure() }
        if let cases = type as? any CaseIterable.Type, let first = Self.note(cases, in: note) as? Value { return first }
        return try Value(from: self)
    }

    /// Notes the raw values of an enum that is `CaseIterable`, and returns its first case.
    private static func note<Cases: CaseIterable>(_ type: Cases.Type, in note: Note) -> Any? {
        let names = type.allCases.compactMap { ($0 as? any RawRepresentable)?.rawValue as? String }
        guard names.count == type.allCases.count, !names.isEmpty else { return nil }
        note.schema = [("type", .string("string")), ("enum", .array(names.map(JSONValue.string)))]
        return type.allCases.first
    }

    fileprivate func child() -> SchemaProbe { SchemaProbe(depth: depth + 1, samples) }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        if note.schema.isEmpty {
            note.schema = [("type", .string("object")), ("properties", .object(JSONObject()))]
            note.schema.append(("additionalProperties", .bool(false)))
        }
        return KeyedDecodingContainer(Fields<Key>(probe: self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        note.set("array")
        return Elements(probe: self)
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { false }
    func decode(_ type: Bool.Type) throws -> Bool { note.set("boolean"); return samples.boolean }
    func decode(_ type: String.Type) throws -> String { note.set("string"); return samples.string }
    func decode(_ type: Double.Type) throws -> Double { note.set("number"); return Double(samples.integer) }
    func decode(_ type: Float.Type) throws -> Float { note.set("number"); return Float(samples.integer) }
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
    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try sample(type) }

    private func integer<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
        note.set("integer")
        if Number.bitWidth < 64 {
            note.schema += [("minimum", .integer(Int64(Number.min))), ("maximum", .integer(Int64(Number.max)))]
        } else if !Number.isSigned {
            note.schema.append(("minimum", .integer(0)))
        }
        return Number(samples.integer)
    }

    /// The fields of an object.
    private struct Fields<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let probe: SchemaProbe
        var codingPath: [any CodingKey] { [] }
        var allKeys: [Key] { [] }

        func contains(_ key: Key) -> Bool { true }
        func decodeNil(forKey key: Key) throws -> Bool { false }

        private func field<Value>(_ key: Key, isRequired: Bool, _ read: (SchemaProbe) throws -> Value) throws -> Value {
            let child = probe.child()
            defer { enter(key, child.note.value, isRequired: isRequired) }
            return try read(child)
        }

        private func enter(_ key: Key, _ schema: JSONValue, isRequired: Bool) {
            for (index, (name, value)) in probe.note.schema.enumerated() where name == "properties" {
                guard case .object(var properties) = value else { continue }
                properties[key.stringValue] = schema
                probe.note.schema[index].1 = .object(properties)
            }
            guard isRequired else { return }
            if let index = probe.note.schema.firstIndex(where: { $0.0 == "required" }),
                case .array(let names) = probe.note.schema[index].1
            {
                probe.note.schema[index].1 = .array(names + [.string(key.stringValue)])
            } else {
                probe.note.schema.append(("required", .array([.string(key.stringValue)])))
            }
        }

        func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
            try field(key, isRequired: true) { try $0.sample(type) }
        }

        func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
            try field(key, isRequired: false) { try $0.sample(type) }
        }

        func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try optional(type, key) }
        func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { try optional(type, key) }
        func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { try optional(type, key) }
        func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? { try optional(type, key) }
        func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try optional(type, key) }
        func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? { try optional(type, key) }
        func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? { try optional(type, key) }
        func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? { try optional(type, key) }
        func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? { try optional(type, key) }
        func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? { try optional(type, key) }
        func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? { try optional(type, key) }
        func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? { try optional(type, key) }
        func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? { try optional(type, key) }
        func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? { try optional(type, key) }

        private func optional<Value: Decodable>(_ type: Value.Type, _ key: Key) throws -> Value? {
            try field(key, isRequired: false) { try $0.sample(type) }
        }

        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> {
            try field(key, isRequired: true) { try $0.container(keyedBy: type) }
        }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            try field(key, isRequired: true) { try $0.unkeyedContainer() }
        }

        func superDecoder() throws -> any Decoder { probe }
        func superDecoder(forKey key: Key) throws -> any Decoder { probe.child() }
    }

    /// The elements of an array: the probe offers one, to note its schema.
    private struct Elements: UnkeyedDecodingContainer {
        let probe: SchemaProbe
        var codingPath: [any CodingKey] { [] }
        var count: Int? { nil }
        var isAtEnd: Bool { currentIndex > 0 }
        private(set) var currentIndex = 0

        private mutating func element() -> SchemaProbe {
            currentIndex += 1
            return probe.child()
        }

        mutating func decodeNil() throws -> Bool { false }

        mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
            let child = element()
            defer { probe.note.schema = [("type", .string("array")), ("items", child.note.value)] }
            return try child.sample(type)
        }

        mutating func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type
        ) throws -> KeyedDecodingContainer<Nested> { try element().container(keyedBy: type) }
        mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
            try element().unkeyedContainer()
        }
        mutating func superDecoder() throws -> any Decoder { element() }
    }
}
