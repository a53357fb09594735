internal import StateJSON
internal import StateStore

/// The routes of a store in its OpenAPI document.
struct OpenAPIOperations {
    let store: VisibleStore
    /// The component of each view's value, by the view's name.
    let viewSchemas: [String: String]

    /// An operation on a path.
    struct Operation {
        /// A verb and a name, which together make the `operationId`; of a HEAD the verb is "head".
        var id: String
        var tag: String
        var summary: String
        var description = ""
        /// The names of the parameters' components.
        var parameters: [String] = []
        var body: JSONValue?
        var answers: [(String, JSONValue)]
        /// The statuses of the problems that are described by their codes.
        var problems: [Int] = []

        /// - Parameter isHead: whether it is the HEAD of a GET, whose answers have no content.
        func value(isHead: Bool = false) -> JSONValue {
            let parts = id.split(separator: " ")
            let name = (isHead ? "head" : String(parts[0])) + parts.dropFirst().joined()
            var answers = answers
            if isHead { answers = answers.map { ($0.0, Self.withoutContent($0.1)) } }
            answers += problems.map { ("\($0)", OpenAPIDocument.reference("responses", "Problem\($0)")) }
            answers.append(("default", OpenAPIDocument.reference("responses", "Problem")))
            return .of(
                [
                    ("operationId", .string(name)), ("tags", .array([.string(tag)])),
                    ("summary", .string(isHead ? "The head of: \(summary)" : summary)),
                    (
                        "description",
                        .string(isHead ? "What GET answers, without the content; never a stream." : description)
                    ),
                    ("parameters", .array(parameters.map { OpenAPIDocument.reference("parameters", $0) })),
                ] + (body.map { [("requestBody", $0)] } ?? []) + [("responses", .of(answers))])
        }

        private static func withoutContent(_ answer: JSONValue) -> JSONValue {
            guard case .object(var members) = answer else { return answer }
            members["content"] = nil
            return .object(members)
        }
    }

    /// The tags with their descriptions.
    var tags: [(name: String, text: String)] {
        [
            ("store", "What the store is, and where its parts are."),
            ("state", "The state and its parts: read, wait, follow as a stream."),
            ("views", "Named selections that the domain computes."),
            ("actions", "Dispatching, the catalogue, and what became of an action."),
            ("changes", "Every commit, in order."),
            ("streams", "The same by the Durable Streams protocol, read side."),
        ] + (store.isWhole ? [("operations", "Probes and metrics, as plain text.")] : [])
    }

    /// The path items by their paths.
    var paths: JSONValue {
        let root = store.path
        var paths: [(String, JSONValue)] = [(root, reads(identity)), ("\(root)/state", reads(state("get State", [])))]
        for (id, names) in [
            ("get Part", ["pointer"]), ("get PartOfPart", ["pointer", "second"]),
            ("get ThirdPart", ["pointer", "second", "third"]),
        ] {
            let path = names.map { "/{\($0)}" }.joined()
            paths.append(("\(root)/state\(path)", reads(state(id, names))))
        }
        paths.append(("\(root)/views", reads(document("get Views", "views", "The named views", "Views"))))
        var taken: Set<String> = []
        for view in store.views.keys.sorted() {
            let name = OpenAPIDocument.unique(OpenAPIDocument.component(view), in: &taken)
            // A character that a path must not have as it is.
            paths.append(("\(root)/views/\(Self.escaped(view))", reads(value(of: view, id: "get View-\(name)"))))
        }
        let catalogue = document("get Actions", "actions", "The types of actions", "Catalogue")
        paths.append(
            (
                "\(root)/actions",
                .of(("get", catalogue.value()), ("head", catalogue.value(isHead: true)), ("post", dispatch.value()))
            ))
        paths.append(("\(root)/actions/{id}", reads(outcome)))
        paths.append(("\(root)/changes", reads(changes)))
        paths.append(("\(root)/streams", reads(document("get Streams", "streams", "The durable streams", "Streams"))))
        paths.append(("\(root)/streams/commits", reads(commitStream)))
        paths.append(("\(root)/streams/state", reads(stateStream)))
        paths.append(
            ("\(root)/openapi.json", reads(document("get OpenAPI", "store", "This document", "OpenAPI"))))
        guard store.isWhole else { return .of(paths) }
        paths.append(("\(root)/stores", reads(document("get Stores", "store", "The derived stores", "Stores"))))
        if store.access.backsUp { paths.append(("\(root)/journal/backup", reads(backup))) }
        paths.append(("/livez", reads(probe("get Livez", "Whether the process answers", "ok", []))))
        paths.append(
            (
                "/readyz",
                reads(
                    probe(
                        "get Readyz", "Whether the server takes actions", "ready",
                        store.access.operates ? ["verbose"] : []))
            ))
        if store.access.operates {
            paths.append(
                ("/metrics", reads(probe("get Metrics", "Metrics in the text format of Prometheus", "# HELP ...", []))))
        }
        return .of(paths)
    }

    private func reads(_ operation: Operation) -> JSONValue {
        .of(("get", operation.value()), ("head", operation.value(isHead: true)))
    }

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

    // MARK: The operations

    static let ofAnyRequest = ["request-id", "traceparent"]
    private static let viewing = [
        "wait", "until", "debounce", "at-least", "version", "pretty", "if-none-match", "prefer",
    ]
    /// The statuses that any request can have.
    static let anyProblems = [400, 401, 404, 405, 408, 414, 421, 429, 431, 500, 501, 503, 505]

    private var identity: Operation {
        var operation = document("get Store", "store", "Epoch, version, cursors, limits and links", "Identity")
        operation.description = "The latest and the oldest cursor, the limits in force, and the paths of this store."
        return operation
    }

    /// A document that needs neither the store nor the journal.
    private func document(_ id: String, _ tag: String, _ summary: String, _ schema: String) -> Operation {
        Operation(
            id: id, tag: tag, summary: summary, description: "Cut to what the client may see.",
            parameters: ["pretty"] + Self.ofAnyRequest,
            answers: [
                ("200", Self.answer("The document.", ["Content-Encoding"], [("application/json", Self.json(schema))]))
            ], problems: Self.anyProblems)
    }

    private func state(_ id: String, _ pointer: [String]) -> Operation {
        let what =
            switch pointer.count {
            case 0: "The whole state"
            case 1: "A part of the state"
            default: "A part of the state, by \(pointer.count) tokens of a JSON Pointer"
            }
        return watched(
            id, "state", what, pointer.isEmpty ? "State" : "Value",
            pointer + Self.viewing + ["as", "known", "last-event-id"],
            "The path behind `state` is a JSON Pointer, a segment for each token, and may be longer than this document shows."
        )
    }

    private func value(of view: String, id: String) -> Operation {
        watched(
            id, "views", "The view \(view)", viewSchemas[view] ?? "Value", Self.viewing + ["last-event-id"],
            "The domain computes it from the state.")
    }

    private func watched(
        _ id: String, _ tag: String, _ summary: String, _ schema: String, _ parameters: [String], _ description: String
    ) -> Operation {
        let fields = ["ETag", "Preference-Applied"]
        return Operation(
            id: id, tag: tag, summary: summary,
            description: description
                + " With `If-None-Match` and `wait` it is a long-poll, with `Accept: text/event-stream` a stream of"
                + " each new value.", parameters: parameters + Self.ofAnyRequest,
            answers: [
                (
                    "200",
                    Self.answer(
                        "The value, with its tag and the cursor of the same instant.",
                        fields + ["Content-Encoding", "X-Accel-Buffering"],
                        [
                            (
                                "application/json",
                                parameters.contains("as")
                                    ? Self.alternatives("anyOf", ["KeyedDifference", schema]) : Self.json(schema)
                            ), ("text/event-stream", Self.json("Events")),
                        ])
                ),
                (
                    "304",
                    Self.answer(
                        "The content is still what `If-None-Match` names, or the time of the wait is up.", fields, [])
                ),
            ], problems: [409, 410] + Self.anyProblems)
    }

    private var dispatch: Operation {
        let content: [(String, JSONValue)] = [
            (
                "application/json",
                .of(
                    (
                        "schema",
                        .of(
                            (
                                "oneOf",
                                .array(["Action", "Batch"].map { OpenAPIDocument.reference("schemas", $0) })
                            ))
                    ))
            ), ("application/x-ndjson", Self.json("Lines")),
        ]
        let one = ["Receipt", "DryRun", "NothingCommitted"]
        let fields = ["Preference-Applied"]
        return Operation(
            id: "dispatch Actions", tag: "actions", summary: "Dispatch an action, an array of them, or NDJSON",
            description:
                "An array is one commit, each line of NDJSON one of its own. After 200 and 204 the commit is on the disk, where there is"
                + " a journal; after any problem but `outcome-unknown` nothing is committed.",
            parameters: ["dry-run", "guarded", "pretty", "idempotency-key", "if-match", "prefer"] + Self.ofAnyRequest,
            body: .of(("required", .bool(true)), ("content", .of(content))),
            answers: [
                (
                    "200",
                    Self.answer(
                        "Committed, or computed in a dry run, or nothing to commit; of NDJSON a line for each line.",
                        fields + ["Idempotency-Replayed"],
                        [
                            ("application/json", Self.alternatives("oneOf", one)),
                            ("application/x-ndjson", Self.json("LineAnswers")),
                        ])
                ),
                (
                    "202",
                    Self.answer(
                        "The wait ended before the cascade, or before the turn.", fields,
                        [("application/json", Self.alternatives("anyOf", ["Receipt", "Undecided"]))])
                ),
                (
                    "204",
                    Self.answer("Committed, with `return=minimal`.", fields + ["Idempotency-Replayed"], [])
                ),
            ], problems: ([409, 412, 413, 415, 422] + Self.anyProblems).sorted())
    }

    private var outcome: Operation {
        Operation(
            id: "get Outcome", tag: "actions", summary: "The commit of an action",
            description: "Found by the ID that the client gave to the action, or by the cursor of the commit.",
            parameters: ["id", "pretty"] + Self.ofAnyRequest,
            answers: [
                (
                    "200",
                    Self.answer(
                        "The commit, with `changed`; the receipt for a client that has dispatched it and may not see its actions.",
                        [], [("application/json", Self.alternatives("anyOf", ["Commit", "Receipt"]))])
                )
            ],
            problems: Self.anyProblems)
    }

    private var changes: Operation {
        let parameters = ["since", "wait", "debounce", "limit", "path", "types", "by", "on-lost", "as", "pretty"]
        return Operation(
            id: "get Changes", tag: "changes", summary: "Every commit after a cursor",
            description:
                "Ask again from `next`: at once where `more` is true, otherwise with `wait`. A client that has processed a page before it"
                + " stores `next` misses no commit. With `Accept` it is a stream.",
            parameters: parameters + ["prefer", "last-event-id"] + Self.ofAnyRequest,
            answers: [
                (
                    "200",
                    Self.answer(
                        "A page of commits; with `on-lost=snapshot` it can be a Reset.",
                        ["Preference-Applied", "Content-Encoding", "X-Accel-Buffering"],
                        [
                            ("application/json", Self.alternatives("anyOf", ["Changes", "Reset"])),
                            ("text/event-stream", Self.json("Events")),
                            ("application/x-ndjson", Self.json("ChangesLines")),
                        ])
                )
            ], problems: [410] + Self.anyProblems)
    }

    // MARK: Parts of answers

    static func answer(
        _ description: String, _ fields: [String], _ content: [(String, JSONValue)]
    ) -> JSONValue {
        let fields = OpenAPIParameters.ofEveryAnswer + fields
        return .of(
            [
                ("description", .string(description)),
                ("headers", .of(fields.map { ($0, OpenAPIDocument.reference("headers", $0)) })),
            ] + (content.isEmpty ? [] : [("content", .of(content))]))
    }

    static func json(_ schema: String) -> JSONValue {
        .of(("schema", OpenAPIDocument.reference("schemas", schema)))
    }

    static func alternatives(_ kind: String, _ schemas: [String]) -> JSONValue {
        .of(("schema", .of((kind, .array(schemas.map { OpenAPIDocument.reference("schemas", $0) })))))
    }
}
