"""Requests that are not HTTP."""

from harness.actions import add
from harness.client import ConnectionLost
from harness.expectations import Failure, expect, expect_equal


def test_a_request_that_is_not_http_gets_4xx_or_501_and_the_end_of_its_connection(workspace, figures):
    """The server commits nothing of such a request.

    libmicrohttpd 0.9.75 refuses a Content-Length that is no number by itself, before the server sees the request, and
    sends the head of that answer twice. The server has no part in this answer; the connection ends there, too.
    """
    server = workspace.server()
    body = add(1)
    head = b"POST /v1/actions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    cases = {
        "no Host": b"POST /v1/actions HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        % len(body),
        "Content-Length in words": head + b"Content-Length: ten\r\n\r\n",
        "negative Content-Length": head + b"Content-Length: -1\r\n\r\n",
        "endless Content-Length": head + b"Content-Length: 99999999999999999999999\r\n\r\n",
        "two Content-Lengths": head + b"Content-Length: %d\r\nContent-Length: 3\r\n\r\n" % len(body),
        "Content-Length and chunks": head + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % len(body),
        "bad chunk": head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        "unknown transfer coding": head + b"Transfer-Encoding: gzip\r\n\r\n",
        "folded field": head + b"Content:\r\n -Length: 3\r\n\r\n",
        "line ends without CR": head.replace(b"\r", b"") + b"Content-Length: %d\n\n" % len(body),
        "space before the colon": head + b"Content-Length : %d\r\n\r\n" % len(body),
        "long field": head + b"Cookie: " + b"x" * 32_000 + b"\r\n\r\n",
        "long target": b"GET /v1/state/" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    }
    faults = []
    for name, request in cases.items():
        try:
            with server.client(timeout=5) as client:
                client.send(request + body)
                answer = client.receive()
                expect(400 <= answer.status < 500 or answer.status == 501, "the answer:", answer)
                expect(answer.closes, "the answer does not announce the end of the connection:", answer)
                try:
                    rest = bytes(client.buffer) + client.socket.recv(1 << 16)
                except ConnectionResetError:
                    rest = bytes(client.buffer)
                # libmicrohttpd 0.9.75 sends the head of some refusals twice.
                expect(b"HTTP/1.1 2" not in rest, "what came behind the answer:", rest)
        except (Failure, ConnectionLost, TimeoutError, ValueError, KeyError) as fault:
            faults.append(f"{name}: {type(fault).__name__}: {fault}")
    with server.client() as client:
        if client.get("/v1").json["version"] != 0:
            faults.append("something was committed")
    expect(not faults, f"{len(faults)} of {len(cases)} cases:\n" + "\n".join(faults))
    figures(f"{len(cases)} cases")
