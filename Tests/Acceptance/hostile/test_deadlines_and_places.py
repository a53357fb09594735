"""Requests that take for ever, and places that one address takes."""

import socket
import time

import pytest
from harness.actions import add
from harness.expectations import expect, expect_equal, paced, wait_until
from harness.hostile.connections import Crowd
from harness.messages import HOST, encode_request
from harness.quiet import HOSTILE_HOST
from harness.wire import Received, head, judge_refusal

# How long a head and a body may take, in the settings.
DEADLINES = {"request_head_seconds": 1, "request_body_seconds": 1}
LENGTH = 200


def dribble(port, start, byte, seconds):
    """Sends a start and then a byte every 0.2 s; what came until the connection ended, or until the time was up."""
    begun = time.monotonic()
    data, has_ended = bytearray(), False
    with socket.create_connection((HOST, port), 5) as connection:
        connection.sendall(start)
        connection.settimeout(0.2)
        while not has_ended and time.monotonic() < begun + seconds:
            try:
                part = connection.recv(1 << 16)
                data += part
                has_ended = not part
            except TimeoutError:
                try:
                    connection.sendall(byte)
                except OSError:
                    pass  # the server has ended the connection; the next read says so
            except OSError:
                has_ended = True
    return Received(bytes(data), has_ended, time.monotonic() - begun)


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "kept alive"])
@pytest.mark.parametrize("form", ["head", "body", "chunks"])
def test_a_request_that_comes_byte_by_byte_is_refused_with_408_when_its_time_is_up(workspace, form, is_first):
    """The idle timeout does not see it, because something comes all the time."""
    server = workspace.server(data="none", idle_timeout_seconds=2, **workspace.known(**DEADLINES))
    start, byte = {
        "head": (b"GET /v1/state/counter HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", b"a"),
        "body": (head("POST", "/v1/actions", "Content-Type: application/json", f"Content-Length: {LENGTH}"), b" "),
        "chunks": (
            head("POST", "/v1/actions", "Content-Type: application/json", "Transfer-Encoding: chunked"),
            b"1\r\n \r\n",
        ),
    }[form]
    before = b"" if is_first else encode_request("GET", "/livez")
    received = dribble(server.port, before + start, byte, 3)
    if not is_first:
        answers = received.data.split(b"HTTP/1.1 ")
        expect(answers[1].startswith(b"200 "), "the request before it was not answered:", received.data)
        received.data = received.data[received.data.find(b"HTTP/1.1 ", 1) :] if len(answers) > 2 else b""
    judge_refusal(received, {408, 411})


def test_a_request_that_takes_long_but_less_than_its_time_is_answered(workspace):
    server = workspace.server(data="none", **workspace.known(request_head_seconds=5, request_body_seconds=5))
    request = encode_request("POST", "/v1/actions", add(1))
    step = len(request) // 8
    with server.client(timeout=5) as client:
        for start in paced(range(0, len(request), step), 0.1):
            client.send(request[start : start + step])
        expect_equal(client.receive().status, 200, "the status")


def test_one_address_may_have_all_places_while_nobody_else_wants_them(workspace):
    """A proxy is one address."""
    server = workspace.server(data="none", connections_max=64, waiters_max=32)
    clients = [server.client(timeout=5) for _ in range(58)]
    for client in clients:
        expect_equal(client.get("/v1/state/counter").status, 200, "the status")
    for client in clients:
        client.close()


@pytest.mark.prompt
def test_a_client_of_another_address_finds_a_place_where_one_address_has_them_all(workspace):
    server = workspace.server(data="none", connections_max=64, waiters_max=32)
    crowd = Crowd(server.port)
    crowd.open(80, encode_request("GET", "/v1/state/counter"))
    time.sleep(0.3)
    for number in range(5):
        begun = time.monotonic()
        with server.client(timeout=5) as client:
            expect_equal(client.get("/v1/state/counter").status, 200, f"the status of client {number}")
        expect(time.monotonic() - begun < 0.5, "a place was found after so many seconds:", time.monotonic() - begun)
    crowd.leave()


@pytest.mark.parametrize("target", ["/livez", "/readyz", "/metrics"])
def test_probes_find_a_place_on_a_full_server(workspace, target):
    """From any address, also from the one that has all the others."""
    server = workspace.server(data="none", connections_max=64, waiters_max=32)
    crowd = Crowd(server.port)
    crowd.open(100, encode_request("GET", "/v1/changes?since=now", fields={"Accept": "text/event-stream"}))
    time.sleep(0.3)
    for host in (HOST, HOSTILE_HOST):
        connection = socket.create_connection((HOST, server.port), 2, (host, 0))
        connection.sendall(encode_request("GET", target))
        try:
            answer = connection.recv(1 << 16)
        except TimeoutError:
            answer = b""
        connection.close()
        expect(
            answer.startswith(b"HTTP/1.1 200 "), f"{target} from {host} was answered", answer[:200] or "with silence"
        )
    crowd.leave()


def test_places_that_are_given_up_are_free_within_a_second(workspace):
    server = workspace.server(data="none", connections_max=64, waiters_max=32)
    crowd = Crowd(server.port)
    crowd.open(64, encode_request("GET", "/v1/changes?since=now", fields={"Accept": "text/event-stream"}))
    crowd.leave()

    def is_free():
        with server.client(timeout=5) as client:
            return client.get("/v1/state/counter").status == 200 and server.metric(client, "connections") < 4

    wait_until(is_free, "the places of those that have gone", 1)
