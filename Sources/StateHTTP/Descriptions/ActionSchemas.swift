internal import StateJSON
internal import StateStore

/// The catalogue of actions and the OpenAPI description of a store, derived from the domain's types.
struct ActionSchemas {
    private let actions: [(type: String, payload: JSONValue)]
    private let views: [String]

    /// The path of the store.
    private let root: String
    /// Whether a client of the store may have a backup of the journal.
    private let hasBackup: Bool

    /// - Parameter schemas: the JSON Schema of the payload of each action type.
    init(_ store: VisibleStore, _ schemas: [String: JSONValue]) {
        actions = store.types.compactMap { type in schemas[type].map { (type, $0) } }
        views = store.views.keys.sorted()
        root = store.path
        hasBackup = store.isWhole && store.access.backsUp
    }

    var documents: StoreDocuments { StoreDocuments(catalogue: catalogue, openAPI: openAPI) }

    /// `{"actions":[{"type","payload":<JSON Schema>}]}`, UTF-8, sorted by type.
    var catalogue: [UInt8] {
        JSONValue.of(("actions", .array(actions.map { .of(("type", .string($0.type)), ("payload", $0.payload)) }))).text
    }

    /// The OpenAPI 3.1 document, UTF-8 JSON.
    var openAPI: [UInt8] {
        JSONValue.of(
            ("openapi", .string("3.1.0")),
            ("info", .of(("title", .string("Storekeeper")), ("version", .string("1")))),
            ("paths", paths),
            (
                "components",
                .of(
                    ("schemas", schemas),
                    (
                        "securitySchemes",
                        .of(("token", .of(("type", .string("http")), ("scheme", .string("bearer")))))
                    ))
            ),
            // A server that asks for no token takes requests without one.
            ("security", .array([.object(JSONObject()), .of(("token", .array([])))]))
        ).text
    }

    private var schemas: JSONValue {
        var schemas = JSONObject()
        let names = actions.map { Self.name(of: $0.type) }
        var mapping = JSONObject()
        for (action, name) in zip(actions, names) { mapping[action.type] = .string("#/components/schemas/\(name)") }
        schemas["Action"] = .of(
            ("oneOf", .array(names.map(Self.reference))),
            ("discriminator", .of(("propertyName", .string("type")), ("mapping", .object(mapping)))))
        for (action, name) in zip(actions, names) {
            let hasFields = action.payload[pointer: "/properties"] != nil
            schemas[name] = .of(
                ("type", .string("object")),
                ("required", .array((hasFields ? ["type", "payload"] : ["type"]).map(JSONValue.string))),
                (
                    "properties",
                    .of(
                        ("type", .of(("const", .string(action.type)))), ("payload", action.payload),
                        ("id", Self.type("string")), ("meta", Self.type("object")),
                        (
                            "expect",
                            .of(
                                ("type", .string("array")),
                                (
                                    "items",
                                    .of(
                                        ("type", .string("object")),
                                        ("required", .array([.string("path"), .string("value")])))
                                ))
                        ))
                ), ("additionalProperties", .bool(false)))
        }
        schemas["Receipt"] = Self.object(
            ["cursor": "string", "version": "integer", "id": "string", "changed": "boolean"], required: true)
        schemas["DryRun"] = Self.object(["dryRun": "boolean", "changed": "boolean", "patch": "array"], required: true)
        schemas["Nothing"] = Self.object(["committed": "boolean", "changed": "boolean"], required: true)
        schemas["Undecided"] = Self.object(["settled": "boolean", "detail": "string"], required: true)
        schemas["Problem"] = Self.object(
            [
                "type": "string", "title": "string", "status": "integer", "code": "string", "detail": "string",
                "requestId": "string", "cursor": "string", "errors": "array",
            ], required: false)
        schemas["Changes"] = Self.object(
            ["changes": "array", "next": "string", "more": "boolean", "head": "string"], required: true)
        return .object(schemas)
    }

    private var paths: JSONValue {
        let wait = Self.query("wait", "Seconds to wait for other content, with If-None-Match", "number")
        let pretty = Self.query("pretty", "Indent the answer", "boolean")
        let atLeast = Self.query("at-least", "A cursor that the answer must not be older than", "string")
        var paths = JSONObject()
        let version = Self.query("version", "A past version, while it is kept", "integer")
        let keyed = Self.query("as", "keyed: IDs of the entities that came, went or changed", "string")
        let known = Self.query("since", "With as=keyed, the cursor that the client has", "string")
        let until = Self.query("until", "With wait: the JSON that the value is waited to become", "string")
        let debounce = Self.query("debounce", "Milliseconds to collect a burst of changes", "integer")
        let viewing = [wait, until, debounce, atLeast, version, pretty]
        let reading = viewing + [keyed, known]
        paths["\(root)"] = Self.get("Epoch, version, limits and links", [pretty])
        paths["\(root)/state"] = Self.get("The whole state", reading, streams: ["text/event-stream"])
        paths["\(root)/state/{pointer}"] = Self.get(
            "A part of the state by JSON Pointer",
            [Self.parameter("pointer", "path", "Tokens of a JSON Pointer", "string", isRequired: true)] + reading,
            streams: ["text/event-stream"])
        for view in views {
            paths["\(root)/views/\(view)"] = Self.get("The view \(view)", viewing, streams: ["text/event-stream"])
        }
        paths["\(root)/views"] = Self.get("The named views", [pretty])
        paths["\(root)/changes"] = Self.get(
            "Every commit after a cursor",
            [
                Self.parameter("since", "query", "A cursor, oldest or now", "string", isRequired: true), wait, debounce,
                Self.parameter(
                    "limit", "query", "How many commits at most",
                    .of(("type", .string("integer")), ("minimum", .integer(1))),
                    isRequired: false),
                Self.query("path", "Only commits that touch this JSON Pointer", "string"),
                Self.query("types", "Only commits with these action types, comma-separated", "string"),
                Self.query("by", "Only commits that this subject has dispatched", "string"),
                Self.query("on-lost", "snapshot: answer a lost cursor with the state", "string"), keyed, pretty,
                Self.parameter(
                    "Last-Event-ID", "header", "The ID of the last event received; beats since", "string",
                    isRequired: false),
            ], schema: "Changes", streams: ["text/event-stream", "application/x-ndjson"])
        var actions = JSONObject()
        if case .object(let get) = Self.get("The action types", [pretty]) { actions["get"] = get["get"] }
        actions["post"] = .of(
            ("summary", .string("Dispatch one action, or an array of them as one commit")),
            (
                "parameters",
                .array([
                    Self.query("dry-run", "Commit nothing, answer with the patch", "boolean"),
                    Self.query("path", "What If-Match guards", "string"), pretty,
                    Self.parameter("Idempotency-Key", "header", "Makes a retry safe", "string", isRequired: false),
                    Self.parameter("If-Match", "header", "The tag that path must have", "string", isRequired: false),
                    Self.parameter(
                        "Prefer", "header", "return=minimal, return=representation, wait=<seconds>", "string",
                        isRequired: false),
                ])
            ),
            (
                "requestBody",
                .of(
                    ("required", .bool(true)),
                    (
                        "content",
                        .of(
                            (
                                "application/json",
                                .of(
                                    (
                                        "schema",
                                        .of(
                                            (
                                                "oneOf",
                                                .array([
                                                    Self.reference("Action"),
                                                    .of(
                                                        ("type", .string("array")), ("items", Self.reference("Action")),
                                                        ("minItems", .integer(1))),
                                                ])
                                            ))
                                    ))
                            ),
                            ("application/x-ndjson", .of(("schema", Self.reference("Action")))))
                    ))
            ), ("responses", Self.postResponses))
        paths["\(root)/actions"] = .object(actions)
        paths["\(root)/actions/{id}"] = Self.get(
            "What became of an action",
            [Self.parameter("id", "path", "The ID of a commit or an action", "string", isRequired: true), pretty])
        if hasBackup {
            paths["\(root)/journal/backup"] = .of(
                (
                    "get",
                    .of(
                        ("summary", .string("A backup of the journal: a tar archive of a data directory")),
                        ("parameters", .array([])),
                        (
                            "responses",
                            .of(
                                ("200", Self.answer("As asked", [("application/x-tar", .object(JSONObject()))])),
                                ("503", Self.problem("backup-under-way, memory-exhausted or draining")),
                                ("507", Self.problem("no-room-for-backup: the disk has too little room")),
                                ("default", Self.problem))
                        ))
                ))
        }
        return .object(paths)
    }

    private static func name(of type: String) -> String {
        String(type.map { $0.isLetter || $0.isNumber ? $0 : "-" })
    }

    private static func reference(_ name: String) -> JSONValue {
        .of(("$ref", .string("#/components/schemas/\(name)")))
    }

    private static func type(_ name: String) -> JSONValue { .of(("type", .string(name))) }

    private static func object(_ properties: KeyValuePairs<String, String>, required: Bool) -> JSONValue {
        var members = JSONObject()
        for (name, type) in properties { members[name] = Self.type(type) }
        var schema: [(String, JSONValue)] = [("type", .string("object")), ("properties", .object(members))]
        if required { schema.append(("required", .array(properties.map { .string($0.key) }))) }
        return .of(schema)
    }

    private static func query(_ name: String, _ summary: String, _ type: String) -> JSONValue {
        parameter(name, "query", summary, type, isRequired: false)
    }

    private static func parameter(
        _ name: String, _ place: String, _ summary: String, _ type: String, isRequired: Bool
    ) -> JSONValue { parameter(name, place, summary, Self.type(type), isRequired: isRequired) }

    private static func parameter(
        _ name: String, _ place: String, _ summary: String, _ schema: JSONValue, isRequired: Bool
    ) -> JSONValue {
        .of(
            ("name", .string(name)), ("in", .string(place)), ("description", .string(summary)),
            ("required", .bool(isRequired)), ("schema", schema))
    }

    private static func get(
        _ summary: String, _ parameters: [JSONValue], schema: String? = nil, streams: [String] = []
    ) -> JSONValue {
        .of(
            (
                "get",
                .of(
                    ("summary", .string(summary)), ("parameters", .array(parameters)),
                    ("responses", responses(schema: schema, streams: streams)))
            ))
    }

    private static func responses(schema: String?, streams: [String] = []) -> JSONValue {
        let schema = schema.map(reference) ?? .object(JSONObject())
        let text = JSONValue.of(("schema", type("string")))
        let content = [("application/json", JSONValue.of(("schema", schema)))] + streams.map { ($0, text) }
        return .of(
            ("200", answer("As asked", content)),
            ("500", problem("journal-damaged: the journal has not what was recorded; internal: the server failed")),
            ("default", problem))
    }

    private static var postResponses: JSONValue {
        let one = JSONValue.of(("oneOf", .array(["Receipt", "DryRun", "Nothing"].map(reference))))
        let waiting = JSONValue.of(("anyOf", .array(["Receipt", "Undecided"].map(reference))))
        return .of(
            (
                "200",
                answer(
                    "Committed, or computed in a dry run, or nothing to commit; for NDJSON a line for each line",
                    [
                        ("application/json", .of(("schema", one))),
                        ("application/x-ndjson", .of(("schema", type("string")))),
                    ])
            ),
            (
                "202",
                answer(
                    "The wait ended before the cascade, or before the turn",
                    [("application/json", .of(("schema", waiting)))])
            ), ("204", answer("Committed, with return=minimal", [])),
            (
                "503",
                problem(
                    "outcome-unknown: whether the action is committed is not known, so ask for its id, or send it again with its Idempotency-Key; any other code: nothing was committed"
                )
            ), ("default", problem))
    }

    private static var problem: JSONValue { problem("A problem (RFC 9457)") }

    private static func problem(_ description: String) -> JSONValue {
        answer(description, [("application/problem+json", .of(("schema", reference("Problem"))))])
    }

    private static func answer(_ description: String, _ content: [(String, JSONValue)]) -> JSONValue {
        let content = content.isEmpty ? [] : [("content", JSONValue.of(content))]
        return .of([("description", .string(description))] + content)
    }
}

extension JSONValue {
    fileprivate static func of(_ members: (String, JSONValue)...) -> JSONValue { of(members) }

    fileprivate static func of(_ members: [(String, JSONValue)]) -> JSONValue {
        var object = JSONObject()
        for (key, value) in members { object[key] = value }
        return .object(object)
    }
}
