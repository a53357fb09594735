"""A process that does not run for a while: a suspended machine, a starved container, a debugger."""

import selectors
import time

import pytest
from harness.actions import add
from harness.client import Client, ConnectionLost
from harness.expectations import expect, expect_equal
from harness.messages import encode_request
from harness.worker import processes

WAIT = encode_request("GET", "/v1/streams/commits?live=long-poll&offset=now")


def wait_again(port, finished):
    """A hundred clients that wait, and come back as soon as they have their answer."""
    selector = selectors.DefaultSelector()
    for _ in range(100):
        client = Client(port)
        client.send(WAIT)
        selector.register(client.socket, selectors.EVENT_READ, client)
    while not finished.is_set():
        for key, _ in selector.select(0.05):
            if key.data.socket.recv(1 << 16):
                key.data.send(WAIT)
            else:
                selector.unregister(key.data.socket)


def commit_again(port, finished):
    """Commits on a new connection each time."""
    while not finished.is_set():
        try:
            with Client(port, timeout=5) as client:
                client.commit(add(1))
        except (ConnectionLost, OSError):
            finished.wait(0.01)


@pytest.mark.rounds(10, long=60)
def test_a_server_that_was_stopped_for_a_moment_goes_on(workspace, rounds):
    server = workspace.server(data="none")
    finished = processes.Event()
    workers = [workspace.worker(work, server.port, finished) for work in (wait_again, commit_again, commit_again)]
    time.sleep(0.5)
    for _ in range(rounds):
        server.stand_still(0.7)
        time.sleep(0.1)
        with server.client(timeout=5) as client:
            expect_equal(client.get("/livez").status, 200, "the status of a probe")
    before = server.cpu_seconds()
    finished.set()
    for worker in workers:
        worker.result(20)
    time.sleep(0.5)
    # Three seconds: a loop without an end has half a second of them also where other tests use both processors.
    expect(server.cpu_seconds_of(3) < 0.5, f"the idle server is busy, after {before} s of work")
    server.stop()
