"""SIGTERM among hostile connections, and a log that nobody reads."""

import fcntl
import os
import time

import pytest
from harness.actions import add
from harness.client import ConnectionLost
from harness.expectations import Failure, expect, expect_equal
from harness.hostile.attacks import load_tasks
from harness.hostile.connections import Crowd
from harness.messages import encode_request
from harness.server import Server
from harness.streams import EVENTS
from harness.wire import head

GRACE = 2
F_SETPIPE_SZ = 1031

BODY_HEAD = head("POST", "/v1/actions", "Content-Type: application/json", "Content-Length: 8000000")
CHUNKED_HEAD = head("POST", "/v1/actions", "Content-Type: application/json", "Transfer-Encoding: chunked")
KINDS = {
    "connections that send nothing": b"",
    "heads without an end": b"GET /v1/state/counter HTTP/1.1\r\nX: a",
    "heads that are answered with silence": head("GET", "/v1?" + "&".join(f"a{number}=1" for number in range(300))),
    "bodies without an end": BODY_HEAD + b" " * 100_000,
    "chunks without an end": CHUNKED_HEAD + b"1\r\n \r\n" * 100,
    "answers that are not read": encode_request("GET", "/v1/state/tasks") * 50,
    "streams that are not read": encode_request("GET", "/v1/state/tasks", fields={"Accept": EVENTS}),
    "waits": encode_request("GET", "/v1/state/counter?wait=50&until=7"),
    "waits with long debounce": encode_request("GET", "/v1/changes?since=oldest&wait=50&debounce=60000"),
    "posts that wait": encode_request("POST", "/v1/actions", add(1), {"Prefer": "wait=50"}),
    "past versions": encode_request("GET", "/v1/state/tasks?version=1"),
}


# Each takes its grace: the short form has two of them, and all together.
SHORT_FORM = ["bodies without an end", "posts that wait", "all of these together"]


def named(name):
    return pytest.param(name, marks=pytest.mark.long_form(only=name not in SHORT_FORM))


@pytest.mark.prompt
@pytest.mark.parametrize("name", map(named, [*KINDS, "all of these together"]))
def test_sigterm_ends_the_server_within_its_grace_among(workspace, request, figures, name):
    count = 200 if request.config.getoption("--long") else 40
    server = workspace.server(grace_seconds=GRACE, wait_seconds_max=55)
    with server.client() as client:
        load_tasks(client, 2000, 1000)
        receipt = client.commit(add(1))
        crowd = Crowd(server.port, receive_bytes=4096)
        for kind in KINDS if name not in KINDS else [name]:
            crowd.open(count, KINDS[kind])
        connections = len(crowd.sockets)
        time.sleep(0.3)
        begun = time.monotonic()
        server.terminate()
        code = server.wait(GRACE + 20)
        seconds = time.monotonic() - begun
    crowd.leave()
    expect_equal(code, 0, f"the exit code, after {seconds:.2f} s")
    expect(seconds < GRACE + 0.5, f"with a grace of {GRACE} s, the end took so many seconds:", seconds)
    server.start()
    with server.client() as client:
        expect(client.get("/v1").version >= receipt["version"], "what was acknowledged before the end is lost")
    figures(f"{seconds:.2f} s among {connections} connections")


def narrow_pipe(workspace, is_full):
    """A pipe of 4 kB that nobody reads, and a function that makes it the output of a process."""
    reader, writer = os.pipe()
    workspace.at_close.extend([lambda: os.close(reader), lambda: os.close(writer)])
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    if is_full:
        os.write(writer, b"x" * 4096)

    def prepare():
        os.dup2(writer, 1)
        os.dup2(writer, 2)

    return reader, prepare


def start(workspace, prepare, **settings):
    return Server(workspace, workspace.path("data"), settings, prepare).start(seconds=4)


@pytest.mark.parametrize("level", ["info", "debug"])
@pytest.mark.parametrize("is_full", [True, False], ids=["full from the start", "filled meanwhile"])
def test_a_log_that_nobody_reads_blocks_neither_start_nor_commits_nor_the_end(workspace, level, is_full):
    """Lines are dropped; hundreds of commits and refusals are answered meanwhile."""
    _, prepare = narrow_pipe(workspace, is_full)
    server = start(workspace, prepare, log_level=level, grace_seconds=GRACE)
    with server.client(timeout=3) as client:
        for number in range(300):
            expect_equal(client.post(add(1)).status, 200, f"the status of commit {number}")
            expect_equal(client.post(b"nonsense").status, 400, f"the status of refusal {number}")
        expect_equal(client.get("/v1/state/counter").json, {"value": 300}, "the counter")
    begun = time.monotonic()
    server.terminate()
    expect_equal(server.wait(GRACE + 5), 0, "the exit code")
    expect(time.monotonic() - begun < GRACE + 0.5, "the end took so many seconds:", time.monotonic() - begun)


def test_a_log_whose_reader_has_gone_ends_nothing(workspace):
    """Writing to such a pipe fails, and raises SIGPIPE."""
    reader, writer = os.pipe()

    def prepare():
        os.dup2(writer, 1)
        os.dup2(writer, 2)

    server = workspace.server(prepare=prepare, log_level="debug")
    os.close(writer)
    os.close(reader)
    with server.client(timeout=5) as client:
        for number in range(50):
            expect_equal(client.post(add(1)).status, 200, f"the status of commit {number}")
    server.terminate()
    expect_equal(server.wait(10), 0, "the exit code")


def test_dropped_lines_are_counted_and_the_count_is_told_when_the_log_is_read_again(workspace):
    reader, prepare = narrow_pipe(workspace, is_full=False)
    server = start(workspace, prepare, log_level="debug")
    try:
        with server.client(timeout=3) as client:
            # 256 KiB of lines wait, and each commit has one.
            for _ in range(5000):
                client.commit(add(1))
            end = time.monotonic() + 3
            text = b""
            os.set_blocking(reader, False)
            while time.monotonic() < end and b"dropped" not in text:
                try:
                    text += os.read(reader, 1 << 16)
                except BlockingIOError:
                    client.commit(add(1))
                    time.sleep(0.01)
    except (ConnectionLost, Failure) as fault:
        raise Failure(f"commits stopped while the log was not read: {fault}") from None
    expect(b"dropped" in text, "nothing about dropped lines in", text[-500:])
