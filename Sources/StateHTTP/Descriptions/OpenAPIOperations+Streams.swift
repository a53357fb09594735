internal import StateJSON

/// The durable streams, the backup and the probes in the OpenAPI document.
extension OpenAPIOperations {
    var commitStream: Operation {
        durable(
            "get CommitStream", "The commits as a durable stream", ["offset", "path", "types", "by", "as"], "Commit")
    }

    var stateStream: Operation {
        durable(
            "get StateStream", "The entities of the state as a durable stream", ["offset-of-state", "old-values"],
            "EntityMessage")
    }

    /// A stream of the Durable Streams protocol.
    private func durable(_ id: String, _ summary: String, _ parameters: [String], _ message: String) -> Operation {
        let fields = ["Stream-Next-Offset", "Stream-Up-To-Date", "Stream-Cursor"]
        let messages = JSONValue.of(
            ("type", .string("array")), ("items", OpenAPIDocument.reference("schemas", message)))
        return Operation(
            id: id, tag: "streams", summary: summary,
            description:
                "Read again from Stream-Next-Offset, with `live` for what comes. HEAD tells the end of the stream.",
            parameters: parameters + ["live", "stream-cursor"] + ["if-none-match"] + Self.ofAnyRequest,
            answers: [
                (
                    "200",
                    Self.answer(
                        "Messages; with `live=sse` events `data` and `control`.",
                        fields + ["ETag", "Content-Encoding", "X-Accel-Buffering"],
                        [
                            ("application/json", .of(("schema", messages))),
                            ("text/event-stream", .of(("schema", .of(("type", .string("string")))))),
                        ])
                ), ("204", Self.answer("A long-poll to which nothing has come.", fields, [])),
                ("304", Self.answer("The messages are still what `If-None-Match` names.", fields + ["ETag"], [])),
            ], problems: [410] + Self.anyProblems)
    }

    var backup: Operation {
        Operation(
            id: "get Backup", tag: "operations", summary: "A backup of the journal",
            description:
                "A tar archive of a data directory, of one instant, for a client that may see and operate everything.",
            parameters: Self.ofAnyRequest,
            answers: [
                (
                    "200",
                    Self.answer(
                        "The archive.", ["X-Accel-Buffering"],
                        [
                            (
                                "application/x-tar",
                                .of(("schema", .of(("type", .string("string")), ("format", .string("binary")))))
                            )
                        ])
                )
            ], problems: Self.anyProblems + [507])
    }

    func probe(_ id: String, _ summary: String, _ text: String, _ parameters: [String]) -> Operation {
        Operation(
            id: id, tag: "operations", summary: summary, description: "Plain text, for the operator.",
            parameters: parameters,
            answers: [
                (
                    "200",
                    .of(
                        ("description", .string("As the summary says.")),
                        (
                            "headers",
                            .of(OpenAPIParameters.ofEveryAnswer.map { ($0, OpenAPIDocument.reference("headers", $0)) })
                        ),
                        (
                            "content",
                            .of(
                                (
                                    "text/plain",
                                    .of(
                                        ("schema", .of(("type", .string("string")))), ("example", .string(text)))
                                ))
                        ))
                )
            ], problems: [400, 401, 405, 503])
    }
}
