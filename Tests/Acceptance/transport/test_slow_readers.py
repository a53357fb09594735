"""Clients that read a large answer slowly or not at all."""

import json
import socket
import time

import pytest

from harness.client import Client
from harness.expectations import expect, expect_equal, steady, wait_until
from harness.messages import HOST, encode_request, parse_answer
from harness.waits import parked


@pytest.mark.prompt
def test_a_large_answer_reaches_a_slow_reader_and_a_client_that_reads_nothing_is_given_up_in_time(workspace, figures):
    server = workspace.server(data="none")
    with await_large_answer(server) as patient:
        seconds = read_bit_by_bit(patient)
        expect_equal(patient.get("/v1/state/counter").status, 200, "the next request on the connection")
    server = workspace.server(data="none", idle_timeout_seconds=1)
    # The one that reads comes last: on a busy machine its time is over before the other one has its answer.
    with await_large_answer(server) as dead, await_large_answer(server) as slow:
        read_bit_by_bit(slow)
        slow.close()

        def is_alone():
            with server.client() as client:
                return server.metric(client, "connections") == 1

        wait_until(is_alone, "a client that reads nothing to be given up", 4)
        dead.socket.settimeout(5)
        text = b""
        try:
            while data := dead.socket.recv(1 << 18):
                text += data
        except ConnectionResetError:
            pass
        expect(parse_answer(text) is None, "the server kept the whole answer for a client that did not read")
    figures(f"5.6 MB within {seconds:.1f} s")


def test_the_kernel_takes_at_most_1_mib_of_an_answer_from_the_server_for_a_client_that_reads_nothing(
    workspace, figures
):
    """More would only delay other clients, because the loop copies it for one client after the other."""
    server = workspace.server(data="none")
    with server.client() as client:
        for start in range(0, 4900, 700):
            tasks = [
                {"type": "tasks/add", "payload": {"id": start + number, "title": "x" * 1000}} for number in range(700)
            ]
            client.commit(json.dumps(tasks).encode())
        size = len(client.get("/v1/state/tasks").body)
        stalled = [StalledClient(server.port) for _ in range(20)]
        for one in stalled:
            one.send(encode_request("GET", "/v1/state/tasks"))
        wait_until(lambda: len(unsent_bytes(server.port)) == 20, "20 answers to be on their way")
        most = steady(lambda: max(unsent_bytes(server.port)), "the most of an answer that is on its way", 0.5)
        for one in stalled:
            one.close()
    text = f"at most {most >> 10} KiB of {size >> 10} KiB"
    expect(most <= 1 << 20, text)
    figures(text)


def unsent_bytes(port):
    """What the kernel has of answers that the clients have not taken, by connection of the server (`proc(5)`)."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table][1:]
    queues = (int(row[4].partition(":")[0], 16) for row in rows if int(row[1].partition(":")[2], 16) == port)
    return [bytes_count for bytes_count in queues if bytes_count > 0]


def await_large_answer(server):
    """A client that is being sent 5.6 MB, which it has waited for, and that has little room for it."""
    with server.client() as client:
        first = len(client.get("/v1/state/tasks/ids").json)
        waiter = StalledClient(server.port)
        tag = client.get("/v1/state/tasks").fields["etag"]
        waiter.send(encode_request("GET", "/v1/state/tasks?wait=10", fields={"If-None-Match": tag}))
        parked(server, client, 1)
        client.commit(
            json.dumps(
                [{"type": "tasks/add", "payload": {"id": first + number, "title": "x" * 8000}} for number in range(700)]
            ).encode()
        )
        waiter.wanted = client.get("/v1/state/tasks")
        return waiter


def read_bit_by_bit(client):
    """Reads what was waited for, with breaks; returns how long it took."""
    begun, reads = time.monotonic(), 0
    while not (parsed := parse_answer(client.buffer)):
        data = client.socket.recv(16 << 10)
        expect(data, f"a client that reads was given up after {time.monotonic() - begun:.2f} s and {reads} reads")
        client.buffer += data
        reads += 1
        time.sleep(0 if reads % 10 else 0.05)
    answer, size = parsed
    del client.buffer[:size]
    expect_equal((answer.status, answer.body == client.wanted.body), (200, True), "status, and whether it came whole")
    seconds = time.monotonic() - begun
    expect(seconds > 1.2, f"NOT CHECKED: the answer was read within {seconds:.2f} s")
    return seconds


class StalledClient(Client):
    """A client that has little room for what it is sent."""

    def __init__(self, port):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        self.socket.settimeout(20)
        self.socket.connect((HOST, port))
        self.buffer = bytearray()
