internal import StateJSON

/// One decoding of a type by the probe: the notes, and the questions in their order.
final class SchemaRun {
    /// A question of a type, which could have had another answer.
    struct Question {
        var note: SchemaNote
        var field: (object: SchemaNote, name: String)?

        /// Notes that the type goes on where it gets no answer.
        func open() {
            note.isOpen = true
            field.map { $0.object.setOptional($0.name) }
        }
    }

    let root = SchemaNote()
    let probe: SchemaProbe
    let attempt: Int
    let samples: SchemaProbe.Samples
    private let refused: Int?
    private(set) var questions: [Question] = []

    init(_ probe: SchemaProbe, attempt: Int, refusing refused: Int? = nil) {
        self.probe = probe
        self.attempt = attempt
        samples = probe.samples(attempt)
        self.refused = refused
    }

    func ask(_ note: SchemaNote, field: (object: SchemaNote, name: String)? = nil) throws {
        questions.append(Question(note: note, field: field))
        guard questions.count - 1 != refused else { throw Self.refusal }
    }

    func answer<Value: Decodable>(_ type: Value.Type, _ note: SchemaNote) throws -> Value {
        note.set(.value(probe.schema(of: type)))
        guard let value = probe.value(of: type, attempt: attempt) else { throw Self.refusal }
        return value
    }

    static let refusal = DecodingError.typeMismatch(
        Never.self, .init(codingPath: [], debugDescription: "the probe refuses this question"))
}

struct SchemaDecoder: Decoder, SingleValueDecodingContainer {
    let run: SchemaRun
    let note: SchemaNote
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ run: SchemaRun, _ note: SchemaNote? = nil) {
        self.run = run
        self.note = note ?? run.root
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try run.ask(note)
        note.set(.object)
        // Keys of any name are no list of fields.
        if Key(stringValue: "\u{FFFD}") != nil { note.takesOthers = true }
        return KeyedDecodingContainer(SchemaFields<Key>(run: run, note: note))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try run.ask(note)
        note.set(.array)
        return SchemaElements(run: run, note: note)
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool {
        note.isNullable = true
        return false
    }

    func decode(_ type: Bool.Type) throws -> Bool {
        try run.ask(note)
        note.set(.value(["type": "boolean"]))
        return run.samples.boolean
    }

    func decode(_ type: String.Type) throws -> String {
        try run.ask(note)
        note.set(.value(["type": "string"]))
        return run.samples.string
    }

    func decode(_ type: Double.Type) throws -> Double { try number() }
    func decode(_ type: Float.Type) throws -> Float { try number() }
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
        try run.ask(note)
        return try run.answer(type, note)
    }

    private func number<Number: BinaryFloatingPoint>() throws -> Number {
        try run.ask(note)
        note.set(.value(["type": "number"]))
        return Number(run.samples.integer)
    }

    private func integer<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
        try run.ask(note)
        if Number.bitWidth < 64 {
            note.set(
                .value([
                    "type": "integer", "minimum": .integer(Int64(Number.min)), "maximum": .integer(Int64(Number.max)),
                ]))
        } else {
            note.set(.value(Number.isSigned ? ["type": "integer"] : ["type": "integer", "minimum": 0]))
        }
        return Number(run.samples.integer)
    }
}

private struct SchemaFields<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let run: SchemaRun
    let note: SchemaNote
    var codingPath: [any CodingKey] { [] }

    var allKeys: [Key] {
        note.takesOthers = true
        return []
    }

    func contains(_ key: Key) -> Bool {
        note.setOptional(key.stringValue)
        return true
    }

    func decodeNil(forKey key: Key) throws -> Bool {
        note.field(key.stringValue).isNullable = true
        return false
    }

    private func child(_ key: Key) throws -> SchemaDecoder {
        let child = note.field(key.stringValue)
        try run.ask(child, field: (note, key.stringValue))
        return SchemaDecoder(run, child)
    }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try run.answer(type, child(key).note)
    }

    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        try optional(type, key)
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
        let child = try child(key).note
        child.isNullable = true
        note.setOptional(key.stringValue)
        return try? run.answer(type, child)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try child(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try child(key).unkeyedContainer()
    }

    // The fields of a superclass are members beside those of its subclass.
    func superDecoder() throws -> any Decoder { SchemaDecoder(run, note) }
    func superDecoder(forKey key: Key) throws -> any Decoder { try child(key) }
}

/// The elements of an array, of which the probe offers one to a type that asks for the end.
private struct SchemaElements: UnkeyedDecodingContainer {
    let run: SchemaRun
    let note: SchemaNote
    var codingPath: [any CodingKey] { [] }
    var count: Int? { nil }
    private(set) var currentIndex = 0

    var isAtEnd: Bool {
        // A type that reads to the end takes any number of such elements.
        if currentIndex > 0 { note.isReadToEnd = true }
        return currentIndex > 0
    }

    init(run: SchemaRun, note: SchemaNote) {
        self.run = run
        self.note = note
    }

    private mutating func element() -> SchemaDecoder {
        currentIndex += 1
        return SchemaDecoder(run, note.element())
    }

    mutating func decodeNil() throws -> Bool {
        // The element that comes next may be null: what it is else does not tell what all are.
        note.element().isOpen = true
        return false
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try element().decode(type) }

    mutating func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) throws -> KeyedDecodingContainer<Nested> { try element().container(keyedBy: type) }
    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { try element().unkeyedContainer() }
    mutating func superDecoder() throws -> any Decoder { element() }
}
