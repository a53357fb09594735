internal import CDocuments
internal import StateJSON
internal import StateStore

/// The OpenAPI 3.1 document of a store, with all routes, and schemas of what the client may see.
struct OpenAPIDocument {
    let store: VisibleStore
    let limits: ContractLimits
    let actions: [(type: String, payload: JSONValue)]
    let state: JSONValue
    let views: [String: JSONValue]
    let parameters: [String: JSONValue]

    var text: [UInt8] {
        var document = Self.source
        document["paths"] = paths(document["paths"].members)
        document["components"]["schemas"] = schemas(document["components"]["schemas"].members)
        document["components"]["parameters"] = parameters(document["components"]["parameters"])
        return document.text
    }

    private static var source: JSONValue {
        var length = 0
        let start = storekeeper_openapi(&length)
        do {
            return try JSONValue(parsing: Array(UnsafeRawBufferPointer(start: start, count: length)))
        } catch {
            preconditionFailure("openapi.json is not JSON: \(error)")
        }
    }

    // MARK: Paths

    private func paths(_ all: JSONObject) -> JSONValue {
        var paths = JSONObject()
        for (path, item) in all.members where hasPath(path) {
            guard !path.hasSuffix("/{view}") else {
                for (name, item) in viewItems(item) { paths["\(store.path)/views/\(name)"] = item }
                continue
            }
            paths[path.hasPrefix("/v1") ? store.path + path.dropFirst(3) : path] = item
        }
        return .object(paths)
    }

    private static let pathsOfForks = ["/v1/state", "/v1/views", "/v1/actions", "/v1/changes", "/v1/schedule"]
    private static let pathsOfTheWholeStore = [
        "/v1/schedule", "/v1/forks", "/v1/bisect", "/v1/operations", "/v1/me", "/v1/stores", "/v1/client.js",
        "/v1/client.py", "/v1/docs", "/v1/journal", "/livez", "/readyz", "/metrics",
    ]

    private func hasPath(_ path: String) -> Bool {
        if store.isFork { return Self.pathsOfForks.contains(where: path.hasPrefix) }
        return store.isWhole || !Self.pathsOfTheWholeStore.contains(where: path.hasPrefix)
    }

    private func viewItems(_ item: JSONValue) -> [(String, JSONValue)] {
        viewComponents.map { view, component, _ in
            let name = component.dropFirst("View-".count)
            var item = item
            for method in ["get", "head"] {
                if let schema = parameters[view] {
                    item[method]["parameters"] = .array(item[method]["parameters"].elements + Self.parameters(schema))
                }
                item[method]["operationId"] = .string("\(method)View-\(name)")
                item[method]["summary"] = .string(
                    method == "get" ? "The view \(view)" : "The head of: The view \(view)")
            }
            item["get"]["responses"]["200"]["content"]["application/json"]["schema"] = Self.reference(
                "schemas", component)
            return (view.percentEncoded, item)
        }
    }

    private static func parameters(_ schema: JSONValue) -> [JSONValue] {
        let required = schema["required"].elements
        return schema["properties"].members.members.map { name, property in
            .of(
                ("name", .string(name)), ("in", "query"), ("required", .bool(required.contains(.string(name)))),
                ("description", .string("The parameter \(name) of the view.")),
                ("schema", property.openAPISchema(at: "#")))
        }
    }

    // MARK: Schemas

    private var viewComponents: [(view: String, name: String, schema: JSONValue)] {
        var taken: Set<String> = []
        return views.sorted { $0.key < $1.key }.map { view, schema in
            (view, Self.unique("View-" + Self.component(view), in: &taken), schema)
        }
    }

    private func schemas(_ all: JSONObject) -> JSONValue {
        var schemas = all
        schemas["Batch"]?["maxItems"] = .integer(Int64(limits.batchActionsMax))
        schemas["State"] = Self.described(state, "The whole state of the store. A past version can have another form.")
        for (view, name, schema) in viewComponents { schemas[name] = Self.described(schema, "The view \(view).") }
        var taken = Set(schemas.members.map(\.key) + ["Action"])
        var mapping = JSONObject()
        var names: [String] = []
        for action in actions {
            let name = Self.unique(Self.component(action.type), in: &taken)
            names.append(name)
            mapping[action.type] = .string("#/components/schemas/\(name)")
            let payload = Self.unique(name + "-payload", in: &taken)
            if action.payload != ["type": "object"] {
                schemas[payload] = action.payload.openAPISchema(at: "#/components/schemas/\(payload)")
            }
            schemas[name] = Self.schema(of: action.type, payload: action.payload, payload)
        }
        // A client that may dispatch nothing has no actions, and a list of alternatives may not be empty.
        schemas["Action"] =
            names.isEmpty
            ? ["description": "This client may dispatch no action.", "not": [:]]
            : [
                "description": "An action of one of the types of the catalogue.",
                "oneOf": .array(names.map { Self.reference("schemas", $0) }),
                "discriminator": ["propertyName": "type", "mapping": .object(mapping)],
            ]
        return .object(schemas)
    }

    private static func described(_ schema: JSONValue, _ description: String) -> JSONValue {
        guard case .object(var members) = schema else { return schema }
        members["description"] = .string(description)
        if case .object(var properties)? = members["properties"] {
            for (name, property) in properties.members {
                guard case .object(var property) = property else { continue }
                property["description"] = .string("The member \(name).")
                properties[name] = .object(property)
            }
            members["properties"] = .object(properties)
        }
        return .object(members)
    }

    private static func schema(of type: String, payload: JSONValue, _ name: String) -> JSONValue {
        var fields: JSONValue = payload == ["type": "object"] ? payload : reference("schemas", name)
        fields["description"] = "The fields of the action."
        return [
            "type": "object", "description": .string("The action \(type)."),
            // Without a required field, a client can leave the payload out.
            "required": payload.takesEmptyObject ? ["type"] : ["type", "payload"],
            "properties": [
                "type": ["type": "string", "const": .string(type), "description": "The type of the action."],
                "payload": fields, "id": reference("schemas", "ActionID"), "meta": reference("schemas", "Meta"),
                "expect": [
                    "type": "array", "items": reference("schemas", "Expectation"),
                    "description": "Tests of the state before the action.",
                ],
                "schedule": reference("schemas", "When"),
            ], "additionalProperties": false,
        ]
    }

    static func reference(_ place: String, _ name: String) -> JSONValue {
        ["$ref": .string("#/components/\(place)/\(name)")]
    }

    private static func component(_ name: String) -> String {
        String(name.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" })
    }

    private static func unique(_ name: String, in taken: inout Set<String>) -> String {
        var candidate = name
        var number = 2
        while !taken.insert(candidate).inserted {
            candidate = "\(name)-\(number)"
            number += 1
        }
        return candidate
    }

    // MARK: Parameters

    private func parameters(_ all: JSONValue) -> JSONValue {
        var parameters = all
        parameters["debounce"]["schema"]["maximum"] = .integer(Int64(limits.debounceMax / .milliseconds(1)))
        for name in ["limit", "limit-of-schedule"] {
            parameters[name]["schema"]["default"] = .integer(Int64(limits.changesLimitDefault))
        }
        // The types that the client may see in the log, without those that are for the domain alone.
        let types = store.scope.open.map(\.type).filter(store.sees(type:))
        if !types.isEmpty {
            let item: JSONValue = [
                "type": "string", "anyOf": [["enum": .array(types.map(JSONValue.string))], ["pattern": #"\*$"#]],
            ]
            parameters["types"]["schema"] = ["type": "array", "minItems": 1, "items": item]
        }
        return parameters
    }
}

extension String {
    /// The text in ASCII that no other text has: a percent escape for each byte that RFC 3986 reserves.
    var percentEncoded: String {
        utf8.reduce(into: "") { text, byte in
            let isPlain =
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || [0x2D, 0x2E, 0x5F, 0x7E].contains(byte)
            if isPlain {
                text.append(Character(Unicode.Scalar(byte)))
            } else {
                text +=
                    "%" + String(byte >> 4, radix: 16, uppercase: true) + String(byte & 15, radix: 16, uppercase: true)
            }
        }
    }
}

extension JSONValue {
    var members: JSONObject {
        get { if case .object(let object) = self { object } else { JSONObject() } }
        set { self = .object(newValue) }
    }

    var elements: [JSONValue] { if case .array(let elements) = self { elements } else { [] } }

    var string: String {
        switch self {
        case .string(let text): text
        case .integer(let number): "\(number)"
        default: ""
        }
    }

    subscript(key: String) -> JSONValue {
        get { members[key] ?? .null }
        set { members[key] = newValue }
    }
}

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
