"""Connections on which nothing comes."""

import time

from harness.expectations import expect, expect_equal


def test_a_silent_connection_is_closed_after_the_idle_timeout_and_a_waiting_one_is_not(workspace):
    server = workspace.server(data="none", idle_timeout_seconds=1)
    with server.client() as waiting, server.client() as silent, server.client() as stuck:
        tag = waiting.get("/v1/state/counter").fields["etag"]
        waiting.send(b"GET /v1/state/counter?wait=4 HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: %s\r\n\r\n" % tag.encode())
        silent.get("/v1")
        stuck.send(
            b"POST /v1/actions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
        )
        begun = time.monotonic()
        for name, client in (("silent", silent), ("stuck in its body", stuck)):
            client.socket.settimeout(10)
            while client.socket.recv(1 << 16):
                pass
            expect(time.monotonic() - begun < 4, f"the connection that was {name} is still open after 4 s")
        answer = waiting.receive()
        expect_equal((answer.status, answer.fields["etag"]), (304, tag), "the answer to the one that waited")
        expect(time.monotonic() - begun > 3, "the waiting request was answered before its time")
        expect_equal(waiting.get("/v1").version, 0, "the version on the same connection afterwards")
