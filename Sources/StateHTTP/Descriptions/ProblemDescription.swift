/// A kind of problem, as the OpenAPI document and the page of errors describe it.
///
/// A test compares the page with the document, and the transcripts with both.
struct ProblemDescription {
    /// The status of the answer.
    let status: Int
    /// What a program switches on; nil for a code of the domain.
    let code: String?
    /// What has happened, for people.
    let meaning: String
    /// The members and header fields that only this problem has, as Markdown; empty where there are none.
    let further: String

    init(_ status: Int, _ code: String?, _ meaning: String, _ further: String = "") {
        (self.status, self.code, self.meaning, self.further) = (status, code, meaning, further)
    }

    /// Every problem, by status.
    static let all: [ProblemDescription] = [
        .init(400, "bad-target", "the request target is no path, has a bad percent escape, or is not UTF-8"),
        .init(
            400, "bad-pointer",
            "a `~` in the path is followed by neither `0` nor `1`, or the pointer has more than 1,000 parts"),
        .init(400, "unknown-parameter", "the route has no such query parameter"),
        .init(
            400, "bad-parameter", "a query parameter has a wrong value, occurs twice, or does not go with the others"),
        .init(400, "bad-cursor", "`since` or `at-least` is no cursor"),
        .init(400, "bad-offset", "`offset` is no offset of this stream"),
        .init(400, "offset-required", "`live` needs `offset`"),
        .init(400, "bad-entity-tag", "`If-Match` or `If-None-Match` is neither `*` nor a list of tags in quotes"),
        .init(400, "bad-idempotency-key", "the key is empty, too long, not ASCII, or has one quote"),
        .init(400, "since-required", "`changes` needs `since`"),
        .init(400, "unknown-action", "`types` names a type that the store does not have"),
        .init(400, "malformed-json", "the body is not JSON, or is empty", "`errors`"),
        .init(400, "number-out-of-range", "a number in the body is beyond 64-bit floating point", "`errors`"),
        .init(400, "duplicate-key", "a key occurs twice in an object of the body", "`errors`"),
        .init(400, "too-deep", "the body nests deeper than `depth_max`", "`errors`"),
        .init(
            400, "malformed-request",
            "the head or the chunked body breaks RFC 9112, or could be read in two ways; the connection ends"),
        .init(
            401, "unauthorized",
            "the server needs a credential that it knows; whether there was none or another one, the answer does not tell",
            "`WWW-Authenticate`"),
        .init(404, "no-such-route", "nothing is at this path"),
        .init(404, "no-such-path", "nothing is in the state at this pointer", "`pointer`"),
        .init(404, "no-such-view", "there is no such view, or it has no value"),
        .init(404, "no-such-store", "there is no derived store of this name"),
        .init(404, "no-such-stream", "there is no such stream"),
        .init(404, "no-such-action", "no commit with this ID is kept"),
        .init(404, "no-journal", "a backup is asked for, and the server keeps its state in memory only"),
        .init(405, "method-not-allowed", "the path has other methods", "`Allow`"),
        .init(408, "request-timeout", "the request has taken too long to arrive; the connection ends"),
        .init(409, "ahead-of-head", "the latest version is below the one asked for, also after the wait", "`head`"),
        .init(409, "command-loop", "a command made sixteen commands of commands and still no action"),
        .init(409, "type-confusion", "an action reached a reducer as another Swift type: a defect of the domain"),
        .init(409, nil, "a reducer or a middleware rejects the action in the present state", "`errors`, `index`"),
        .init(
            410, "cursor-lost", "the cursor has another epoch or is above the latest version",
            "`epoch`, `oldest`, `head`, `Link`"),
        .init(
            410, "cursor-expired", "the commits after the cursor are no longer kept",
            "`epoch`, `oldest`, `head`, `Link`"),
        .init(410, "offset-gone", "the offset of a stream is of another history, or what follows it is no longer kept"),
        .init(410, "version-expired", "the state of that version is no longer kept", "`oldest`, a version"),
        .init(412, "precondition-failed", "`expect` or `If-Match` does not hold"),
        .init(413, "body-too-large", "the body is longer than `body_bytes_max`; the connection ends", "`limit`"),
        .init(413, "too-many-lines", "an NDJSON body has too many lines", "`limit`"),
        .init(414, "target-too-long", "the target is too long, or has too many parameters; the connection ends"),
        .init(
            415, "media-type", "the body is neither JSON nor NDJSON by its `Content-Type`, or its charset is not UTF-8",
            "`Accept`"),
        .init(415, "content-coding", "the body is compressed", "`Accept-Encoding`"),
        .init(
            421, "unknown-host",
            "the name in `Host`, or in a target of absolute form, is none of the server; see `allowed_hosts`"),
        .init(422, "invalid-action", "the body is JSON but no action, or its payload does not decode", "`errors`"),
        .init(422, "unknown-action", "the store has no action of this type", "`errors`"),
        .init(422, "empty-batch", "the array has no action"),
        .init(422, "batch-too-large", "the array has more than `batch_actions_max` actions"),
        .init(422, "idempotency-key-reused", "the key was used with another body"),
        .init(
            422, "too-many-faults",
            "more than `bulk_faults_max` lines of an NDJSON body have a fault; no line is committed", "`line`"),
        .init(
            422, "transaction-too-long",
            "the actions of the array take more than `batch_milliseconds_max` of processor time, in which all others wait; send fewer at once",
            "`index`"),
        .init(
            422, "action-quarantined",
            "the server has ended twice while it reduced this action, and has set it aside; a retry gets the same answer until the operator lets it pass",
            "`index`"),
        .init(422, nil, "the action can never be right", "`errors`, `index`"),
        .init(
            429, "idempotency-keys-full", "half of the keys that the server keeps are of this client",
            "`Retry-After: 60`"),
        .init(
            429, "too-many-reads",
            "`slow_requests_per_client_max` requests of this client with long bodies, dry runs, or for large, past or old parts, are under way",
            "`Retry-After: 1`"),
        .init(429, "too-many-waiters", "the client has as many waiters as its share allows", "`Retry-After: 5`"),
        .init(
            429, "too-many-bytes",
            "the bodies that this client is sending occupy half of `memory_bytes_max`; the connection ends",
            "`Retry-After: 1`"),
        .init(
            429, "too-many-failures", "the address has sent too many credentials that the server does not know",
            "`Retry-After`"),
        .init(431, "head-too-large", "the head is too long, or has too many fields; the connection ends"),
        .init(500, "internal", "the server failed; nothing was committed"),
        .init(
            500, "journal-damaged", "the journal has not the commits that the request asks for as they were recorded"),
        .init(501, "transfer-coding", "the body comes in a transfer coding other than `chunked`; the connection ends"),
        .init(503, "too-many-waiters", "the server has as many waiters as it allows", "`Retry-After: 5`"),
        .init(
            503, "too-many-reads",
            "`slow_requests_max` requests with long bodies, dry runs, or for large, past or old parts, are under way",
            "`Retry-After: 1`"),
        .init(503, "backup-under-way", "another client gets a backup: there is one at a time", "`Retry-After: 10`"),
        .init(
            503, "too-many-verifications",
            "4096 requests with JSON Web Tokens that are new to the server wait for the verification",
            "`Retry-After: 1`"),
        .init(
            503, "tokens-unreadable",
            "the server cannot read its token file; ten seconds later it takes no credential until it can",
            "`Retry-After: 10`"),
        .init(
            503, "too-many-connections", "the server has as many connections as it allows; the connection ends",
            "`Retry-After: 1`"),
        .init(
            503, "memory-exhausted",
            "long bodies and unread answers occupy `memory_bytes_max`; the connection ends, unless the request was received whole",
            "`Retry-After: 1`"),
        .init(
            503, "mailbox-full", "as many actions wait for a turn or for the disk as the server allows",
            "`Retry-After: 1`"),
        .init(503, "idempotency-keys-full", "as many keys are kept as the server allows", "`Retry-After: 60`"),
        .init(503, "not-durable", "the journal did not record; the state is as it was", "`Retry-After: 1`"),
        .init(
            503, "outcome-unknown",
            "the journal failed while it recorded; whether the action is committed is not known yet",
            "`id`, if the client gave one; `Retry-After: 1`"),
        .init(
            503, "hung-up",
            "of a line of NDJSON: the client had closed its side of the connection before the line had its turn"),
        .init(503, "draining", "the server stops", "`Retry-After: 1`"),
        .init(
            505, "http-version",
            "the major version of HTTP is not 1; the connection ends. HTTP/1.2 and what follows it up to 1.9 are answered as HTTP/1.1"
        ),
        .init(507, "no-room-for-backup", "the disk of the server has too little room for a copy of the journal"),
    ]

    /// The reason phrases of the statuses that a problem has.
    static let reasons: KeyValuePairs<Int, String> = [
        400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout",
        409: "Conflict", 410: "Gone", 412: "Precondition Failed", 413: "Content Too Large", 414: "URI Too Long",
        415: "Unsupported Media Type", 421: "Misdirected Request", 422: "Unprocessable Content",
        429: "Too Many Requests", 431: "Request Header Fields Too Large", 500: "Internal Server Error",
        501: "Not Implemented", 503: "Service Unavailable", 505: "HTTP Version Not Supported",
        507: "Insufficient Storage",
    ]
}
