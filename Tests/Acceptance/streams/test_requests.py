"""Requests for a stream: what gets one, and what is refused."""

from harness.expectations import expect, expect_equal
from harness.messages import encode_request
from harness.refusals import get, judge
from harness.streams import EVENTS, open_stream


def test_only_a_request_that_names_the_stream_and_does_not_prefer_json_gets_a_stream(workspace):
    """A wildcard does not name it; a weight of 0, or below that of JSON, does not prefer it."""
    server = workspace.server(data="none")
    faults = []
    for accept, is_stream in (
        (EVENTS, True),
        (f"{EVENTS}, */*;q=0.1", True),
        ("Text/Event-Stream ; q=1", True),
        (f"application/json;q=0.5, {EVENTS}", True),
        ("*/*", False),
        ("text/*", False),
        ("application/json", False),
        (f"{EVENTS};q=0, application/json", False),
        (f"application/json, {EVENTS};q=0.1", False),
    ):
        with server.client(timeout=5) as client:
            client.send(encode_request("GET", "/v1/state/counter", fields={"Accept": accept}))
            while b"\r\n\r\n" not in client.buffer:
                client.buffer += client.socket.recv(1 << 16)
            if (b"Content-Type: text/event-stream\r\n" in client.buffer) != is_stream:
                faults.append(f"Accept: {accept} is {'not ' if is_stream else ''}answered with a stream")
    expect(not faults, "\n".join(faults))


def test_a_stream_that_cannot_be_had_gets_a_problem_at_once_and_the_connection_goes_on(workspace, figures):
    """A stream that asks for what it cannot have is answered with a problem at once, and the connection goes on."""
    server = workspace.server(data="none", waiters_max=1)
    events = {"Accept": EVENTS}
    since = "/v1/changes?since=now"
    with server.client() as client, open_stream(server, since):
        for target, status in ((since, {429, 503}), ("/v1/state/counter", {429, 503})):
            full = client.get(target, Accept=EVENTS)
            expect(full.status in status and "retry-after" in full.fields, f"one stream too many, {target}:", full)
            expect_equal(full.fields["content-type"], "application/problem+json", "its media type")
        head = client.request("HEAD", "/v1/state/counter", fields=events)
        expect_equal((head.status, head.body), (200, b""), "HEAD of a stream")
    figures(
        judge(
            server,
            [
                get("no since", "/v1/changes", 400, "since-required", fields=events),
                get("a since that is none", "/v1/changes?since=yesterday", 400, fields=events),
                get("until", "/v1/state/counter?until=1&wait=5", 400, "bad-parameter", fields=events),
                get("version", "/v1/state/counter?version=0", 400, "bad-parameter", fields=events),
                get("a long debounce", since + "&debounce=3600000", 400, "bad-parameter", fields=events),
                get("debounce in words", since + "&debounce=soon", 400, "bad-parameter", fields=events),
                get("a path that is none", since + "&path=tasks", 400, fields=events),
                get("an unknown parameter", since + "&sicne=1", 400, fields=events),
                get("no such view", "/v1/views/nothing", 404, fields=events),
            ],
        )
    )
