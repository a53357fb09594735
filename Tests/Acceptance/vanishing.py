"""Checks of clients that go away while they wait."""

import socket
import struct
import time

from harness.actions import add
from harness.crowd import many_descriptors
from harness.expectations import Failure, expect_equal, wait_until
from harness.streams import EVENTS, LINES, open_stream
from harness.waits import begin, parked


def leave(client, how):
    """Closes a client's connection: with a FIN as usual, or with an RST as a crashed machine's router does."""
    if how == "RST":
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def vanished_crowd(workspace):
    """2,000 clients that vanish while they wait, with FIN or RST and between commits, are noticed and freed within seconds."""
    with many_descriptors(4000):
        return vanish(workspace.server(data="none"), 2000)


def vanish(server, count):
    """Lets so many wait and go away, twice: in silence, and while there are commits."""
    texts = []
    with server.client() as client:
        tag = client.get("/v1/state/counter").fields["etag"]
        before = server.descriptors()
        for is_busy in (False, True):
            tag = client.get("/v1/state/counter").fields["etag"]
            here = client.get("/v1").json["cursor"]
            kinds = [
                ("/v1/state/counter?wait=50", {"If_None_Match": tag}), (f"/v1/changes?since={here}&wait=50", {}),
                ("/v1/changes?since=now", {"Accept": EVENTS}), ("/v1/state/counter", {"Accept": EVENTS}),
                ("/v1/state/counter?wait=50&until=-1", {}), ("/v1/changes?since=now&settle=1000", {"Accept": EVENTS}),
                (f"/v1/changes?since={here}&wait=50&settle=1000", {}), ("/v1/changes?since=now", {"Accept": LINES})]
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
                    ("descriptors", lambda: server.descriptors(), before)):
                try:
                    wait_until(lambda: found() <= wanted, what, 5)
                except Failure:
                    raise Failure(f"{found():.0f} {what} are left of {count} 5 s after all have gone, not {wanted}"
                                  f" ({'with' if is_busy else 'without'} commits)") from None
            texts.append(f"{time.monotonic() - begun:.2f} s")
        expect_equal(client.commit(add(1))["changed"], True, "an action afterwards")
    return f"{count:,} that went away were noticed after {' and '.join(texts)} (while there were commits)"


def vanished_between(workspace):
    """A stream whose client goes away while the stream lets a burst settle leaves nothing behind."""
    server = workspace.server(data="none")
    with server.client() as client:
        # The first burst that is let settle makes the server open what its timers need, once.
        leave_between(server, client)
        before = server.descriptors()
        leave_between(server, client)
        found = server.metric(client, "waiters"), server.metric(client, "connections"), server.descriptors()
        expect_equal(found, (0, 1, before), "waiters, connections and descriptors 1.5 s after the clients have gone")


def leave_between(server, client):
    """Has streams told of a commit and closed while they would wait for the next."""
    streams = [
        open_stream(server, target) for target in
        ["/v1/changes?since=now&settle=1000", "/v1/state/counter?settle=1000"] * 10]
    receipt = client.commit(add(1))
    for stream in streams:
        stream.until(lambda event: event.id == receipt["cursor"])
    for stream in streams:
        stream.close()
    time.sleep(1.5)
