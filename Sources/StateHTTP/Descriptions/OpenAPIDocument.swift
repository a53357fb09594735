internal import StateJSON
internal import StateStore

/// The OpenAPI 3.1 document of a store, as its client sees it.
///
/// ``OpenAPISource`` has what is the same for all. Here come the paths of this store and its views, the schemas of its state
/// and its actions, the limits in force, and what the client may not use goes.
struct OpenAPIDocument {
    let store: VisibleStore
    let limits: ContractLimits
    /// The action types that the client may dispatch, with the JSON Schema of the payload.
    let actions: [(type: String, payload: JSONValue)]
    /// The JSON Schema of the whole state.
    let state: JSONValue
    /// The JSON Schema of each view, by its name in this store.
    let views: [String: JSONValue]

    /// The document, UTF-8 JSON.
    var text: [UInt8] {
        var document = OpenAPISource.document(with: words)
        document["paths"] = paths(document["paths"].members)
        document["components"]["schemas"] = schemas(document["components"]["schemas"].members)
        document["components"]["parameters"] = parameters(document["components"]["parameters"].members)
        return Self.pruned(document).text
    }

    /// The document without tags and components of which nothing in it speaks.
    private static func pruned(_ document: JSONValue) -> JSONValue {
        var document = document
        let operations = document["paths"].members.members.flatMap { $0.value.members.members.map(\.value) }
        let tags = operations.flatMap { $0["tags"].elements }
        document["tags"] = .array(document["tags"].elements.filter { tags.contains($0["name"]) })
        var count = Int.max
        while true {
            var references: Set<String> = []
            collect(&references, of: document)
            // What only a component names that goes, goes with it.
            guard references.count < count else { return document }
            count = references.count
            for kind in ["schemas", "parameters", "headers"] {
                let kept = document["components"][kind].members.members.filter {
                    references.contains("#/components/\(kind)/\($0.key)")
                }
                document["components"][kind] = .of(kept.map { ($0.key, $0.value) })
            }
        }
    }

    private static func collect(_ references: inout Set<String>, of value: JSONValue) {
        switch value {
        case .object(let object):
            for (key, member) in object.members {
                if key == "$ref" { references.insert(member.string) } else { collect(&references, of: member) }
            }
        case .array(let elements): for element in elements { collect(&references, of: element) }
        default: break
        }
    }

    /// What stands in the place of the words in capitals.
    private var words: [String: JSONValue] {
        let action = actions.first.map { action in
            JSONValue.of(("type", .string(action.type)), ("payload", Self.sample(of: action.payload)))
        }
        let example = action ?? ["type": "example/add"]
        return [
            "ACTION_EXAMPLE": example,
            "LINES_EXAMPLE": .string(String(decoding: example.text, as: UTF8.self) + "\n"),
            "BATCH_ACTIONS_MAX": .integer(Int64(limits.batchActionsMax)),
            "WAIT_DEFAULT": .integer(limits.waitDefault.components.seconds),
            "WAIT_MAX": .integer(limits.waitMax.components.seconds),
            "DEBOUNCE_MAX": .integer(Int64(limits.debounceMax / .milliseconds(1))),
            "LIMIT_DEFAULT": .integer(Int64(limits.changesLimitDefault)),
            "LIMIT_MAX": .integer(Int64(limits.changesLimitMax)),
        ]
    }

    // MARK: Paths

    /// The path items of this store.
    private func paths(_ all: JSONObject) -> JSONValue {
        var paths = JSONObject()
        for (path, item) in all.members where isThere(path) {
            guard !path.hasSuffix("/{view}") else {
                for (name, item) in viewItems(item) { paths["\(store.path)/views/\(name)"] = item }
                continue
            }
            paths[path.hasPrefix("/v1") ? store.path + path.dropFirst(3) : path] = item
        }
        if !store.access.operates, var item = paths["/readyz"] {
            for method in ["get", "head"] { item[method]["parameters"] = [] }
            paths["/readyz"] = item
        }
        return .object(paths)
    }

    /// Whether a path of the source is one of this store, and the client may use it.
    private func isThere(_ path: String) -> Bool {
        switch path {
        case _
        where store.isFork && !path.hasPrefix("/v1/state") && !path.hasPrefix("/v1/views")
            && !path.hasPrefix("/v1/actions") && !path.hasPrefix("/v1/changes"):
            false
        case "/v1/state": store.seesWholeState
        case "/v1/forks", "/v1/forks/{fork}": store.isWhole && store.access.forks
        case "/v1/bisect": store.isWhole && store.access.seesEverything
        case "/v1/operations": store.isWhole && store.access.operates
        case "/v1/me", "/v1/stores", "/v1/client.js", "/livez", "/readyz": store.isWhole
        case "/v1/journal/backup": store.isWhole && store.access.backsUp
        case "/metrics": store.isWhole && store.access.operates
        default: true
        }
    }

    /// The item of each view, with the segment of its path.
    private func viewItems(_ item: JSONValue) -> [(String, JSONValue)] {
        var taken: Set<String> = []
        return viewComponents.map { view, component, _ in
            let name = Self.unique(Self.component(view), in: &taken)
            var item = item
            for method in ["get", "head"] {
                item[method]["operationId"] = .string("\(method)View-\(name)")
                item[method]["summary"] = .string(
                    method == "get" ? "The view \(view)" : "The head of: The view \(view)")
            }
            item["get"]["responses"]["200"]["content"]["application/json"]["schema"] = Self.reference(
                "schemas", component)
            return (Self.escaped(view), item)
        }
    }

    /// A name with escapes for the characters that a path must not have as they are.
    private static func escaped(_ name: String) -> String {
        name.utf8.reduce(into: "") { text, byte in
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

    // MARK: Schemas

    /// Each view with the name of its component and its schema, in the order of their names.
    private var viewComponents: [(view: String, name: String, schema: JSONValue)] {
        var taken: Set<String> = []
        return views.sorted { $0.key < $1.key }.map { view, schema in
            (view, Self.unique("View-" + Self.component(view), in: &taken), schema)
        }
    }

    private func schemas(_ all: JSONObject) -> JSONValue {
        var schemas = all
        if !store.isWhole { schemas["Stores"] = nil }
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

    /// A value that a schema of ``SchemaProbe`` describes, with the fields that it needs.
    private static func sample(of schema: JSONValue) -> JSONValue {
        if case .array(let choices)? = schema[pointer: "/enum"], let first = choices.first { return first }
        var kind = schema[pointer: "/type"]
        if case .array(let kinds)? = kind { kind = kinds.first }
        if case .array(let choices)? = schema[pointer: "/anyOf"], let first = choices.first { return sample(of: first) }
        switch (kind, schema[pointer: "/format"]) {
        case ("string"?, "date-time"?): return "2026-11-22T14:03:05Z"
        case ("string"?, "uuid"?): return "2b0f1c52-8a1e-4c3b-9d57-6f1e2a3b4c5d"
        case ("boolean"?, _): return true
        case ("string"?, _): return "text"
        case ("integer"?, _), ("number"?, _): return 1
        case ("array"?, _): return .array(schema[pointer: "/items"].map { [sample(of: $0)] } ?? [])
        default: break
        }
        guard case .array(let names)? = schema[pointer: "/required"],
            case .object(let properties)? = schema[pointer: "/properties"]
        else { return [:] }
        return .of(
            names.compactMap { name in
                guard case .string(let name) = name, let property = properties[name] else { return nil }
                return (name, sample(of: property))
            })
    }

    private static func schema(of type: String, payload: JSONValue, _ name: String) -> JSONValue {
        var fields: JSONValue =
            payload == ["type": "object"] ? payload : reference("schemas", name)
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
            ], "additionalProperties": false,
        ]
    }

    static func reference(_ place: String, _ name: String) -> JSONValue {
        ["$ref": .string("#/components/\(place)/\(name)")]
    }

    /// The name of a component for a name of the domain: ASCII letters, digits and hyphens.
    private static func component(_ name: String) -> String {
        String(name.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" })
    }

    /// A name that nothing else has.
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

    private func parameters(_ all: JSONObject) -> JSONValue {
        var parameters = all
        // Only a client that operates the whole store has a route with it.
        if !store.isWhole || !store.access.operates { parameters["verbose"] = nil }
        // The types that the client may see in the log.
        let types = store.scope.types.filter(store.sees(type:))
        if !types.isEmpty {
            let item: JSONValue = [
                "type": "string", "anyOf": [["enum": .array(types.map(JSONValue.string))], ["pattern": #"\*$"#]],
            ]
            parameters["types"]?["schema"] = ["type": "array", "minItems": 1, "items": item]
        }
        return .object(parameters)
    }
}
