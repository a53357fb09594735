internal import StateJSON

/// What a keyword of draft 7 has for its value.
enum Keyword {
    /// Says nothing that is checked.
    case annotation
    /// The names of types.
    case type
    /// A whole number that is not negative.
    case count
    /// A number.
    case limit
    /// A number above 0.
    case divisor
    /// True or false.
    case flag
    /// The names of members.
    case names
    /// Any value.
    case value
    /// An array of any values.
    case values
    case pattern
    /// A schema for a part of the value.
    case schema
    /// A schema for the same value.
    case schemaInPlace
    /// An array of such.
    case schemasInPlace
    /// A schema for each element, or an array of one for each position.
    case items
    /// An object of schemas for members.
    case members
    /// An object of schemas for the members whose names match a pattern.
    case patternMembers
    /// An object of schemas for the same value, or arrays of names.
    case dependencies
    /// An object of schemas that are only named.
    case definitions

    /// The keyword with a name; nil for one that means nothing here.
    ///
    /// Later drafts have `$defs` and `deprecated`, and their writers give names with `x-` to what is theirs.
    static func named(_ name: String) -> Keyword? {
        all[ExactText(name)] ?? (name.utf8.starts(with: "x-".utf8) ? .annotation : nil)
    }

    private static let all: [ExactText: Keyword] = {
        let named: [(Keyword, String)] = [
            (.annotation, "$comment title description default examples readOnly writeOnly format"),
            (.annotation, "contentEncoding contentMediaType deprecated"),
            (.type, "type"), (.value, "const"), (.values, "enum"), (.pattern, "pattern"), (.names, "required"),
            (.limit, "maximum exclusiveMaximum minimum exclusiveMinimum"), (.divisor, "multipleOf"),
            (.count, "maxLength minLength maxItems minItems maxProperties minProperties"), (.flag, "uniqueItems"),
            (.schema, "additionalItems contains additionalProperties propertyNames"),
            (.schemaInPlace, "not if then else"), (.schemasInPlace, "allOf anyOf oneOf"), (.items, "items"),
            (.members, "properties"), (.patternMembers, "patternProperties"), (.dependencies, "dependencies"),
            (.definitions, "definitions $defs"),
        ]
        return Dictionary(
            uniqueKeysWithValues: named.flatMap { keyword, names in
                names.split(separator: " ").map { (ExactText(String($0)), keyword) }
            })
    }()

    static let types: Set<ExactText> = ["array", "boolean", "integer", "null", "number", "object", "string"]

    /// The end of the sentence about a name that is no keyword here: what to do instead, or the keyword that may be meant.
    ///
    /// - Parameter value: what stands there as the keyword's value.
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

    /// The schema that the value of an unknown keyword seems to be, as that of a member outside of `properties`; nil where it is
    /// something else.
    private static func member(of value: JSONValue) -> JSONValue? {
        switch value {
        case .string(let type) where types.contains(ExactText(type)): ["type": value]
        case .object(let object) where object["type"] != nil: value
        default: nil
        }
    }
}
