"""Checks that two loops serve as one does."""

from harness.actions import add
from harness.crowd import many_descriptors
from harness.expectations import expect, expect_equal
from harness.messages import encode_request
from harness.streams import open_stream
from harness.waits import begin, ends, parked
from mixture import mingle
from parking import alternate
from races import race
from resuming import follow_through_kills
from streams import tell_crowd
from vanishing import vanish


def two_loops(workspace):
    """With two loops, too: streams are told everything, vanished clients are noticed, waits are woken, and SIGTERM ends all."""
    settings = {"loops": 2}
    texts = [tell_crowd(workspace.server(data="none", **settings), 500)]
    with many_descriptors(2000):
        texts.append(vanish(workspace.server(data="none", **settings), 400))
    alternate(workspace.server(data="none", **settings), 60)
    race(workspace, workspace.server(data="none", **settings), 5000)
    mingle(workspace, workspace.server(history_commits_max=300, heartbeat_seconds=1, **settings), 2)
    server = workspace.server(**settings)
    follow_through_kills(workspace, server, kills=3)
    with server.client() as client:
        tag = client.get("/v1/state/counter").fields["etag"]
        waiters = [begin(server, "/v1/state/counter?wait=50", If_None_Match=tag) for _ in range(100)]
        streams = [open_stream(server, "/v1/changes?since=now") for _ in range(100)]
        parked(server, client, 200)
        client.commit(add(1))
        version = client.get("/v1").json["version"]
        for waiter in waiters:
            expect_equal(waiter.receive().version, version, "the version that a waiter was woken with")
        for stream in streams:
            expect_equal(stream.next().version, version, "the version that a stream was told")
        for waiter in waiters:
            waiter.send(encode_request("GET", "/v1/changes?since=now&wait=50"))
            expect_equal(waiter.receive().status, 200, "the next request of a waiter")
        server.stop()
        expect(all(ends(stream) for stream in streams), "a stream was not ended by SIGTERM")
    return texts[0]
