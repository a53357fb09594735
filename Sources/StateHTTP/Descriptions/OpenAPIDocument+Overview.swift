extension OpenAPIDocument {
    /// What a reader has to know before the first request, as Markdown.
    static let overview = """
        A client dispatches typed actions by POST, and gets the state and every change out by GET.

        **Versions, cursors and tags.** Each commit makes a version. A cursor (`epoch.version`, in `State-Cursor`) names an instant of one history; \
        a tag (`ETag`) names content, and moves only when that content does.

        **Long-polling.** `GET` of a state or a view with `If-None-Match` and `wait=25` is answered when the content is another one: 200, or 304 when the \
        time is up. `Prefer: wait=25` asks for the same. `GET` of changes with `since` and `wait` is answered when there is a commit.

        **Streams.** The same URLs with `Accept: text/event-stream` are server-sent events without end; changes are also NDJSON, with \
        `Accept: application/x-ndjson`. A client that comes back sends the last `id` as `Last-Event-ID`, or its cursor as `since`.

        **Durable streams.** `streams/commits` and `streams/state` speak the read side of the Durable Streams protocol, for clients that exist.

        **Batches and NDJSON.** An array of actions is one commit. A body of NDJSON has an action, or an array, a line, and each line is a commit of its own, \
        with a line in the answer.

        **Dry runs.** `dry-run` answers with the patch that an action would make, and commits nothing.

        **Retries and preconditions.** With an `Idempotency-Key` a request can be sent again after a lost connection, 429 and 503, and commits once. `If-Match` \
        with `path`, and `expect`, commit only where the state is as the client believes; otherwise 412.

        **Cascades.** A POST with `Prefer: wait=20` is answered when what it has caused is over, and lists the commits.

        **Derived stores.** Each slice of the state is a store of its own below `/v1/stores/{name}`, with the same routes and a document of its own at \
        `/v1/stores/{name}/openapi.json`. `GET /v1/stores` lists them.

        **Methods.** `HEAD` gives the head of the answer to `GET`, and never starts a stream. `OPTIONS` gives 204 with `Allow`.

        **Problems.** An error is a problem document (RFC 9457) with a `code` for programs. A query parameter that a route does not know is an error.

        **Compatibility.** Below `/v1` members, header fields, parameters, codes and routes are added, and none is taken away or changes its meaning: a client \
        ignores what it does not know.

        This document has what its client may see and dispatch.
        """
}
