"""Checks that two loops serve as one does."""

from harness import add, encode_request, expect, expect_equal
from mixture import mingle
from parking import alternate
from races import race
from resuming import follow_through_kills
from streaming import many_descriptors, open_stream
from streams import tell_crowd
from vanishing import vanish
from waits import begin, ends, parked


def two_loops(bench):
    """With two loops, too: streams are told everything, vanished clients are noticed, waits are woken, and SIGTERM ends all."""
    settings = {"loops": 2}
    texts = [tell_crowd(bench.server(data="none", **settings), 500)]
    with many_descriptors(2000):
        texts.append(vanish(bench.server(data="none", **settings), 400))
    alternate(bench.server(data="none", **settings), 60)
    race(bench, bench.server(data="none", **settings), 5000)
    mingle(bench, bench.server(history_commits_max=300, heartbeat_seconds=1, **settings), 2)
    server = bench.server(**settings)
    follow_through_kills(bench, server, kills=3)
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
