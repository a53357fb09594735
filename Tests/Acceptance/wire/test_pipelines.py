"""Requests that come together on a connection: each is answered once, in order, by the answer that it gets alone.

Pairs and triples of requests without a body, with a declared one and with a chunked one, with short and long heads, each
with another token, with empty lines before and between them (RFC 9112, section 2.2), come in one segment, in two, or byte
by byte.
"""

import concurrent.futures
import random
import re
import socket

import pytest
from harness.actions import add
from harness.expectations import expect, expect_equal, paced
from harness.tokens import make_token
from harness.tools import takes_chunks
from harness.wire import Incomplete, parse_all
from harness.workspace import Workspace

COUNT = 2000
WAYS = ["in one segment", "in two segments", "byte by byte"]
SECONDS = 10


@pytest.fixture(scope="module")
def served(pytestconfig):
    """A server, and three tokens that see different parts of its state."""
    workspace = Workspace(pytestconfig.storekeeper, pytestconfig.seed)
    data = workspace.directory + "/data"
    grants = [["--all"], ["--read", "/counter"], ["--read", "/tasks", "--dispatch", "counter/*"]]
    tokens = [make_token(workspace, data, f"subject{index}", *grant) for index, grant in enumerate(grants)]
    yield workspace.server(data=data), tokens
    workspace.close()


def chunked(rng, body):
    parts = []
    while body:
        count = rng.randint(1, len(body))
        parts.append(b"%x\r\n%s\r\n" % (count, body[:count]))
        body = body[count:]
    trailer = rng.choice([b"", b"", b"X-Trailer: value\r\n"])
    return b"".join(parts) + b"0\r\n" + trailer + b"\r\n"


def make_request(rng, token):
    """A request that changes nothing, and its method."""
    method, target = rng.choice(
        [("GET", "/v1/state/counter"), ("GET", "/v1/state/tasks"), ("HEAD", "/v1/state/counter"), ("DELETE", "/v1/state")]
        + [("GET", f"/v1/state/nothing/{rng.randint(0, 9999)}"), ("GET", f"/v1?{'x' * rng.choice([1, 3000])}")]
        + [("POST", "/v1/actions?dry-run=true")] * 5
    )
    head = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}"]
    if rng.random() < 0.3:
        head.append("X-Long: " + "a" * rng.choice([10, 700, 2100, 5000, 7000]))
    body = b""
    if method == "POST":
        head.append("Content-Type: application/json")
        body = add(rng.randint(1, 10**9)) + b" " * rng.choice([0] * 6 + [9000])
        if takes_chunks() and rng.random() < 0.5:
            head.append("Transfer-Encoding: chunked")
            body = chunked(rng, body)
        else:
            head.append(f"Content-Length: {len(body)}")
    return method, "\r\n".join(head).encode() + b"\r\n\r\n" + body


def exchange(port, pieces, methods):
    """The answers to bytes that are sent in these pieces."""
    with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in paced(pieces, 0.002 if len(pieces) == 2 else 0):
            connection.sendall(piece)
        data = b""
        while True:
            try:
                answers = parse_all(data, False, methods)
            except Incomplete:
                answers = []
            if len(answers) >= len(methods):
                return answers
            received = connection.recv(1 << 16)
            expect(received, f"the connection ended behind {len(answers)} of {len(methods)} answers")
            data += received


def told(answer):
    """What of an answer does not depend on the time and on the request's ID."""
    changing = {"date", "content-length"} if answer.status >= 400 else {"date"}
    fields = {name: value for name, value in answer.fields.items() if name not in changing}
    return answer.status, fields, re.sub(rb'"requestId":"[^"]*"', b"", answer.body)


def check(port, tokens, seed):
    rng = random.Random(seed)
    requests = [make_request(rng, rng.choice(tokens)) for _ in range(rng.choice([2, 3]))]
    methods = [method for method, _ in requests]
    alone = [told(exchange(port, [request], [method])[0]) for method, request in requests]
    data = b"".join(b"\r\n" * rng.choice([0, 0, 1]) + request for _, request in requests)
    way = rng.choice(WAYS)
    if way == "byte by byte" and len(data) > 3000:
        way = "in two segments"
    if way == "byte by byte":
        pieces = [data[index : index + 1] for index in range(len(data))]
    elif way == "in two segments":
        cut = rng.randint(1, len(data) - 1)
        pieces = [data[:cut], data[cut:]]
    else:
        pieces = [data]
    together = [told(answer) for answer in exchange(port, pieces, methods)]
    expect_equal(together, alone, f"the answers to requests {way}, seed {seed}")
    return way, any(b"chunked" in request for _, request in requests)


def test_requests_that_come_together_have_the_answers_that_they_get_alone(served, pytestconfig):
    server, tokens = served
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        seeds = [f"{pytestconfig.seed} {number}" for number in range(COUNT)]
        seen = set(pool.map(lambda seed: check(server.port, tokens, seed), seeds))
    expect_equal(seen, {(way, chunks) for way in WAYS for chunks in {False, takes_chunks()}}, "what has been tried")
