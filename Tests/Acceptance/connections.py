"""Checks of connections that say nothing, that wait, or that go away."""

import time

from harness.actions import add
from harness.expectations import expect, expect_equal, wait_until


def silent_connections(workspace):
    """A silent connection is closed after the idle timeout, one that waits for a change is not."""
    server = workspace.server(data="none", idle_timeout_seconds=1)
    with server.client() as waiting, server.client() as silent, server.client() as stuck:
        tag = waiting.get("/v1/state/counter").fields["etag"]
        waiting.send(b"GET /v1/state/counter?wait=4 HTTP/1.1\r\nHost: here\r\nIf-None-Match: %s\r\n\r\n" % tag.encode())
        silent.get("/v1")
        stuck.send(b"POST /v1/actions HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{")
        begun = time.monotonic()
        for name, client in (("silent", silent), ("stuck in its body", stuck)):
            client.socket.settimeout(10)
            while client.socket.recv(1 << 16):
                pass
            expect(time.monotonic() - begun < 4, f"the connection that was {name} was kept for 4 s")
        answer = waiting.receive()
        expect_equal((answer.status, answer.fields["etag"]), (304, tag), "the answer to the one that waited")
        expect(time.monotonic() - begun > 3, "the waiting request was answered before its time")
        expect_equal(waiting.get("/v1").version, 0, "the version on the same connection afterwards")


def vanished_waiters(workspace):
    """Waiters whose clients have gone are noticed within seconds, and others are still woken."""
    server = workspace.server(data="none")
    with server.client() as client, server.client() as staying:
        tag = client.get("/v1/state/counter").fields["etag"]
        head = client.get("/v1").json["cursor"]
        request = b"GET /v1/state/counter?wait=50 HTTP/1.1\r\nHost: here\r\nIf-None-Match: %s\r\n\r\n" % tag.encode()
        follow = f"GET /v1/changes?since={head}&wait=50 HTTP/1.1\r\nHost: here\r\n\r\n".encode()
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
        expect_equal(staying.receive().json, {"value": 1}, "what the one that stayed was told")
        return f"500 noticed after {seconds:.2f} s"
