internal import StateJSON

/// The TypeScript types of a store's actions, state and views, made of their JSON Schemas.
///
/// A schema of ``SchemaProbe`` has nothing that is not written here; what else another one has is `unknown`.
struct TypeDeclarations {
    let actions: [(type: String, payload: JSONValue)]
    let state: JSONValue
    let views: [String: JSONValue]
    let parameters: [String: JSONValue]

    var text: [UInt8] {
        func sorted(_ schemas: [String: JSONValue]) -> [(String, JSONValue)] {
            schemas.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        }
        let text =
            interface("Actions", actions) + "\nexport type State = \(type(of: state))\n"
            + interface("Views", sorted(views)) + interface("ViewParameters", sorted(parameters))
        return Array(text.utf8)
    }

    private func interface(_ name: String, _ members: [(String, JSONValue)]) -> String {
        let lines = members.map { "    \(quoted($0.0)): \(type(of: $0.1))\n" }
        return "\nexport interface \(name) {\n\(lines.joined())}\n"
    }

    private func type(of schema: JSONValue) -> String {
        // The one reference in schemas of the domain is to the ID of an entity.
        if schema["$ref"] != .null {
            return schema["$ref"].string.hasSuffix("/EntityID") ? "string | number" : "unknown"
        }
        let choices = schema["anyOf"].elements
        if !choices.isEmpty { return union(choices.map(type(of:))) }
        let values = schema["enum"].elements
        if !values.isEmpty { return union(values.map { String(decoding: $0.text, as: UTF8.self) }) }
        let kinds = schema["type"].elements
        return union((kinds.isEmpty ? [schema["type"]] : kinds).map { type(ofKind: $0.string, schema) })
    }

    private func union(_ types: [String]) -> String {
        var seen: Set<String> = []
        return types.filter { seen.insert($0).inserted }.joined(separator: " | ")
    }

    private func type(ofKind kind: String, _ schema: JSONValue) -> String {
        switch kind {
        case "integer", "number": "number"
        case "string", "boolean", "null", "undefined": kind
        case "array": "Array<\(type(of: schema["items"]))>"
        case "object": object(schema)
        default: "unknown"
        }
    }

    private func object(_ schema: JSONValue) -> String {
        let required = Set(schema["required"].elements.map(\.string))
        var members = schema["properties"].members.members.map { name, member in
            "\(quoted(name))\(required.contains(name) ? "" : "?"): \(type(of: member))"
        }
        if schema["additionalProperties"] != false {
            // Beside declared members only `unknown` goes with all of them.
            let others = members.isEmpty ? type(of: schema["additionalProperties"]) : "unknown"
            members.append("[member: string]: \(others)")
        }
        return "{ \(members.joined(separator: "; ")) }"
    }

    private func quoted(_ name: String) -> String { String(decoding: JSONValue.string(name).text, as: UTF8.self) }
}
