"""One of three servers writes by choice, and the others send their actions on to it."""

import contextlib
import signal
import socket
import statistics
import threading
import time

import pytest

from harness.actions import action, add
from harness.client import Client, ConnectionLost
from harness.etcd import Etcds
from harness.expectations import Failure, expect, expect_equal, remains, wait_until
from harness.metrics import figures_of
from harness.nodes import Nodes
from harness.server import Server


def led(workspace, etcds, name):
    """Three servers, and the numbers of the writer and of the two others."""
    nodes = Nodes(workspace, etcds, name, are_led=True)
    writer = nodes.writer()
    return nodes, writer, [index for index in range(3) if index != writer]


def sent_on(nodes, index):
    """How many actions a server has sent on, each with an answer."""
    counts = nodes.figures(index).by("forwards_total", "outcome")
    expect_equal(set(counts), {("answered",)}, "what came of actions that were sent on")
    return counts["answered",]


def acknowledged_after(ports, key, seconds):
    """How long it takes until an action is acknowledged by any of these servers, tried again and again."""
    begun = time.monotonic()

    def is_acknowledged():
        for port in ports:
            with contextlib.suppress(ConnectionLost, Failure), Client(port, timeout=seconds) as client:
                if client.post(add(1), Idempotency_Key=f'"{key}"').status == 200:
                    return True

    wait_until(is_acknowledged, "an action is acknowledged", seconds)
    return time.monotonic() - begun


def test_actions_go_to_the_writer_and_their_clients_read_what_they_wrote(workspace):
    nodes, writer, others = led(workspace, Etcds(workspace, 1), "led")
    before = sent_on(nodes, others[0])
    with Client(nodes.ports[others[0]]) as client:
        for number in range(1, 51):
            answer = client.post(add(1), Idempotency_Key=f'"key-{number}"')
            expect_equal(answer.status, 200, "the status of an action that is sent on")
            expect_equal(answer.json["version"], number, "its version")
            expect_equal(client.get("/v1/state/counter/value").json, number, "what its client reads next")
        again = client.post(add(1), Idempotency_Key='"key-7"')
        expect_equal((again.status, again.json["version"]), (200, 7), "the answer to a repeated action")
        expect_equal(again.fields["idempotency-replayed"], "true", "what says that it is repeated")
        with Client(nodes.ports[writer]) as direct:
            for body in (add(2**63 - 1), action("counter/none", {}), b"[", add("x")):
                one, other = client.post(body), direct.post(body)
                expect_equal(one.status, other.status, "the status of a refusal")
                expect_equal(one.json["code"], other.json["code"], "its code")
        sent = sent_on(nodes, others[0])
        expect(51 <= sent - before <= 53, f"{sent - before} actions were sent on")
        dry = client.request("POST", "/v1/actions?dry-run=true", add(1), {"Content-Type": "application/json"})
        expect_equal(dry.status, 200, "the status of a dry run")
        whole = client.request("POST", "http://localhost/v1/actions", add(0), {"Content-Type": "application/json"})
        expect_equal((whole.status, whole.json["version"]), (200, 51), "the answer to a target with its host")
        # Whoever does not know the secret of the servers is a client like any other.
        forged = client.request(
            "POST", "/v1/actions", add(1), {"Content-Type": "application/json", "Storekeeper-Forwarded": "x 1.2.3.4"}
        )
        expect_equal(forged.json["version"], 52, "the version of an action with a forged field")
        expect_equal(sent_on(nodes, others[0]), sent + 2, "the actions that were sent on")

    def post(port, count):
        with Client(port) as client:
            for _ in range(count):
                expect_equal(client.post(add(1)).status, 200, "the status of an action")

    threads = [threading.Thread(target=post, args=(nodes.ports[index % 3], 100)) for index in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: len(set(nodes.states())) == 1, "the servers have one state")
    expect_equal(nodes.states()[0][0].rpartition(".")[2], "952", "the version")
    refusals = [nodes.figures(index)["journal_refusals_total"] for index in range(3)]
    expect_equal(refusals, [0, 0, 0], "the turns that another server was faster than")


@pytest.mark.alone
@pytest.mark.rounds(3, long=10)
def test_another_server_writes_when_the_writer_is_killed_or_stops(workspace, rounds, figures):
    etcds = Etcds(workspace)
    nodes, writer, others = led(workspace, etcds, "ended")
    killed, stopped = [], []
    for number in range(2 * rounds):
        server = nodes.servers[writer]
        ports = [nodes.ports[index] for index in others]
        if number % 2:
            server.process.send_signal(signal.SIGTERM)
        else:
            server.process.kill()
        took = acknowledged_after(ports, f"end-{number}", 10)
        (stopped if number % 2 else killed).append(took)
        server.process.wait(20)
        wait_until(lambda: len(nodes.writers(others)) == 1, "another server writes", seconds=5)
        nodes.restart(writer)
        writer = nodes.writer()
        others = [index for index in range(3) if index != writer]
    expect(statistics.median(killed) < 4, f"after a kill: {killed}")
    expect(statistics.median(stopped) < 0.5, f"after SIGTERM: {stopped}")
    figures(
        f"acknowledged after kill -9 of the writer: {statistics.median(killed):.3f} s, {max(killed):.3f} s at most; "
        f"after SIGTERM: {statistics.median(stopped):.3f} s, {max(stopped):.3f} s at most"
    )
    expect_equal({body for _, body in nodes.states()}, {nodes.states()[0][1]}, "the states")


@pytest.mark.alone
def test_a_writer_that_stands_still_is_left_after_its_lease_and_its_action_is_recorded_once(workspace):
    nodes, writer, others = led(workspace, Etcds(workspace), "still")
    nodes.servers[writer].process.send_signal(signal.SIGSTOP)
    with Client(nodes.ports[others[0]], timeout=20) as client:
        begun = time.monotonic()
        answer = client.post(add(1), Idempotency_Key='"still"')
        expect_equal(answer.status, 200, "the status of an action that was sent to a server that stands still")
        expect(time.monotonic() - begun < 6, "it took too long")
        nodes.servers[writer].process.send_signal(signal.SIGCONT)
        expect_equal(client.post(add(1)).status, 200, "the status of the next action")
        remains(lambda: client.get("/v1/state/counter/value").json == 2, "the value is two", 1)
    wait_until(lambda: len(set(nodes.states())) == 1, "the servers have one state")
    wait_until(lambda: len(nodes.writers()) == 1, "one server writes")


@pytest.mark.alone
def test_a_server_without_a_majority_says_how_old_its_state_may_be(workspace):
    etcds = Etcds(workspace)
    nodes, _, _ = led(workspace, etcds, "old")
    with Client(nodes.ports[0]) as client:
        client.commit(add(1))
        for _ in range(3):
            expect("state-age" not in client.get("/v1/state").fields, "an age of a state that is current")
        for index in (0, 1):
            etcds.signal(index, signal.SIGSTOP)
        wait_until(lambda: "state-age" in client.get("/v1/state").fields, "the answers have an age", seconds=15)
        age = lambda: int(client.get("/v1/state").fields["state-age"])
        first = age()
        wait_until(lambda: age() >= first + 2, "the age grows", seconds=2.1)
        expect_equal(client.get("/readyz").status, 503, "whether the server is ready")
        for index in (0, 1):
            etcds.signal(index, signal.SIGCONT)
        wait_until(lambda: "state-age" not in client.get("/v1/state").fields, "the state is current", seconds=20)
        wait_until(lambda: client.get("/readyz").status == 200, "the server is ready", seconds=20)


def test_an_action_for_a_writer_that_takes_it_and_never_answers_is_answered(workspace):
    """As where packets between two machines are lost that both reach etcd: the lease of the writer does not end."""
    etcds = Etcds(workspace, 1)
    with socket.create_server(("127.0.0.1", 0), backlog=16) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        writer = Server(workspace, etcds.address("silent"), {"cluster_address": address}).start()
        with writer.client() as client:
            wait_until(lambda: figures_of(client)["cluster_writer"] == 1, "it writes")
        other = Server(workspace, etcds.address("silent"), {}).start()
        time.sleep(0.7)
        with other.client(timeout=15) as client:
            answer = client.post(add(1), Idempotency_Key='"silent"')
            expect_equal(answer.status, 200, "the status of an action with a key")
            expect_equal(client.get("/v1/state/counter/value").json, 1, "the value")
