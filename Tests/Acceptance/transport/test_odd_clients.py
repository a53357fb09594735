"""Clients of an older protocol, half-closed ones, and ones that send in pieces."""

import socket

from harness.actions import add
from harness.expectations import expect, expect_equal, paced, wait_until
from harness.messages import encode_request, parse_answer
from harness.streams import EVENTS
from harness.tools import takes_chunks
from harness.waits import begin, ends, parked


def test_waits_of_http_1_0_head_half_closed_chunked_and_fragmented_clients_are_answered_as_they_should_be(workspace):
    server = workspace.server(data="none")
    path = "/v1/state/counter/value"
    with server.client() as client:
        tag = client.get(path).fields["etag"]

        def wake(waiter, method="GET"):
            parked(server, client, 1)
            version = client.commit(add(1))["version"]
            answer = waiter.receive(method)
            expect_equal((answer.status, answer.version), (200, version), "status and version of an answer")
            if method == "GET":
                expect_equal(answer.json, version, "the value of an answer")
            return answer, answer.fields["etag"]

        for fields in ("", "Connection: keep-alive\r\n", "Host: localhost\r\n"):
            with server.client(timeout=5) as old:
                old.send(f"GET {path}?wait=10 HTTP/1.0\r\n{fields}If-None-Match: {tag}\r\n\r\n".encode())
                _, tag = wake(old)
                expect(ends(old), "the connection of an HTTP/1.0 client was not closed")
        with server.client(timeout=5) as closing:
            closing.send(encode_request("GET", f"{path}?wait=10", fields={"If-None-Match": tag, "Connection": "Close"}))
            answer, tag = wake(closing)
            expect(answer.closes and ends(closing), "Connection: close was not honoured:", answer)
        with server.client(timeout=5) as head:
            for _ in range(3):
                head.send(encode_request("HEAD", f"{path}?wait=10", fields={"If-None-Match": tag}))
                answer, tag = wake(head, "HEAD")
                expect_equal(int(answer.fields["content-length"]), len(client.get(path).body), "Content-Length of HEAD")
                expect_equal(head.get(path).status, 200, "the request after HEAD")
        with server.client(timeout=5) as chunked:
            for fragments in (1, 5) if takes_chunks() else ():
                body = add(1)
                chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
                fields = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                request = b"POST /v1/actions HTTP/1.1\r\nHost: localhost\r\n" + fields + chunk
                size = len(request) // fragments + 1
                for start in paced(range(0, len(request), size), 0.01):
                    chunked.send(request[start : start + size])
                expect_equal(chunked.receive().status, 200, "the status of a chunked post")
                chunked.send(encode_request("GET", f"{path}?wait=10", fields={"If-None-Match": tag}))
                tag = chunked.receive().fields["etag"]  # the post has changed it
                chunked.send(encode_request("GET", f"{path}?wait=10", fields={"If-None-Match": tag}))
                answer, tag = wake(chunked)
                if answer.closes:
                    expect(ends(chunked), "the connection was not closed as announced")
                    break
        with server.client(timeout=5) as slow:
            for byte in paced(encode_request("GET", f"{path}?wait=10", fields={"If-None-Match": tag}), 0.001):
                slow.send(bytes([byte]))
            answer, tag = wake(slow)
            expect(not answer.closes, "the connection of a client that sends byte by byte was closed")
            expect_equal(slow.get(path).status, 200, "its next request")
        for target, fields in (
            (f"{path}?wait=10", {"If_None_Match": tag}),
            ("/v1/changes?since=now", {"Accept": EVENTS}),
        ):
            half = begin(server, target, **fields)
            parked(server, client, 1)
            half.socket.shutdown(socket.SHUT_WR)
            wait_until(lambda: server.metric(client, "waiters") == 0, "a half-closed client to be noticed", 5)
            half.socket.settimeout(5)
            text = b""
            while data := half.socket.recv(1 << 16):
                text += data
            # What it is owed, or nothing; no half of an answer.
            parsed = parse_answer(text) if fields.get("Accept") is None and text else None
            expect(parsed is None or parsed[0].status in (200, 304), "a half-closed client was answered", text)
            expect(
                not text or text.startswith(b"HTTP/1.1 ") and b"\r\n\r\n" in text, "a half-closed client received", text
            )
            half.close()
        wait_until(lambda: server.metric(client, "connections") == 1, "all connections to be given up", 5)


def test_a_client_that_sends_all_of_a_body_that_is_too_long_gets_its_413(workspace, figures):
    """A proxy does so, and makes a 502 of a connection that is reset while it sends."""
    server = workspace.server(data="none", body_bytes_max=100_000)
    json = b"Content-Type: application/json\r\n"
    declared = b"Content-Length: 1000000\r\n\r\n" + b" " * 1_000_000
    chunked = b"Transfer-Encoding: chunked\r\n\r\nf4240\r\n" + b" " * 1_000_000 + b"\r\n0\r\n\r\n"
    bodies = [declared, chunked] if takes_chunks() else [declared]
    for body in bodies:
        for _ in range(45):
            with server.client(timeout=5) as client:
                client.send(b"POST /v1/actions HTTP/1.1\r\nHost: localhost\r\n" + json + body)
                answer = client.receive()
                expect_equal((answer.status, answer.json["code"]), (413, "body-too-large"), "status and code")
                expect(answer.closes and ends(client), "the connection was not closed:", answer)
    with server.client(timeout=5) as client:
        wait_until(lambda: server.metric(client, "connections") == 1, "the connections to be closed", seconds=3)
    figures(f"{45 * len(bodies)} of {45 * len(bodies)} were answered")
