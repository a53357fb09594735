"""Clients that go away while they wait."""

import socket
import struct
import time

from harness.actions import add
from harness.crowd import many_descriptors
from harness.expectations import Failure, expect_equal, wait_until
from harness.streams import EVENTS, LINES, open_stream
from harness.waits import begin, parked


def test_500_vanished_waiters_are_noticed_within_seconds_and_the_remaining_one_is_woken(workspace, figures):
    server = workspace.server(data="none")
    with server.client() as client, server.client() as staying:
        tag = client.get("/v1/state/counter").fields["etag"]
        head = client.get("/v1").json["cursor"]
        request = b"GET /v1/state/counter?wait=50 HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: %s\r\n\r\n" % tag.encode()
        follow = f"GET /v1/changes?since={head}&wait=50 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        leaving = [server.client() for _ in range(500)]
        for index, other in enumerate(leaving):
            other.send(request if index % 2 else follow)
        staying.send(request)
        wait_until(lambda: server.metric(client, "waiters") == 501, "501 waiters")
        begun = time.monotonic()
        for other in leaving:
            other.close()
        wait_until(lambda: server.metric(client, "waiters") == 1, "the 500 that left to be noticed", seconds=5)
        seconds = time.monotonic() - begun
        client.commit(add(1))
        expect_equal(staying.receive().json, {"value": 1}, "the answer to the waiter that stayed")
        figures(f"500 noticed after {seconds:.2f} s")


def test_2000_clients_that_vanish_with_fin_or_rst_are_noticed_and_freed_within_seconds(workspace, figures):
    with many_descriptors(4000):
        figures(vanish(workspace.server(data="none"), 2000))


def test_400_clients_of_two_loops_that_vanish_with_fin_or_rst_are_noticed_and_freed_within_seconds(workspace, figures):
    with many_descriptors(2000):
        figures(vanish(workspace.server(data="none", loops=2), 400))


def vanish(server, count):
    """Has so many clients wait and go away, twice: without commits, and while there are commits."""
    texts = []
    with server.client() as client:
        tag = client.get("/v1/state/counter").fields["etag"]
        before = server.descriptors()
        for is_busy in (False, True):
            tag = client.get("/v1/state/counter").fields["etag"]
            here = client.get("/v1").json["cursor"]
            kinds = [
                ("/v1/state/counter?wait=50", {"If_None_Match": tag}),
                (f"/v1/changes?since={here}&wait=50", {}),
                ("/v1/changes?since=now", {"Accept": EVENTS}),
                ("/v1/state/counter", {"Accept": EVENTS}),
                ("/v1/state/counter?wait=50&until=-1", {}),
                ("/v1/changes?since=now&debounce=1000", {"Accept": EVENTS}),
                (f"/v1/changes?since={here}&wait=50&debounce=1000", {}),
                ("/v1/changes?since=now", {"Accept": LINES}),
            ]
            crowd = [begin(server, kinds[index % 8][0], **kinds[index % 8][1]) for index in range(count)]
            parked(server, client, count)
            begun = time.monotonic()
            for index, one in enumerate(crowd):
                leave(one, ("FIN", "RST")[index // 8 % 2])
                if is_busy and index % (count // 20) == 0:
                    client.commit(add(1))
            for what, found, wanted in (
                ("waiters", lambda: server.metric(client, "waiters"), 0),
                ("connections", lambda: server.metric(client, "connections"), 1),
                ("descriptors", lambda: server.descriptors(), before),
            ):
                try:
                    wait_until(lambda: found() <= wanted, what, 5)
                except Failure:
                    raise Failure(
                        f"{found():.0f} {what} are left of {count} 5 s after all clients have gone, not {wanted}"
                        f" ({'with' if is_busy else 'without'} commits)"
                    ) from None
            texts.append(f"{time.monotonic() - begun:.2f} s")
        expect_equal(client.commit(add(1))["changed"], True, "an action afterwards")
    return f"{count:,} clients that went away were noticed after {' and '.join(texts)} (while there were commits)"


def leave(client, how):
    """Closes a client's connection: with a FIN as usual, or with an RST as a crashed machine's router does."""
    if how == "RST":
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def test_a_stream_whose_client_vanishes_during_its_debounce_leaves_nothing_behind(workspace):
    server = workspace.server(data="none")
    with server.client() as client:
        client.commit(add(1))
        before = server.descriptors()
        leave_between(server, client)
        found = server.metric(client, "waiters"), server.metric(client, "connections"), server.descriptors()
        expect_equal(found, (0, 1, before), "waiters, connections and descriptors 1.5 s after the clients have gone")


def leave_between(server, client):
    """Has streams send a commit, and closes them while they debounce."""
    streams = [
        open_stream(server, target)
        for target in ["/v1/changes?since=now&debounce=1000", "/v1/state/counter?debounce=1000"] * 10
    ]
    receipt = client.commit(add(1))
    for stream in streams:
        stream.until(lambda event: event.id == receipt["cursor"])
    for stream in streams:
        stream.close()
    time.sleep(1.5)
