internal import StateJSON
internal import StateStore

final class SchemaRun {
    let root = SchemaNote()
    let probe: SchemaProbe
    let attempt: Int
    private let refused: Int?
    private(set) var questions: [(note: SchemaNote, field: (object: SchemaNote, name: String)?)] = []

    init(_ probe: SchemaProbe, attempt: Int, refusing refused: Int? = nil) {
        self.probe = probe
        self.attempt = attempt
        self.refused = refused
    }

    func value<Value: Decodable>(of type: Value.Type) -> Value? {
        // A type that refuses the samples has asked for something before.
        try? Value(from: SchemaDecoder(run: self, note: root))
    }
    func ask(_ note: SchemaNote, field: (object: SchemaNote, name: String)? = nil) throws {
        questions.append((note, field))
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

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try run.ask(note)
        return try run.answer(type, note)
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
        return SchemaDecoder(run: run, note: child)
    }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try run.answer(type, child(key).note)
    }

    // Of the types that always have a value, the standard library asks for null and then for a value.
    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
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
    func superDecoder() throws -> any Decoder { SchemaDecoder(run: run, note: note) }
    func superDecoder(forKey key: Key) throws -> any Decoder { try child(key) }
}

private struct SchemaElements: UnkeyedDecodingContainer {
    let run: SchemaRun
    let note: SchemaNote
    var codingPath: [any CodingKey] { [] }
    var count: Int? { nil }
    var currentIndex = 0

    var isAtEnd: Bool {
        // A type that reads to the end takes any number of such elements.
        if currentIndex > 0 { note.isReadToEnd = true }
        return currentIndex > 0
    }

    private mutating func element() -> SchemaDecoder {
        currentIndex += 1
        return SchemaDecoder(run: run, note: note.element())
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

final class SchemaNote {
    enum Shape {
        case nothing, object, array
        case value(JSONValue)
    }

    private(set) var shape = Shape.nothing
    private(set) var fields: [(name: String, note: SchemaNote, isRequired: Bool)] = []
    private(set) var elements: [SchemaNote] = []
    var isNullable = false
    var isOpen = false
    var isReadToEnd = false
    var takesOthers = false

    func set(_ wanted: Shape) {
        switch (shape, wanted) {
        case (.nothing, _): shape = wanted
        case (.object, .object), (.array, .array): break
        case (.value(let known), .value(let value)) where known == value: break
        default: isOpen = true
        }
    }

    func field(_ name: String) -> SchemaNote {
        if let field = fields.first(where: { $0.name == name }) { return field.note }
        let note = SchemaNote()
        fields.append((name, note, isRequired: true))
        return note
    }

    func setOptional(_ name: String) {
        _ = field(name)
        for index in fields.indices where fields[index].name == name { fields[index].isRequired = false }
    }

    func element() -> SchemaNote {
        let note = SchemaNote()
        elements.append(note)
        return note
    }

    func setIncomplete() {
        takesOthers = true
        for field in fields { field.note.setIncomplete() }
        for element in elements { element.setIncomplete() }
        // Elements that come later can be of any kind.
        if case .array = shape { elements.append(SchemaNote()) }
    }

    func merge(_ other: SchemaNote) {
        guard !isOpen, other.schema != schema else { return }
        guard case .object = shape, case .object = other.shape else {
            isOpen = true
            return
        }
        let (names, otherNames) = (fields.map(\.name), other.fields.map(\.name))
        // Which further fields there are depends on values that the probe may not have given.
        if Set(names) != Set(otherNames) { takesOthers = true }
        for other in other.fields {
            if names.contains(other.name) { field(other.name).merge(other.note) } else { fields.append(other) }
        }
        for name in names + otherNames {
            let isAlways = names.contains(name) && otherNames.contains(name)
            if !isAlways || other.fields.contains(where: { $0.name == name && !$0.isRequired }) { setOptional(name) }
        }
    }

    var schema: JSONValue {
        guard !isOpen else { return [:] }
        let plain: JSONValue =
            switch shape {
            case .nothing: [:]
            case .value(let schema): schema
            case .object: objectSchema
            case .array: arraySchema
            }
        return isNullable ? Self.nullable(plain) : plain
    }

    private var objectSchema: JSONValue {
        var members: [(String, JSONValue)] = [("type", "object")]
        if !fields.isEmpty || !takesOthers {
            members.append(("properties", .of(fields.map { ($0.name, $0.note.schema) })))
        }
        if !takesOthers { members.append(("additionalProperties", false)) }
        let required = fields.filter(\.isRequired).map { JSONValue.string($0.name) }
        if !required.isEmpty { members.append(("required", .array(required))) }
        return .of(members)
    }

    private var arraySchema: JSONValue {
        guard isReadToEnd, let items = elements.first?.schema, elements.allSatisfy({ $0.schema == items }) else {
            return ["type": "array"]
        }
        return ["type": "array", "items": items]
    }

    static func nullable(_ schema: JSONValue) -> JSONValue {
        guard case .object(var members) = schema, !members.members.isEmpty else { return schema }
        guard case .string(let type)? = members["type"], members["enum"] == nil else {
            return ["anyOf": [schema, ["type": "null"]]]
        }
        members["type"] = [.string(type), "null"]
        return .object(members)
    }
}
