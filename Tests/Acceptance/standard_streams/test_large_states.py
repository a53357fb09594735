"""The first read of a large state by a state stream, beside commits and other clients."""

import json
import time

import pytest
from harness.actions import action, add, bulk
from harness.client import Client
from harness.expectations import expect, expect_equal
from harness.mirror import Mirror, entities_of, version_of_offset
from harness.streams import StreamClient
from harness.worker import processes
from harness.workspace import Workspace

ENTITIES = 100_000
# About 256 KiB of values, and what names each of them.
PAGE_BYTES_MAX = 2 << 20


def start_with_tasks(workspace):
    """A server with many tasks."""
    server = workspace.server(data="none")
    with server.client() as client:
        for start in range(0, ENTITIES, 20_000):
            bulk(client, [action("tasks/add", {"id": start + n, "title": f"task {n}"}) for n in range(20_000)])
    return server


@pytest.fixture(scope="module")
def server(pytestconfig):
    """One server for each way to read it."""
    workspace = Workspace(pytestconfig.storekeeper, pytestconfig.seed)
    yield start_with_tasks(workspace)
    workspace.close()


def probe(port, finished):
    """How long each of many requests of other clients takes."""
    times = []
    with Client(port) as client:
        while not finished.wait(0.002):
            begun = time.monotonic()
            client.get("/livez")
            times.append(time.monotonic() - begun)
    return times


def commit(port, finished):
    with Client(port) as client:
        while not finished.wait(0.005):
            client.commit(add(1))
            client.commit(action("tasks/rename", {"id": 7, "title": f"renamed at {time.monotonic()}"}))


def read_by_catch_up(server):
    """The messages until the stream is up to date, and the offset behind them."""
    messages, sizes, offset = [], [], "-1"
    with server.client() as client:
        while True:
            answer = client.get(f"/v1/streams/state?offset={offset}")
            expect_equal(answer.status, 200, f"the status at {offset}")
            messages += json.loads(answer.body)
            sizes.append(len(answer.body))
            offset = answer.fields["stream-next-offset"]
            if "stream-up-to-date" in answer.fields:
                return messages, sizes, offset


def read_by_events(server):
    messages, sizes = [], []
    with StreamClient(server.port, "/v1/streams/state?offset=-1&live=sse") as stream:
        stream.begin()
        while True:
            event = stream.next(20)
            if event.name == "data":
                messages += event.json
                sizes.append(len(event.data))
            elif event.json.get("upToDate"):
                return messages, sizes, event.json["streamNextOffset"]


@pytest.mark.alone
@pytest.mark.parametrize("read", [read_by_catch_up, read_by_events], ids=["catch-up", "events"])
def test_a_large_state_comes_in_pages_while_others_are_served(workspace, server, read, figures):
    finished = processes.Event()
    others = workspace.worker(probe, server.port, finished)
    writer = workspace.worker(commit, server.port, finished)
    time.sleep(0.3)
    begun = time.monotonic()
    messages, sizes, offset = read(server)
    seconds = time.monotonic() - begun
    finished.set()
    writer.result(20)
    times = sorted(others.result(20))

    expect(max(sizes) < PAGE_BYTES_MAX, f"the longest page has {max(sizes)} bytes")
    p99 = times[len(times) * 99 // 100]
    expect(p99 < 0.1, f"/livez takes {p99} s beside the read")
    mirror = Mirror()
    for message in messages:
        mirror.take(message)
    with server.client() as client:
        types = client.get("/v1/streams").json["streams"][1]["types"]
        state = client.get(f"/v1/state?version={version_of_offset(offset)}")
    expect_equal(state.status, 200, "the status of the state")
    # Not by expect_equal: a difference of 200,000 entities is too long to tell.
    expect(mirror.values == entities_of(state.json, types), "the mirror is another state")
    figures(
        f"{len(messages)} messages in {len(sizes)} pages of {max(sizes)} bytes at most, {seconds:.2f} s;"
        f" /livez meanwhile: p99 {1000 * p99:.1f} ms, at most {1000 * times[-1]:.1f} ms"
    )


def test_a_reader_of_an_old_version_does_not_set_back_clients_that_begin(workspace):
    """On a server of its own: a client that has begun elsewhere would share its version with the first one."""
    with start_with_tasks(workspace).client() as client:
        old = client.get("/v1/streams/state?offset=-1").fields["stream-next-offset"]
        for _ in range(50):
            client.commit(add(1))
        time.sleep(5.5)  # clients that begin within five seconds share a version
        # A version with which no client has begun.
        epoch, version, place = old.split("_")
        other = f"{epoch}_{int(version, 16) + 10:016x}_{place}"
        expect_equal(client.get(f"/v1/streams/state?offset={other}").status, 200, "the status of an old version")
        begun = client.get("/v1/streams/state?offset=-1").fields["stream-next-offset"]
        expect_equal(version_of_offset(begun), version_of_offset(old) + 50, "the version of a client that begins")
