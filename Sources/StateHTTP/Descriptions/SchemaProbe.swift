internal import FoundationEssentials
internal import Queries
internal import StateJSON
internal import StateStore

/// Derives the JSON Schema of a type: the type decodes from a decoder that notes what the type asks for.
///
/// A schema allows whatever the type takes and writes; it is open (`{}`) where the calls of `init(from:)` do not tell.
/// To find out where, the probe refuses one question after the other: a type that goes on takes other values there.
final class SchemaProbe {
    typealias Samples = (string: String, integer: Int8, boolean: Bool)
    struct Description {
        var schema: JSONValue
        var sample: Any
    }

    /// The second differs from the first in each value; its string changes where a type changes the case of its letters.
    private static let samples: [Samples] = [("", 0, false), ("aB-\u{E9}/1", 7, true), ("a", 1, true)]
    /// How many attempts differ in what they give: each has other cases of enums.
    private static let attemptsCount = 8
    private var schemas: [ObjectIdentifier: JSONValue] = [:]
    private var values: [ObjectIdentifier: [Int: Any]] = [:]
    /// The types that are asked: a type inside itself is asked once.
    private var pending: Set<ObjectIdentifier> = []
    private var pendingValues: Set<ObjectIdentifier> = []

    private init() {}

    static func schema(of type: any Decodable.Type) -> JSONValue { SchemaProbe().schema(of: type) }

    static func payloadSchema(of type: ActionType) -> JSONValue {
        if let declaration = type.declaration { return declaration.payload ?? ["type": "object"] }
        let schema = schema(of: type.type)
        return schema == [:] ? ["type": "object"] : schema
    }

    func schema<Value: Decodable>(of type: Value.Type) -> JSONValue {
        let id = ObjectIdentifier(type)
        if let schema = schemas[id] { return schema }
        guard pending.insert(id).inserted else { return [:] }
        defer { pending.remove(id) }
        let schema = known(type, attempt: 0)?.schema ?? asked(type)
        schemas[id] = schema
        return schema
    }

    func value<Value: Decodable>(of type: Value.Type, attempt: Int) -> Value? {
        let id = ObjectIdentifier(type)
        if let value = values[id]?[attempt] { return value as? Value }
        guard pendingValues.insert(id).inserted else { return nil }
        defer { pendingValues.remove(id) }
        var value = known(type, attempt: attempt)?.sample as? Value
        for other in 0..<Self.attemptsCount where value == nil {
            // A type that refuses the samples is asked with others.
            value = SchemaRun(self, attempt: (attempt + other) % Self.attemptsCount).value(of: type)
        }
        if let value { values[id, default: [:]][attempt] = value }
        return value
    }

    private func known<Value: Decodable>(_ type: Value.Type, attempt: Int) -> Description? {
        if let kind = FoundationValue(type) { return Description(schema: kind.schema, sample: kind.sample) }
        if type == UUID.self { return Description(schema: ["type": "string", "format": "uuid"], sample: UUID()) }
        if type == JSONValue.self { return Description(schema: [:], sample: JSONValue.null) }
        let samples = Self.samples[attempt % Self.samples.count]
        if type == Bool.self { return Description(schema: ["type": "boolean"], sample: samples.boolean) }
        if type == String.self { return Description(schema: ["type": "string"], sample: samples.string) }
        if type == Double.self { return Description(schema: ["type": "number"], sample: Double(samples.integer)) }
        if type == Float.self { return Description(schema: ["type": "number"], sample: Float(samples.integer)) }
        if let integer = Self.integers.first(where: { $0 == type }) {
            return Self.description(of: integer, samples.integer)
        }
        if let shaped = type as? any SchemaShaped.Type { return shaped.description(by: self) }
        return (type as? any CaseIterable.Type).flatMap { Self.cases($0, as: type, attempt: attempt) }
    }

    /// Another type of integers may be read in another way.
    private static let integers: [any (FixedWidthInteger & Sendable).Type] = [
        Int.self, Int8.self, Int16.self, Int32.self, Int64.self,
        UInt.self, UInt8.self, UInt16.self, UInt32.self, UInt64.self,
    ]

    private static func description<Number: FixedWidthInteger>(of _: Number.Type, _ sample: Int8) -> Description {
        var schema: JSONValue = ["type": "integer"]
        if Number.bitWidth < 64 {
            schema["minimum"] = .integer(Int64(Number.min))
            schema["maximum"] = .integer(Int64(Number.max))
        } else if !Number.isSigned {
            schema["minimum"] = 0
        }
        return Description(schema: schema, sample: Number(sample))
    }

    private static func cases<Cases: CaseIterable, Value: Decodable>(
        _ type: Cases.Type, as _: Value.Type, attempt: Int
    ) -> Description? {
        var names: [JSONValue] = []
        for element in type.allCases {
            guard let name = (element as? any RawRepresentable)?.rawValue as? any Encodable,
                let text = try? JSON.encode(name), let value = try? JSONValue(parsing: text),
                let element = element as? any Encodable, (try? JSON.encode(element)) == text,
                (try? JSON.decode(Value.self, from: text)) != nil
            else { return nil }
            names.append(value)
        }
        // A type that takes other texts than its cases is no list of them.
        guard let first = names.first, (try? JSON.decode(Value.self, from: Array("\"\u{FFFD}\"".utf8))) == nil,
            (try? JSON.decode(Value.self, from: Array("-77".utf8))) == nil
        else { return nil }
        let kind: JSONValue
        switch first {
        case .string: kind = "string"
        case .integer: kind = "integer"
        default: return nil
        }
        let cases = Array(type.allCases)
        return Description(schema: ["type": kind, "enum": .array(names)], sample: cases[attempt % cases.count])
    }

    private func asked<Value: Decodable>(_ type: Value.Type) -> JSONValue {
        var best: (run: SchemaRun, value: Value?)?
        for attempt in 0..<Self.attemptsCount where best?.value == nil {
            let run = SchemaRun(self, attempt: attempt)
            let value = run.value(of: type)
            if value != nil || run.questions.count > best?.run.questions.count ?? -1 { best = (run, value) }
        }
        guard let (run, value) = best else { return [:] }
        lookFurther(run, value)
        return run.root.schema
    }

    private func lookFurther<Value: Decodable>(_ run: SchemaRun, _ value: Value?) {
        for attempt in 0..<Self.attemptsCount where attempt != run.attempt {
            // The questions of a type can depend on the values that it gets.
            let other = SchemaRun(self, attempt: attempt)
            if other.value(of: Value.self) != nil { run.root.merge(other.root) }
        }
        for index in run.questions.indices {
            let refused = SchemaRun(self, attempt: run.attempt, refusing: index)
            guard refused.value(of: Value.self) != nil || refused.questions.count > index + 1 else { continue }
            // The type goes on where it gets no answer.
            run.questions[index].note.isOpen = true
            run.questions[index].field.map { $0.object.setOptional($0.name) }
        }
        if value == nil { run.root.setIncomplete() }
        if let written = (value as? any Encodable).flatMap({ try? JSON.encode($0) }),
            let schema = try? JSONSchema(run.root.schema), !schema.faults(of: written, most: 1).isEmpty
        {
            run.root.isOpen = true
        }
    }
}

extension FoundationValue {
    fileprivate var schema: JSONValue {
        switch self {
        case .date: ["type": "string", "format": "date-time"]
        case .data: ["type": "string", "contentEncoding": "base64"]
        case .url: ["type": "string"]
        case .decimal: ["type": "number"]
        }
    }
}

private protocol SchemaShaped {
    static func description(by probe: SchemaProbe) -> SchemaProbe.Description
}

private func schema<Part>(of type: Part.Type, by probe: SchemaProbe) -> JSONValue {
    (type as? any Decodable.Type).map { probe.schema(of: $0) } ?? [:]
}

extension Optional: SchemaShaped {
    fileprivate static func description(by probe: SchemaProbe) -> SchemaProbe.Description {
        .init(schema: SchemaNote.nullable(schema(of: Wrapped.self, by: probe)), sample: Self.none as Any)
    }
}

extension SchemaShaped where Self: ExpressibleByArrayLiteral {
    fileprivate static func description(by probe: SchemaProbe) -> SchemaProbe.Description {
        .init(schema: ["type": "array", "items": schema(of: ArrayLiteralElement.self, by: probe)], sample: [] as Self)
    }
}

extension Array: SchemaShaped {}
extension ContiguousArray: SchemaShaped {}
extension Set: SchemaShaped {}

extension Dictionary: SchemaShaped {
    fileprivate static func description(by probe: SchemaProbe) -> SchemaProbe.Description {
        // Other keys stand in an array, before their values.
        guard Key.self == String.self || Key.self == Int.self || Key.self is any CodingKeyRepresentable.Type else {
            return .init(schema: ["type": "array"], sample: Self())
        }
        let values = schema(of: Value.self, by: probe)
        return .init(schema: ["type": "object", "additionalProperties": values], sample: Self())
    }
}
