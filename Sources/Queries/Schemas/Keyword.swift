internal import StateJSON

enum Keyword: String, CaseIterable {
    case format, type, const, `enum`, pattern, required, uniqueItems
    case maximum, minimum, exclusiveMaximum, exclusiveMinimum, multipleOf
    case maxItems, minItems, maxProperties, minProperties, maxLength, minLength
    case items, additionalItems, contains
    case properties, patternProperties, additionalProperties, propertyNames, dependencies
    case allOf, anyOf, oneOf, not, `if`, then, `else`
    // Later drafts have `$defs` and `deprecated`.
    case definitions, definitionsOfLaterDrafts = "$defs"
    // These say nothing that is checked.
    case comment = "$comment", title, description, `default`, examples, readOnly, writeOnly, contentEncoding
    case contentMediaType, deprecated

    static func hint(_ name: String, _ value: JSONValue) -> String {
        switch ExactText(name) {
        case "$id": return "; only the schema as a whole may have one, and references begin with #"
        case "dependentRequired", "dependentSchemas": return "; draft 7 calls it dependencies"
        case "prefixItems": return "; draft 7 has an array in items for it"
        default: break
        }
        let nearest = NearestNames.hint(name, among: allCases.map(\.rawValue))
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
