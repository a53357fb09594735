internal import StateJSON
internal import StateStore

/// The OpenAPI 3.1 document of a store, as its client sees it.
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
        let operations = OpenAPIOperations(store: store, viewSchemas: viewComponents.mapValues(\.name))
        return JSONValue.of(
            ("openapi", .string("3.1.0")),
            (
                "info",
                .of(
                    ("title", .string("Storekeeper")), ("version", .string("1")),
                    ("summary", .string("One authoritative state for many processes.")),
                    ("description", .string(Self.overview)))
            ),
            ("servers", .array([.of(("url", .string("/")), ("description", .string("The server of this document.")))])),
            (
                "tags",
                .array(operations.tags.map { .of(("name", .string($0.name)), ("description", .string($0.text))) })
            ),
            ("paths", operations.paths),
            (
                "components",
                .of(
                    ("schemas", schemas), ("parameters", parameters),
                    ("headers", Self.members(OpenAPIParameters.fields)),
                    ("responses", Self.problems), ("securitySchemes", Self.credentials))
            ),
            // A server that asks for no token takes requests without one.
            (
                "security",
                .array([
                    .of([]), .of(("token", .array([]))), .of(("basic", .array([]))), .of(("query", .array([]))),
                ])
            )
        ).text
    }

    /// Parses a JSON object of this folder.
    static func members(_ text: String) -> JSONValue {
        do {
            return try JSONValue(parsing: Array(text.utf8))
        } catch {
            preconditionFailure("a part of the OpenAPI document is no JSON: \(error)")
        }
    }

    static func reference(_ place: String, _ name: String) -> JSONValue {
        .of(("$ref", .string("#/components/\(place)/\(name)")))
    }

    // MARK: Schemas

    /// The component of each view: its name, and its schema.
    private var viewComponents: [String: (name: String, schema: JSONValue)] {
        var taken: Set<String> = []
        return Dictionary(
            uniqueKeysWithValues: views.sorted { $0.key < $1.key }.map { view, schema in
                (view, (Self.unique("View-" + Self.component(view), in: &taken), schema))
            })
    }

    private var schemas: JSONValue {
        guard case .object(var schemas) = Self.members(schemasText) else { return .null }
        if !store.isWhole { schemas["Stores"] = nil }
        schemas["State"] = Self.described(state, "The whole state of the store. A past version can have another form.")
        for (view, component) in viewComponents.sorted(by: { $0.key < $1.key }) {
            schemas[component.name] = Self.described(component.schema, "The view \(view).")
        }
        var taken = Set(schemas.members.map(\.key) + ["Action", "Batch", "ServerCode"])
        var mapping = JSONObject()
        var names: [String] = []
        for action in actions {
            let name = Self.unique(Self.component(action.type), in: &taken)
            names.append(name)
            mapping[action.type] = .string("#/components/schemas/\(name)")
            let payload = Self.unique(name + "-payload", in: &taken)
            if action.payload[pointer: "/properties"] != nil { schemas[payload] = action.payload }
            schemas[name] = Self.schema(of: action.type, payload: action.payload, payload)
        }
        // A client that may dispatch nothing has no actions, and a list of alternatives may not be empty.
        schemas["Action"] =
            names.isEmpty
            ? .of(("description", .string("This client may dispatch no action.")), ("not", .of([])))
            : .of(
                ("description", .string("An action of one of the types of the catalogue.")),
                ("oneOf", .array(names.map { Self.reference("schemas", $0) })),
                ("discriminator", .of(("propertyName", .string("type")), ("mapping", .object(mapping)))))
        schemas["Batch"] = .of(
            ("type", .string("array")), ("items", Self.reference("schemas", "Action")), ("minItems", .integer(1)),
            ("maxItems", .integer(Int64(limits.batchActionsMax))),
            (
                "description",
                .string("Actions that commit together or not at all, under one version; a problem has the `index`.")
            ))
        schemas["ServerCode"] = .of(
            ("type", .string("string")), ("description", .string("A code of the server.")),
            ("enum", .array(Self.codes.map(JSONValue.string))))
        return .object(schemas)
    }

    static func described(_ schema: JSONValue, _ description: String) -> JSONValue {
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

    /// The schemas that each store has, with an action of this one as the example.
    private var schemasText: String {
        let action = actions.first.map { action in
            JSONValue.of(("type", .string(action.type)), ("payload", Self.sample(of: action.payload)))
        }
        let line = (action ?? .of(("type", .string("example/add")))).text
        let text = Self.replacing(
            "ACTION_EXAMPLE", with: String(decoding: line, as: UTF8.self), in: OpenAPISchemas.text)
        let lines = JSONValue.string(String(decoding: line, as: UTF8.self) + "\n").text
        return Self.replacing("LINES_EXAMPLE", with: String(decoding: lines, as: UTF8.self), in: text)
    }

    /// A value that a schema of ``SchemaProbe`` describes, with the fields that it needs.
    private static func sample(of schema: JSONValue) -> JSONValue {
        if case .array(let choices)? = schema[pointer: "/enum"], let first = choices.first { return first }
        var kind = schema[pointer: "/type"]
        if case .array(let kinds)? = kind { kind = kinds.first }
        if case .array(let choices)? = schema[pointer: "/anyOf"], let first = choices.first { return sample(of: first) }
        switch (kind, schema[pointer: "/format"]) {
        case (.string("string")?, .string("date-time")?): return .string("2026-11-22T14:03:05Z")
        case (.string("string")?, .string("uuid")?): return .string("2b0f1c52-8a1e-4c3b-9d57-6f1e2a3b4c5d")
        default: break
        }
        switch kind {
        case .string("boolean")?: return .bool(true)
        case .string("string")?: return .string("text")
        case .string("integer")?, .string("number")?: return .integer(1)
        case .string("array")?: return .array(schema[pointer: "/items"].map { [sample(of: $0)] } ?? [])
        default: break
        }
        guard case .array(let names)? = schema[pointer: "/required"],
            case .object(let properties)? = schema[pointer: "/properties"]
        else { return .of([]) }
        return .of(
            names.compactMap { name in
                guard case .string(let name) = name, let property = properties[name] else { return nil }
                return (name, sample(of: property))
            })
    }

    /// The codes of the server, each once, in the order of their statuses.
    private static var codes: [String] {
        var seen: Set<String> = []
        return ProblemDescription.all.compactMap(\.code).filter { seen.insert($0).inserted }
    }

    private static func schema(of type: String, payload: JSONValue, _ name: String) -> JSONValue {
        let hasFields = payload[pointer: "/properties"] != nil
        // Without a required field, a client can leave the payload out.
        let isNeeded = payload[pointer: "/required"] != nil
        return .of(
            ("type", .string("object")), ("description", .string("The action \(type).")),
            ("required", .array((isNeeded ? ["type", "payload"] : ["type"]).map(JSONValue.string))),
            (
                "properties",
                .of(
                    (
                        "type",
                        .of(
                            ("type", .string("string")), ("const", .string(type)),
                            ("description", .string("The type of the action.")))
                    ),
                    (
                        "payload",
                        .of(
                            (hasFields
                                ? [("$ref", .string("#/components/schemas/\(name)"))] : [("type", .string("object"))])
                                + [("description", .string("The fields of the action."))])
                    ),
                    ("id", reference("schemas", "ActionID")), ("meta", reference("schemas", "Meta")),
                    (
                        "expect",
                        .of(
                            ("type", .string("array")), ("items", reference("schemas", "Expectation")),
                            ("description", .string("Tests of the state before the action.")))
                    ))
            ), ("additionalProperties", .bool(false)))
    }

    /// The name of a component for a name of the domain: ASCII letters, digits and hyphens.
    static func component(_ name: String) -> String {
        String(name.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" })
    }

    /// A name that nothing else has.
    static func unique(_ name: String, in taken: inout Set<String>) -> String {
        var candidate = name
        var number = 2
        while !taken.insert(candidate).inserted {
            candidate = "\(name)-\(number)"
            number += 1
        }
        return candidate
    }

    // MARK: Parameters, problems and credentials

    private var parameters: JSONValue {
        var text = OpenAPIParameters.text
        for (name, value) in [
            ("WAIT_DEFAULT", Int(limits.waitDefault.components.seconds)),
            ("WAIT_MAX", Int(limits.waitMax.components.seconds)),
            ("DEBOUNCE_MAX", Int(limits.debounceMax / .milliseconds(1))),
            ("LIMIT_DEFAULT", limits.changesLimitDefault), ("LIMIT_MAX", limits.changesLimitMax),
        ] {
            text = Self.replacing(name, with: String(value), in: text)
        }
        guard case .object(var parameters) = Self.members(text) else { return .null }
        // Only a client that operates the whole store has a route with it.
        if !store.isWhole || !store.access.operates { parameters["verbose"] = nil }
        // The types that the client may see in the log.
        let types = store.scope.types.filter(store.sees(type:))
        if !types.isEmpty, case .object(var parameter)? = parameters["types"] {
            parameter["schema"] = .of(
                ("type", .string("array")), ("minItems", .integer(1)),
                (
                    "items",
                    .of(("type", .string("string")), ("enum", .array(types.map(JSONValue.string))))
                ))
            parameters["types"] = .object(parameter)
        }
        return .object(parameters)
    }

    private static func replacing(_ word: String, with value: String, in text: String) -> String {
        var result = ""
        var rest = text[...]
        while let range = rest.firstRange(of: word) {
            result += rest[..<range.lowerBound] + value
            rest = rest[range.upperBound...]
        }
        return result + rest
    }

    /// An answer for each status of a problem, with every code that it can have.
    private static var problems: JSONValue {
        var responses = JSONObject()
        for (status, reason) in ProblemDescription.reasons {
            let kinds = ProblemDescription.all.filter { $0.status == status }
            let lines = kinds.map { kind in
                "- \(kind.code.map { "`\($0)`" } ?? "a code of the domain"): \(kind.meaning)"
                    + (kind.further.isEmpty ? "" : " (\(kind.further))")
            }
            var fields = JSONObject()
            for name in OpenAPIParameters.ofEveryAnswer + (Self.fields[status] ?? []) {
                fields[name] = reference("headers", name)
            }
            responses["Problem\(status)"] = .of(
                ("description", .string("\(reason)\n\n" + lines.joined(separator: "\n"))), ("headers", .object(fields)),
                ("content", problem))
        }
        responses["Problem"] = .of(
            ("description", .string("Any other problem (RFC 9457).")), ("content", problem))
        return .object(responses)
    }

    private static var problem: JSONValue {
        .of(("application/problem+json", .of(("schema", reference("schemas", "Problem")))))
    }

    /// The header fields that only problems of a status have.
    private static let fields = [
        401: ["WWW-Authenticate"], 405: ["Allow"], 410: ["Link"], 415: ["Accept", "Accept-Encoding"],
        429: ["Retry-After"], 503: ["Retry-After"],
    ]

    private static var credentials: JSONValue {
        .of(
            (
                "token",
                .of(
                    ("type", .string("http")), ("scheme", .string("bearer")),
                    ("description", .string("A token (RFC 6750), where the server asks for one.")))
            ),
            (
                "basic",
                .of(
                    ("type", .string("http")), ("scheme", .string("basic")),
                    ("description", .string("The token as the password, with any user name.")))
            ),
            (
                "query",
                .of(
                    ("type", .string("apiKey")), ("in", .string("query")), ("name", .string("access_token")),
                    ("description", .string("The token, only with `Accept: text/event-stream`.")))
            ))
    }
}

extension JSONValue {
    /// An object with these members.
    static func of(_ members: (String, JSONValue)...) -> JSONValue { of(members) }

    /// An object with these members.
    static func of(_ members: [(String, JSONValue)]) -> JSONValue {
        var object = JSONObject()
        for (key, value) in members { object[key] = value }
        return .object(object)
    }
}
