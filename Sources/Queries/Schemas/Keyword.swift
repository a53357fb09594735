internal import StateJSON

enum Keyword {
    /// Says nothing that is checked.
    case annotation
    case format, type, const, `enum`, pattern, required, uniqueItems
    case limit(SchemaRules.Limit)
    case count(SchemaRules.Part, isMost: Bool)
    case items, additionalItems, contains
    case properties, patternProperties, additionalProperties, propertyNames, dependencies
    case allOf, anyOf, oneOf, not, `if`, then, `else`
    case definitions

    /// Later drafts have `$defs` and `deprecated`, and their writers give names with `x-` to what is theirs.
    static func named(_ name: String) -> Keyword? {
        all[ExactText(name)] ?? (name.utf8.starts(with: "x-".utf8) ? .annotation : nil)
    }

    private static let all: [ExactText: Keyword] = [
        "format": .format, "type": .type, "const": .const, "enum": .enum, "pattern": .pattern, "required": .required,
        "uniqueItems": .uniqueItems,
        "maximum": .limit(.maximum), "minimum": .limit(.minimum), "exclusiveMaximum": .limit(.exclusiveMaximum),
        "exclusiveMinimum": .limit(.exclusiveMinimum), "multipleOf": .limit(.multipleOf),
        "maxItems": .count(.elements, isMost: true), "minItems": .count(.elements, isMost: false),
        "maxProperties": .count(.members, isMost: true), "minProperties": .count(.members, isMost: false),
        "maxLength": .count(.characters, isMost: true), "minLength": .count(.characters, isMost: false),
        "items": .items, "additionalItems": .additionalItems, "contains": .contains,
        "properties": .properties, "patternProperties": .patternProperties,
        "additionalProperties": .additionalProperties, "propertyNames": .propertyNames, "dependencies": .dependencies,
        "allOf": .allOf, "anyOf": .anyOf, "oneOf": .oneOf, "not": .not, "if": .if, "then": .then, "else": .else,
        "definitions": .definitions, "$defs": .definitions,
        "$comment": .annotation, "title": .annotation, "description": .annotation, "default": .annotation,
        "examples": .annotation, "readOnly": .annotation, "writeOnly": .annotation, "contentEncoding": .annotation,
        "contentMediaType": .annotation, "deprecated": .annotation,
    ]

    static func hint(_ name: String, _ value: JSONValue) -> String {
        switch ExactText(name) {
        case "$id": return "; only the schema as a whole may have one, and references begin with #"
        case "dependentRequired", "dependentSchemas": return "; draft 7 calls it dependencies"
        case "prefixItems": return "; draft 7 has an array in items for it"
        default: break
        }
        let nearest = NearestNames.hint(name, among: all.keys.map(\.text))
        guard let member = member(of: value) else { return nearest }
        var properties = JSONObject()
        properties[name] = member
        let schema: JSONValue = ["type": "object", "properties": .object(properties)]
        let example = schema.text.count <= 200 ? ": \(String(decoding: schema.text, as: UTF8.self))" : ""
        let place = "members of an object stand below properties\(example)"
        return nearest.isEmpty ? "; \(place)" : "\(nearest) \(place.prefix(1).uppercased())\(place.dropFirst())"
    }

    private static func member(of value: JSONValue) -> JSONValue? {
        switch value {
        case .string(let type) where SchemaRules.Types(type) != nil: ["type": value]
        case .object(let object) where object["type"] != nil: value
        default: nil
        }
    }
}
