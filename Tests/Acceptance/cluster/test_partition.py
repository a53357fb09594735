"""Machines that are cut off from the others, and etcds that all end at once: nothing acknowledged is lost."""

import collections
import threading
import time

import pytest

from harness.actions import add
from harness.etcd import Etcds
from harness.expectations import expect, expect_equal, wait_until
from harness.machines import Machines
from harness.nodes import Nodes
from harness.recorded import Poster, history, judge


def begin(nodes, finished):
    """Two clients at each server, one of them with keys."""
    posters = [
        Poster(nodes, server, f"{'keyed' if is_keyed else 'plain'}{server}", is_keyed, finished)
        for server in range(3)
        for is_keyed in (True, False)
    ]
    for poster in posters:
        poster.start()
    return posters


def go_on(posters, count=20):
    """Waits until each client has so many more acknowledgements."""
    known = lambda: [sum(note.version is not None for note in list(poster.notes)) for poster in posters]
    before = known()
    wait_until(lambda: all(now >= then + count for now, then in zip(known(), before)), "all clients go on", seconds=20)


def end(nodes, posters, finished):
    """Ends the clients, waits until all servers have one state, and judges it; how many actions nobody has an answer of."""
    finished.set()
    for poster in posters:
        poster.join(70)
        expect(not poster.is_alive() and poster.failure is None, f"{poster.name_}: {poster.failure}")
    wait_until(lambda: len(set(nodes.states())) == 1, "the servers have one state", seconds=20)
    notes = [note for poster in posters for note in poster.notes]
    keyed = {note.identifier for note in notes if note.identifier.startswith("keyed")}
    expect_equal({note.identifier for note in notes if note.version} & keyed, keyed, "the acknowledged keyed actions")
    for server in range(3):
        with nodes.client(server) as client:
            recorded = history(client)
            expect_equal(client.get("/v1/state/counter/value").json, len(recorded), "the sum of all commits")
        open_count = judge(notes, recorded)
    return len(recorded), open_count


@pytest.mark.rounds(1, long=20)
@pytest.mark.seconds(long=1200)
def test_a_writer_that_is_cut_off_with_its_etcd_acknowledges_nothing_that_the_majority_does_not_have(
    workspace, rounds, figures
):
    machines = Machines(workspace)
    etcds = Etcds(workspace, machines=machines)
    commits = unanswered = 0
    for number in range(rounds):
        nodes = Nodes(workspace, etcds, f"round{number}", are_led=True)
        writer = nodes.writer()
        others = [index for index in range(3) if index != writer]
        finished = threading.Event()
        posters = begin(nodes, finished)
        go_on(posters)

        was_leader = etcds.leader() == writer
        machines.cut(writer)
        cut_at = time.monotonic()

        def newest():
            """The newest version at the servers of the majority, and which of them has it."""
            return max((int(cursor.rpartition(".")[2]), index) for index, (cursor, _) in nodes.known(others).items())

        def refused():
            """What became of actions that were sent to the server that is cut off."""
            return [note for each in posters if each.server == writer for note in list(each.notes) if note.begun > cut_at]

        with nodes.client(writer) as cut_off:
            wait_until(lambda: cut_off.get("/readyz").status == 503, "the server that is cut off is not ready", seconds=5)
            wait_until(lambda: "state-age" in cut_off.get("/v1/state").fields, "its answers have an age", seconds=5)
            before, _ = newest()
            wait_until(lambda: newest()[0] > before + 50, "the others go on", seconds=20)
            took = time.monotonic() - cut_at
            wait_until(lambda: len(refused()) >= 2, "actions are answered", seconds=30)
            expect_equal(cut_off.get("/readyz").status, 503, "whether the server that is cut off is ready")
            read = cut_off.get("/v1/state")
            expect_equal(read.status, 200, "the status of a read of the state that it has")
            age, cut_for = int(read.fields["state-age"]), time.monotonic() - cut_at
            expect(cut_for - 2 <= age <= cut_for + 2, f"an age of {age} s of a server that is cut off for {cut_for:.1f} s")
        notes = [note for poster in posters for note in list(poster.notes)]
        acknowledged = {note.version: note.identifier for note in notes if note.version}
        _, index = wait_until(lambda: newest() if newest()[0] >= max(acknowledged) else None, "the majority has it")
        with nodes.client(index) as other:
            expect("state-age" not in other.get("/v1/state").fields, "an age of the state of the majority")
            recorded = history(other)
        for version, identifier in acknowledged.items():
            expect_equal(recorded.get(version), identifier, f"what the majority has as version {version}")
        # What was sent before the cut and had no answer may be known to be recorded when it is sent again.
        late = [note for note in refused() if note.outcome == "acknowledged" and not note.is_replayed]
        expect_equal(late, [], "acknowledgements after the cut")
        codes = sum((poster.codes for poster in posters if poster.server == writer), collections.Counter())
        expect(set(codes) <= {"outcome-unknown", "not-durable", "behind"} and codes, f"the refusals: {codes}")

        healed_at = time.monotonic()
        machines.heal(writer)
        with nodes.client(writer) as client:
            wait_until(lambda: client.get("/readyz").status == 200, "the healed server is ready", seconds=20)
            wait_until(lambda: "state-age" not in client.get("/v1/state").fields, "its state is current", seconds=5)
        ready_after = time.monotonic() - healed_at
        go_on(posters)
        count, open_count = end(nodes, posters, finished)
        commits, unanswered = commits + count, unanswered + open_count
        for server in nodes.servers:
            server.stop()
    figures(
        f"{rounds} rounds: {commits} commits, {unanswered} of them without an answer; in the last round the etcd was "
        f"{'the leader' if was_leader else 'no leader'}, the others went on after {took:.1f} s, and the server was ready "
        f"{ready_after:.1f} s after the cable was back; what it had said: {dict(codes)}"
    )


def test_a_server_that_is_cut_off_from_the_writer_and_from_etcd_refuses_actions_with_503(workspace):
    machines = Machines(workspace)
    nodes = Nodes(workspace, Etcds(workspace, machines=machines), "cut", are_led=True)
    writer = nodes.writer()
    with nodes.client(writer) as client, nodes.client((writer + 1) % 3, timeout=12) as cut_off:
        expect_equal(cut_off.post(add(1)).status, 200, "the status of an action that is sent on")
        machines.cut((writer + 1) % 3)
        wait_until(lambda: client.post(add(1)).status == 200, "the writer goes on", seconds=20)
        # The first action may be under way before the server knows; the others come when it does.
        for _ in range(2):
            answer = cut_off.post(add(1))
            expect_equal((answer.status, answer.fields.get("retry-after")), (503, "1"), "the answer to an action")
        machines.heal((writer + 1) % 3)
        wait_until(lambda: cut_off.post(add(1)).status == 200, "it takes actions again", seconds=20)


def test_three_etcds_that_are_killed_at_once_have_all_that_was_acknowledged(workspace, figures):
    etcds = Etcds(workspace)
    nodes = Nodes(workspace, etcds, "killed", are_led=True)
    finished = threading.Event()
    posters = begin(nodes, finished)
    for _ in range(2):
        go_on(posters)
        etcds.stop_all()
        time.sleep(0.5)
        for index in range(3):
            etcds.start(index)
        etcds.wait()
        with nodes.client(0) as client:
            before = client.get("/v1").json["version"]
            wait_until(lambda: client.get("/v1").json["version"] > before + 20, "the servers go on", seconds=20)
    count, open_count = end(nodes, posters, finished)
    figures(f"{count} commits, {open_count} of them without an answer")


def test_what_only_etcd_has_is_503_while_no_etcd_answers_and_the_latest_state_is_there(workspace):
    etcds = Etcds(workspace, 1)
    nodes = Nodes(workspace, etcds, "away", count=1)
    with nodes.client(0) as client:
        for _ in range(3):
            client.commit(add(1))
    nodes.servers[0].kill()
    nodes.restart(0)
    etcds.stop_all()
    with nodes.client(0) as client:
        answer = client.get("/v1/state/counter?version=1")
        expect_equal((answer.status, answer.json["code"]), (503, "history-unreachable"), "the answer for a past version")
        expect_equal(answer.fields["retry-after"], "1", "when to ask again")
        expect_equal(client.get("/v1/state/counter/value").json, 3, "the latest state")
        etcds.start(0)
        etcds.wait()
        wait_until(lambda: client.get("/v1/state/counter?version=1").json == {"value": 1}, "it answers again", seconds=20)
