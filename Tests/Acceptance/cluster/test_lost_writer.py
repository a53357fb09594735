"""A server that ends while it carries out an action for another one: by the action itself, or by a kill.

A poison ends two servers at most, whether they keep a directory or not. What a kill meets is no poison.
"""

import itertools
import json
import pathlib
import threading

import pytest

from harness.actions import action
from harness.client import Client, ConnectionLost
from harness.etcd import Etcds
from harness.expectations import Failure, expect, expect_equal, paced, wait_until
from harness.nodes import led, writer_of
from harness.server import codes

MODEL = pathlib.Path(__file__).parent.parent / "models/ending.js"
BAD = {"type": "text/match", "payload": {"value": "bad"}}
GOOD = action("good/add", {})


def begin(workspace, etcds, has_directory, **settings):
    """Three servers of the model on one history, one of which writes for all; the first in the list is that one."""
    own = lambda: {"cluster_directory": workspace.path(f"of-one{workspace.count()}")} if has_directory else {}
    servers = led(workspace, etcds.address("lost"), [{"model": MODEL, **settings, **own()} for _ in range(3)])
    wait_until(lambda: writer_of(servers) is not None, "one writes")
    first = writer_of(servers)
    # The others know it, too: what they take is sent on.
    for server in servers:
        if server is not first:
            with server.client() as client:
                wait_until(lambda: is_forwarding(server, client), "it sends actions on")
    return [first] + [server for server in servers if server is not first]


def is_forwarding(server, client):
    before = server.metric(client, "forwards_total", outcome="answered")
    client.commit(GOOD)
    return server.metric(client, "forwards_total", outcome="answered") > before


def ended(servers):
    return sum(server.process.poll() is not None for server in servers)


@pytest.mark.parametrize("has_directory", [False, True], ids=["without a directory", "with directories"])
@pytest.mark.parametrize("at", [0, 1], ids=["at the writer", "at a follower"])
@pytest.mark.parametrize(
    "body, fields",
    [
        (BAD, {"Idempotency_Key": '"order 7"'}),
        (BAD, {}),
        ({**BAD, "id": "order-7"}, {}),
        ([{"type": "good/add", "payload": {}}, BAD], {"Idempotency_Key": '"order 8"'}),
        ("lines", {}),
    ],
    ids=["a key", "nothing", "an ID", "an array with a key", "lines"],
)
def test_an_action_that_ends_a_server_ends_two_of_three_at_most(workspace, body, fields, at, has_directory):
    servers = begin(workspace, Etcds(workspace, 1), has_directory, model_milliseconds_max=20)
    if body == "lines":
        body, fields = GOOD + b"\n" + json.dumps(BAD).encode(), {"Content_Type": "application/x-ndjson"}
    else:
        body = json.dumps(body).encode()
    answers = []
    # The client asks another server each time; nobody starts again what has ended.
    for server in paced(itertools.islice(itertools.cycle(servers[at:] + servers[:at]), 9), 0.1):
        if server.process.poll() is not None:
            continue
        with server.client() as client:
            try:
                answers.append(codes(client.post(body, **fields)))
            except ConnectionLost:
                answers.append(None)
    expect_equal(ended(servers), 2, f"how many have ended; the answers were {answers}")
    [last] = [server for server in servers if server.process.poll() is None]
    with last.client() as client:
        # Until then it is not known whether the server that tries it is only slow.
        wait_until(
            lambda: b"action-quarantined" in client.post(body, **fields).body, "it is set aside", seconds=15)
        expect_equal(client.post(GOOD).status, 200, "another action")
        before = client.get("/v1/state/good/n").json
    for server in servers:
        if server is not last:
            server.start()
    for server in servers:
        with server.client() as client:
            expect("action-quarantined" in client.post(body, **fields).body.decode(), "the answer after a start")
    expect_equal(ended(servers), 0, "how many have ended")
    with last.client() as client:
        expect(client.get("/v1/state/good/n").json >= before, "the state")


class Retrying(threading.Thread):
    """A client that sends each action with a key of its own until it is taken, at whichever server answers."""

    def __init__(self, name, ports, until):
        super().__init__(name=name, daemon=True)
        self.ports, self.until, self.taken, self.refusals = ports, until, 0, []

    def run(self):
        for number in itertools.count():
            if self.until.is_set():
                return
            while not self.refusals:
                port = self.ports[(number + self.taken + len(self.name)) % len(self.ports)]
                number += 1
                try:
                    with Client(port, timeout=30) as client:
                        answer = client.post(GOOD, Idempotency_Key=f'"{self.name}-{self.taken}"')
                except (ConnectionLost, Failure):
                    continue
                finally:
                    self.until.wait(0.01)
                if answer.status == 200:
                    self.taken += 1
                    break
                if answer.status != 503:
                    self.refusals.append(answer)


def listed(etcds):
    """The entries of the quarantine that the servers share."""
    return json.loads(etcds.keys("lost/quarantine").get("lost/quarantine", b'{"quarantine":[]}'))["quarantine"]


def is_nothing_tried(etcds):
    """Whether no server tries a suspected action: a kill in the middle of a trial is what a poison looks like from outside."""
    return all(entry.get("tried") is None for entry in listed(etcds))


@pytest.mark.rounds(5, long=20)
@pytest.mark.parametrize("has_directory", [False, True], ids=["without a directory", "with directories"])
def test_what_is_under_way_at_kills_of_the_writer_is_committed_once(workspace, has_directory, rounds, figures):
    etcds = Etcds(workspace, 1)
    servers = begin(workspace, etcds, has_directory)
    with servers[0].client() as client:
        before = client.get("/v1/state/good/n").json
    until = threading.Event()
    clients = [Retrying(f"c{number}", [server.port for server in servers], until) for number in range(6)]
    for client in clients:
        client.start()
    for _ in range(rounds):
        taken = sum(client.taken for client in clients)
        wait_until(lambda: sum(client.taken for client in clients) > taken + 50, "the clients go on", seconds=20)
        wait_until(lambda: writer_of(servers) is not None, "one writes", seconds=20)
        wait_until(lambda: is_nothing_tried(etcds), "no action is tried", seconds=20)
        writer_of(servers).restart(down=0.3)
    until.set()
    for client in clients:
        client.join(30)
    expect_equal([client.refusals for client in clients], [[]] * len(clients), "the refusals")
    taken = sum(client.taken for client in clients)
    with servers[0].client() as client:
        expect_equal(client.get("/v1/state/good/n?at-least=" + client.get("/v1").json["cursor"]).json, before + taken, "the sum")
    figures(f"{taken} actions through {rounds} kills of the writer")
    # An action that its client has sent again before the server came back stays suspected for an hour, and harms nobody.
    expect_equal([entry for entry in listed(etcds) if entry["state"] != "suspected"], [], "what is set aside")
    wait_until(lambda: is_nothing_tried(etcds), "no action is tried", seconds=20)
