"""Scheduled actions of three servers on one history, of which the one that writes is killed."""

import random

import pytest

from harness.etcd import Etcds
from harness.expectations import expect_equal, wait_until
from harness.forms import of_a_night
from harness.many_schedules import change_through_kills, judge_many, lateness
from harness.nodes import led, writer_of
from harness.schedules import DOCUMENT, changes, judge, later


@pytest.mark.rounds(2, long=10)
def test_each_scheduled_action_is_committed_once_through_kills_of_the_writer(workspace, figures, rounds):
    chance = random.Random(workspace.seed)
    servers = led(workspace, Etcds(workspace, 1).address("time"), [DOCUMENT] * 3)
    sent = 0
    for _ in range(rounds):
        wait_until(lambda: writer_of(servers) is not None, "one writes", 20)
        writer = writer_of(servers)
        other = next(server for server in servers if server is not writer)
        with other.client() as client:
            for _ in range(60):
                client.commit(later(f"u{sent}", round(chance.uniform(0, 3), 3)))
                sent += 1
        writer.restart(after=chance.uniform(0, 1))

    def is_done():
        with servers[0].client() as client:
            return client.get("/v1/schedule?limit=1").json["count"] == 0

    wait_until(is_done, "everything has been dispatched", 40)
    with servers[0].client() as client:
        late, left = judge(changes(client))
        counts = client.get("/v1/state/n").json
    expect_equal((len(late), left), (sent, {}), "what was committed, and what is to come")
    expect_equal(set(counts.values()), {1}, "how often each action was committed")
    figures(f"{sent} committed through {rounds} kills of the writer; at most {max(late)} ms late")


@pytest.mark.long_form
def test_each_of_many_is_committed_once_and_in_order_through_kills_of_the_writer(workspace, figures, pytestconfig):
    """Half of them are replaced or taken back."""
    is_long = pytestconfig.getoption("--long")
    count, kills, lead, window, ahead = (of_a_night(100_000), 10, max(15, of_a_night(75)), 60, 10) if is_long else (600, 3, 3, 4, 2)
    servers = led(workspace, Etcds(workspace, 1).address("time"), [DOCUMENT] * 3)

    def kill(down):
        wait_until(lambda: writer_of(servers) is not None, "one writes", 30)
        # What is sent again has an answer before the next kill.
        return writer_of(servers).restart(after=0.5, down=down)

    ports = [server.port for server in servers]
    told = change_through_kills(workspace, ports, kill, count, kills, lead, window, ahead)

    def states():
        found = [server.client().get("/v1/state") for server in servers]
        return {(state.cursor, state.body) for state in found}

    # A server that does not write follows as soon as it can.
    wait_until(lambda: len(states()) == 1, "all servers have one state")
    with servers[0].client() as client:
        fired = judge_many(client, told)
    figures(f"{told}; late: {lateness(fired)}; late in the quiet end: {lateness(fired, told.quiet)}")
