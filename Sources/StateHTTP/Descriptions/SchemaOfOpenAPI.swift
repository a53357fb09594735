internal import StateJSON

extension JSONValue {
    /// A schema of draft 7 in draft 2020-12, which OpenAPI 3.1 has; its references move to `place`, a URI reference.
    func openAPISchema(at place: String) -> JSONValue {
        guard case .object(let schema) = self else { return self }
        var made = JSONObject()
        // In draft 7 the keywords beside a reference say nothing.
        let isReference = schema["$ref"] != nil
        for (keyword, value) in schema.members {
            switch keyword {
            // The document says which draft it has.
            case "$schema", "$id": break
            case "$ref": made[keyword] = Self.moved(value, to: place)
            case _ where isReference && !["definitions", "$defs", "title", "description"].contains(keyword): break
            case "items":
                guard case .array(let elements) = value else {
                    made[keyword] = value.openAPISchema(at: place)
                    break
                }
                made["prefixItems"] = .array(elements.map { $0.openAPISchema(at: place) })
                if let rest = schema["additionalItems"] { made["items"] = rest.openAPISchema(at: place) }
            case "additionalItems": break
            case "dependencies":
                let isList = { (inner: JSONValue) in if case .array = inner { true } else { false } }
                let required = value.members.members.filter { isList($0.value) }
                let schemas = value.members.members.filter { !isList($0.value) }
                if !required.isEmpty { made["dependentRequired"] = .of(required.map { ($0.key, $0.value) }) }
                if !schemas.isEmpty {
                    made["dependentSchemas"] = .of(schemas.map { ($0.key, $0.value.openAPISchema(at: place)) })
                }
            case "properties", "patternProperties", "definitions", "$defs":
                made[keyword] = .of(value.members.members.map { ($0.key, $0.value.openAPISchema(at: place)) })
            case "allOf", "anyOf", "oneOf":
                guard case .array(let schemas) = value else { break }
                made[keyword] = .array(schemas.map { $0.openAPISchema(at: place) })
            case "not", "if", "then", "else", "contains", "additionalProperties", "propertyNames":
                made[keyword] = value.openAPISchema(at: place)
            default: made[keyword] = value
            }
        }
        return .object(made)
    }

    private static func moved(_ reference: JSONValue, to place: String) -> JSONValue {
        guard case .string(let text) = reference, text.hasPrefix("#"), !text.hasPrefix("#/components/"),
            let pointer = JSONPointer(text: String(text.dropFirst()))
        else { return reference }
        var (made, rest) = ([String](), pointer.tokens[...])
        while let keyword = rest.popFirst() {
            switch keyword {
            case "items" where rest.first.flatMap(JSONPointer.index) != nil:
                made += ["prefixItems", rest.removeFirst()]
            case "additionalItems": made.append("items")
            case "dependencies": made.append("dependentSchemas")
            default: made.append(keyword)
            }
            // Behind these comes a name or a number, which is no keyword.
            if ["properties", "patternProperties", "definitions", "$defs", "dependencies", "allOf", "anyOf", "oneOf"]
                .contains(keyword), let name = rest.popFirst()
            {
                made.append(name)
            }
        }
        return .string(place + JSONPointer(made).description)
    }

    var takesEmptyObject: Bool {
        guard case .object(let schema) = self else { return self == .bool(true) }
        if schema["required"] != nil || schema["$ref"] != nil || schema["enum"] != nil || schema["const"] != nil {
            return false
        }
        switch schema["type"] {
        case nil: return schema.members.isEmpty
        case .array(let types)?: return types.contains("object")
        case let type?: return type == "object"
        }
    }
}
