internal import StateJSON
internal import StateStore

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
