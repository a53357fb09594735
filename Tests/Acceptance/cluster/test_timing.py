"""How long a cluster takes for what it promises; what the kill of a writer takes is in test_writer.py."""

import contextlib
import http.client
import statistics
import threading
import time

import pytest

from harness.actions import action, add, bulk
from harness.client import Client, ConnectionLost
from harness.etcd import Etcds
from harness.expectations import Failure, expect, expect_equal, lasting, paced, passes, sleep_until, wait_until
from harness.nodes import Nodes
from harness.server import Server
from harness.streams import NothingCame, StreamClient
from harness.worker import processes


class Repeated(threading.Thread):
    """Calls a function again and again, on a thread of its own, until it returns something true."""

    def __init__(self, function, seconds=30):
        super().__init__(daemon=True)
        self.function, self.begun, self.seconds = function, time.monotonic(), seconds
        self.took = None
        self.start()

    def run(self):
        past = (OSError, KeyError, ValueError, ConnectionLost, Failure, http.client.HTTPException)
        if passes(wait_until, self.function, "it succeeds", self.seconds, past=past):
            self.took = time.monotonic() - self.begun

    def result(self):
        self.join(self.seconds + 10)
        expect(self.took is not None, f"nothing within {self.seconds} s")
        return self.took


def rename(port, tasks, each_second, finished):
    """Renames one task after another by bulk loads, about so many a second until `finished`; returns how many, and per second."""
    # A load begins with small batches, each of which waits for etcd, so a short one cannot be fast.
    count = each_second // 2
    # Made beforehand, because the load must not take the servers' processors; the titles differ from those before.
    loads = [
        [action("tasks/rename", {"id": number, "title": title}) for number in range(first, first + count)]
        for title in ("one", "other")
        for first in range(1, tasks - count + 2, count)
    ]
    begun, commits = time.monotonic(), 0
    with Client(port) as client:
        while not finished.is_set():
            bulk(client, loads[commits // count % len(loads)])
            commits += count
            sleep_until(begun + commits / each_second)
    return commits, commits / (time.monotonic() - begun)


class Watched(threading.Thread):
    """Notes when each commit comes on a stream."""

    def __init__(self, stream):
        super().__init__(daemon=True)
        self.stream, self.seen = stream, {}
        self.start()

    def run(self):
        with contextlib.suppress(ConnectionLost, NothingCame):
            while True:
                event = self.stream.next(30)
                if event.name == "change":
                    self.seen[event.version] = time.monotonic()


def fill(client, tasks, bytes_each):
    """Adds tasks with titles of about so many bytes, a commit each."""
    for first in range(1, tasks + 1, 5_000):
        bulk(client, [
            action("tasks/add", {"id": number, "title": f"{number}".ljust(bytes_each, "x")})
            for number in range(first, min(first + 5_000, tasks + 1))
        ])


@pytest.mark.alone
@pytest.mark.rounds(5, long=10)
def test_after_the_kill_of_etcds_leader_an_action_takes_half_a_second_more_than_a_bare_put(workspace, rounds, figures):
    etcds = Etcds(workspace)
    nodes = Nodes(workspace, etcds, "leader", are_led=True)
    nodes.writer()
    puts, actions = [], []
    for number in paced(range(rounds), 1):
        leader = etcds.leader()
        other = (leader + 1) % 3
        etcds.kill(leader)
        put = Repeated(lambda: etcds.put("bare", b"x", index=other, timeout=0.2)["header"])

        def post(port):
            with Client(port, timeout=20) as client:
                return client.post(add(1), Idempotency_Key=f'"{number}-{port}"').status == 200

        acknowledged = [Repeated(lambda port=port: post(port)) for port in nodes.ports]
        puts.append(put.result())
        actions.append(max(each.result() for each in acknowledged))
        etcds.start(leader)
        etcds.wait()
    beyond = [action - put for put, action in zip(puts, actions)]
    text = (
        f"a bare put after {statistics.median(puts):.2f} s, the last of three actions after "
        f"{statistics.median(actions):.2f} s; at most {max(beyond):.2f} s later than the put"
    )
    figures(text)
    expect(statistics.median(beyond) < 0.5, text)


@pytest.mark.alone
@pytest.mark.long_form
def test_a_server_that_is_added_under_load_is_ready_soon_and_has_all_that_was_acknowledged_before(
    workspace, pytestconfig, figures
):
    """A state of 1 MB and 5,000 commits; with --long 20 MB and 100,000 commits."""
    is_long = pytestconfig.getoption("--long")
    tasks = 100_000 if is_long else 5_000
    etcds = Etcds(workspace)
    nodes = Nodes(workspace, etcds, "added", are_led=True)
    writer = nodes.writer()
    finished = processes.Event()
    with nodes.client(writer) as client:
        fill(client, tasks, 200)
        load = workspace.worker(rename, nodes.ports[writer], tasks, 2_000, finished)
        took = []
        for _ in range(3):
            before = client.get("/v1").version
            wait_until(lambda: client.get("/v1").version > before + 2_000, "the load goes on")
            added = Server(workspace, etcds.address("added"), {})
            begun = time.monotonic()
            added.launch()
            known, acknowledged = 0, []
            while True:
                version = client.commit(add(1))["version"]
                if added.ready():
                    break
                acknowledged.append((time.monotonic(), version))
                # What is acknowledged in the last instant before the server says that it is ready may still be on its way.
                known = max((version for at, version in acknowledged if at < time.monotonic() - 0.01), default=0)
                expect(time.monotonic() < begun + 30, "the server is not ready")
            with added.client() as first:
                answer = first.get("/v1/state/counter")
                took.append(time.monotonic() - begun)
                expect_equal(answer.status, 200, "the status of the first answer")
                expect(answer.version >= known > 0, f"the first answer has version {answer.version}, not {known}")
                expect_equal(first.get("/readyz").status, 200, "whether the server is ready")
            added.stop()
        finished.set()
        commits, _ = load.result(20)
        state = len(client.get("/v1/state").body)
    figures(
        f"{tasks} commits and a state of {state / 1e6:.1f} MB, under {commits} commits of load: ready after "
        f"{', '.join(f'{seconds:.2f}' for seconds in took)} s"
    )
    expect(statistics.median(took) < 3, f"it was ready after {took} s")


@pytest.mark.alone
@pytest.mark.long_form
def test_what_is_acknowledged_at_the_writer_is_visible_at_a_follower_within_a_tenth_of_a_second(
    workspace, pytestconfig, figures
):
    """Under 2,000 commits a second among 5,000 tasks; with --long 20,000 a second among 100,000."""
    is_long = pytestconfig.getoption("--long")
    tasks, each_second, seconds = (100_000, 20_000, 20) if is_long else (5_000, 2_000, 4)
    nodes = Nodes(workspace, Etcds(workspace), "lag", are_led=True)
    writer = nodes.writer()
    follower = (writer + 1) % 3
    finished = processes.Event()
    with nodes.client(writer) as client:
        fill(client, tasks, 20)
        begun = client.get("/v1").json["cursor"]
        with nodes.client(follower) as other:
            other.get(f"/v1/state/counter?at-least={begun}&wait=20")
        stream = StreamClient(nodes.ports[follower], f"/v1/changes?since={begun}&types=counter/add").begin()
        load = workspace.worker(rename, nodes.ports[writer], tasks, each_second, finished)
        acknowledged = {}
        watched = Watched(stream)
        for _ in paced(lasting(seconds), 0.005):
            version = client.commit(add(1))["version"]
            acknowledged[version] = time.monotonic()
        wait_until(lambda: acknowledged.keys() <= watched.seen.keys(), "the follower has seen all", seconds=20)
        finished.set()
        _, rate = load.result(20)
    lags = sorted(max(0, watched.seen[version] - at) for version, at in acknowledged.items())
    p90, p99 = (lags[len(lags) * share // 100] for share in (90, 99))
    text = (
        f"{len(lags)} actions among {rate:.0f} commits/s and {tasks} tasks: p50 {1000 * statistics.median(lags):.1f} ms, "
        f"p90 {1000 * p90:.1f} ms, p99 {1000 * p99:.1f} ms, at most {1000 * lags[-1]:.1f} ms"
    )
    figures(text)
    # In the short form a pause of the machine is one in a hundred.
    expect((p99 if is_long else p90) < 0.1, text)
