/// The parameters and header fields of the OpenAPI document, each as the members of a JSON object.
///
/// Contract.md lists the same names; a test compares both.
enum OpenAPIParameters {
    /// The parameters of requests by the names of their components.
    ///
    /// The words in capitals stand for the limits in force.
    static let text = #"""
        {
        "pretty": {"name": "pretty", "in": "query", "allowEmptyValue": true, "schema": {"type": "boolean", "default": false},
            "description": "Indents the answer, not NDJSON."},
        "wait": {"name": "wait", "in": "query", "schema": {"type": "number", "minimum": 0}, "example": 25,
            "description": "Long-polling: how many seconds the answer may take, until there is other content than `If-None-Match` names, or a commit after `since`. `wait` by itself is wait_seconds_default (WAIT_DEFAULT); a longer one than wait_seconds_max (WAIT_MAX) is cut. 0 does not wait. When the time is up, the answer is 304, on changes 200 without commits. A GET of a value with neither `If-None-Match` nor `until` does not wait."},
        "until": {"name": "until", "in": "query", "schema": {"type": "string", "contentMediaType": "application/json"}, "example": "2",
            "description": "With `wait`: the answer is 200 as soon as the value equals this JSON, compared as values; a string is in quotes. When the time is up it is 304, or 404 where nothing is there."},
        "debounce": {"name": "debounce", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": DEBOUNCE_MAX}, "example": 50,
            "description": "With `wait`, or on a stream: milliseconds by which the answer is put off, so that one answer has a burst of changes. `settle` is its former name."},
        "at-least": {"name": "at-least", "in": "query", "schema": {"$ref": "#/components/schemas/Cursor"},
            "description": "The answer is of this cursor's version or a later one, so a client reads its own write through any connection. Above the latest version: 409, or with `wait` a wait for it. Of another epoch: 410."},
        "version": {"name": "version", "in": "query", "schema": {"$ref": "#/components/schemas/Version"},
            "description": "The value at a past version. Above the latest: 409; no longer kept: 410. Not with `wait`, `until` or `at-least`."},
        "as": {"name": "as", "in": "query", "schema": {"type": "string", "enum": ["keyed"]},
            "description": "`keyed`: which entities of tables came, went or changed, as lists of IDs: on a state a KeyedDifference in place of the value, not with `version`, `at-least` or `until`; on changes `keyed` in place of `patch`."},
        "known": {"name": "since", "in": "query", "schema": {"$ref": "#/components/schemas/Cursor"},
            "description": "With as=keyed: the cursor that the client has. Without it every entity is `initial`."},
        "since": {"name": "since", "in": "query", "required": true, "example": "oldest",
            "schema": {"anyOf": [{"$ref": "#/components/schemas/Cursor"}, {"type": "string", "enum": ["oldest", "now"]}]},
            "description": "Where to begin: the `next` of the answer before, `oldest`, or `now`. Only on an event stream with Last-Event-ID it may be missing. A cursor that is gone gives 410, or what `on-lost` says."},
        "limit": {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "default": LIMIT_DEFAULT},
            "description": "How many commits at most; more than changes_limit_max (LIMIT_MAX) is cut. Not on a stream."},
        "path": {"name": "path", "in": "query", "schema": {"$ref": "#/components/schemas/Pointer"},
            "description": "Only commits that change something at, in or around this JSON Pointer."},
        "types": {"name": "types", "in": "query", "style": "form", "explode": false, "schema": {"type": "array", "minItems": 1, "items": {"type": "string"}},
            "description": "Only commits with an action of one of these types, with commas between them."},
        "by": {"name": "by", "in": "query", "schema": {"type": "string"}, "example": "ci",
            "description": "Only commits that this subject has dispatched."},
        "on-lost": {"name": "on-lost", "in": "query", "schema": {"type": "string", "enum": ["snapshot"]},
            "description": "`snapshot`: a cursor that is gone is answered with a Reset, the whole state, in place of 410."},
        "dry-run": {"name": "dry-run", "in": "query", "allowEmptyValue": true, "schema": {"type": "boolean", "default": false},
            "description": "Commits nothing, and answers with the patch that the action would make, or with the problem that it would meet."},
        "guarded": {"name": "path", "in": "query", "schema": {"$ref": "#/components/schemas/Pointer"},
            "description": "With If-Match: the part whose tag it has; without `path` it is the whole state."},
        "offset": {"name": "offset", "in": "query", "schema": {"type": "string", "pattern": "^(-1|now|[a-z2-7]{16}_[0-9a-f]{16})$"}, "example": "-1",
            "description": "Where to read from: `-1`, the beginning, as without it; `now`, the end; or a Stream-Next-Offset. One that is gone gives 410."},
        "offset-of-state": {"name": "offset", "in": "query", "schema": {"type": "string", "pattern": "^(-1|now|[a-z2-7]{16}_[0-9a-f]{16}_([0-9a-f]{8}|z))$"}, "example": "-1",
            "description": "Where to read from: `-1`, the beginning, as without it; `now`, the end; or a Stream-Next-Offset. One that is gone gives 410."},
        "live": {"name": "live", "in": "query", "schema": {"type": "string", "enum": ["long-poll", "sse"]},
            "description": "`long-poll` waits for messages behind the offset, and is answered 204 without any; `sse` is an event stream. Only with `offset`."},
        "stream-cursor": {"name": "cursor", "in": "query", "schema": {"type": "string", "pattern": "^(0|[1-9][0-9]{0,14})$"},
            "description": "The last Stream-Cursor, so that a cache keeps no answer too long."},
        "old-values": {"name": "old-values", "in": "query", "allowEmptyValue": true, "schema": {"type": "boolean", "default": false},
            "description": "Updates and deletes come with `old_value`."},
        "verbose": {"name": "verbose", "in": "query", "allowEmptyValue": true, "schema": {"type": "boolean", "default": false},
            "description": "A line for each thing that serving depends on."},
        "pointer": {"name": "pointer", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^([^~]|~[01])*$"}, "example": "example",
            "description": "The first token of a JSON Pointer: a part of the state. `~1` stands for a slash in a token, `~0` for a tilde."},
        "second": {"name": "second", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^([^~]|~[01])*$"}, "example": "value",
            "description": "The second token."},
        "third": {"name": "third", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^([^~]|~[01])*$"}, "example": "1",
            "description": "The third token."},
        "id": {"name": "id", "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}, "example": "order-7",
            "description": "The ID that a client gave to an action, or the cursor of a commit. It may have slashes."},
        "if-none-match": {"name": "If-None-Match", "in": "header",
            "schema": {"type": "string", "pattern": "^(\\*|(W/)?\"[!#-~]*\"(, ?(W/)?\"[!#-~]*\")*)$"}, "example": "\"ed2zz2kaled7lwctvamirxwn6m\"",
            "description": "The ETag of the content that the client has, a list of tags, or `*`. While the content is the same: 304, or with `wait` a wait for other content."},
        "if-match": {"name": "If-Match", "in": "header",
            "schema": {"type": "string", "pattern": "^(\\*|(W/)?\"[!#-~]*\"(, ?(W/)?\"[!#-~]*\")*)$"}, "example": "\"ed2zz2kaled7lwctvamirxwn6m\"",
            "description": "The ETag that the part at `path` must have, or nothing is committed and the answer is 412. A weak tag matches nothing."},
        "idempotency-key": {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "pattern": "^(\"([ -\\[\\]-~]|\\\\[ -~]){1,255}\\\\?\"|[!#-~][ -~]{0,254})$"}, "example": "\"order-7\"",
            "description": "The name of what is to be done: the same request with the same key commits once, and is answered with the first receipt. Needed to send an action again safely."},
        "prefer": {"name": "Prefer", "in": "header", "schema": {"type": "string"}, "example": "wait=20",
            "description": "RFC 7240. `wait=SECONDS` on a GET as `wait`; on a POST the answer comes when the follow-ups and effects of the action are over, with the commits. `return=minimal`: 204 without a body; `return=representation`: the receipt has the new values. Others are ignored."},
        "last-event-id": {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"},
            "description": "On an event stream: the ID of the last event received. On changes it beats `since`."},
        "request-id": {"name": "X-Request-Id", "in": "header", "schema": {"type": "string"}, "example": "a1b2",
            "description": "1 to 128 visible ASCII characters, by which problems and the log name the request."},
        "traceparent": {"name": "traceparent", "in": "header", "schema": {"type": "string"},
            "example": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "description": "The trace of the request (W3C Trace Context); an invalid one is ignored."}
        }
        """#

    /// The header fields of answers by their names.
    static let fields = #"""
        {
        "State-Cursor": {"schema": {"$ref": "#/components/schemas/Cursor"}, "description": "The instant of the answer."},
        "ETag": {"schema": {"type": "string"}, "example": "\"ed2zz2kaled7lwctvamirxwn6m\"", "description": "The tag of the content: a hash of its bytes, so it moves only when the content does. Weak with `pretty`."},
        "Cache-Control": {"schema": {"type": "string"}, "description": "`private, no-cache` on a read without a wait, otherwise `no-store`."},
        "X-Content-Type-Options": {"schema": {"type": "string"}, "description": "`nosniff`."},
        "Cross-Origin-Resource-Policy": {"schema": {"type": "string"}, "description": "`same-origin`."},
        "Preference-Applied": {"schema": {"type": "string"}, "example": "wait=20", "description": "The preferences that the server has followed."},
        "Idempotency-Replayed": {"schema": {"type": "string"}, "description": "`true`: the answer is the one to an earlier request with this key."},
        "Link": {"schema": {"type": "string"}, "description": "Of a lost cursor: the state from which to go on, with rel=\"resync\"."},
        "Retry-After": {"schema": {"type": "integer", "minimum": 0}, "example": 1, "description": "Seconds after which to try again."},
        "Allow": {"schema": {"type": "string"}, "example": "GET, HEAD, OPTIONS", "description": "The methods of the path."},
        "Accept": {"schema": {"type": "string"}, "description": "The media types that the server takes."},
        "Accept-Encoding": {"schema": {"type": "string"}, "description": "`identity`: a body comes as it is."},
        "WWW-Authenticate": {"schema": {"type": "string"}, "description": "The kinds of credentials that the server takes."},
        "Content-Encoding": {"schema": {"type": "string"}, "description": "`gzip` or `zstd`, for a client that takes it and an answer of 1 KiB or more."},
        "Vary": {"schema": {"type": "string"}, "description": "The header fields of the request on which the answer depends."},
        "Stream-Next-Offset": {"schema": {"type": "string"}, "description": "Where to read next."},
        "Stream-Up-To-Date": {"schema": {"type": "string"}, "description": "`true`: the answer reaches the end of the stream."},
        "Stream-Cursor": {"schema": {"type": "string"}, "description": "On answers to live reads: the `cursor` of the next one."},
        "X-Accel-Buffering": {"schema": {"type": "string"}, "description": "On a stream `no`: a proxy must not collect it."},
        "traceparent": {"schema": {"type": "string"}, "description": "The traceparent of the request."}
        }
        """#

    /// The header fields that every answer can have.
    static let ofEveryAnswer = [
        "State-Cursor", "Cache-Control", "X-Content-Type-Options", "Cross-Origin-Resource-Policy", "Vary",
        "traceparent",
    ]
}
