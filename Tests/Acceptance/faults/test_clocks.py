"""Clocks that jump further than a key lives: no retry commits twice, and no key is in the way of others for longer."""

import time

import pytest

from harness.actions import action, add
from harness.expectations import expect, expect_equal, wait_until
from harness.shims import Clocks

DAY = 86_400


def start(workspace, **settings):
    server = workspace.server(**settings)
    server.stop()
    clocks = Clocks(workspace, server)
    return server, clocks


def commit(client, key):
    return client.commit(add(1), Idempotency_Key=key)["version"]


def test_a_wall_clock_that_jumps_forward_and_back_lets_no_retry_commit_twice(workspace):
    server, clocks = start(workspace)
    server.start()
    with server.client() as client:
        version = commit(client, "a")
        for days in (3, 400, -400, 0):
            clocks.move(days * DAY)
            commit(client, f"at {days}")
            expect_equal(commit(client, "a"), version, f"DOUBLED: the retry when the clock is off by {days} days")


def test_a_restart_while_the_wall_clock_is_ahead_lets_no_retry_commit_twice(workspace):
    for end in ("stop", "kill"):
        server, clocks = start(workspace)
        server.start()
        with server.client() as client:
            version = commit(client, "a")
        for days in (3, 400, 0):
            getattr(server, end)()
            clocks.move(days * DAY)
            server.start()
            with server.client() as client:
                expect_equal(commit(client, "a"), version, f"DOUBLED: the retry after a {end} at {days} days")
                commit(client, f"at {days}")
        server.kill()


def test_a_key_that_was_made_while_the_clock_was_ahead_makes_room_when_its_time_has_passed(workspace):
    server, clocks = start(workspace, idempotency_seconds=2, idempotency_keys_max=2)
    clocks.move(365 * DAY)
    server.start()
    with server.client() as client:
        commit(client, "ahead")
        clocks.move(0)
        later = client.post(add(1), Idempotency_Key="later")
        expect_equal((later.status, later.json["code"]), (429, "idempotency-keys-full"), "the second key of a share of one")
        # The jump back may cost the time since the last look at the clocks.
        wait_until(
            lambda: client.post(add(1), Idempotency_Key="later").status == 200, "no key is in the way", 8, pause=0.2)
    server.stop()
    server.start()
    with server.client() as client:
        time.sleep(2.5)
        commit(client, "after a restart")


@pytest.mark.parametrize("wall", [
    9_223_372_036_854_775, 9_300_000_000_000_000, 1 << 60, -1_900_000_000, -9_300_000_000_000_000,
    253_402_300_800, 10**12, 10**14,
])
def test_a_start_and_the_one_after_it_go_on_wherever_the_wall_clock_is(workspace, wall):
    """Beyond the year 292 million a number of milliseconds has no 64 bits."""
    server, clocks = start(workspace, domain="document", journal_seconds_max=1)
    clocks.move(wall)
    server.start()
    for seconds in (wall, 0, wall, 0):
        clocks.move(seconds)
        with server.client() as client:
            client.commit(action("document/increment", {"path": "/n"}), Idempotency_Key=f"{time.monotonic()}")
            client.commit(action("document/set", {"path": "/short", "value": 1}))
            ttl = client.post(action("document/set", {"path": "/short", "value": 1, "ttl": 0.1}))
            # Behind the year 9999 nothing can be scheduled.
            expect(ttl.status in (200, 422), ttl.body)
            commit = client.get("/v1/changes?before=now&limit=1").json["changes"][0]
            expect(commit["time"].endswith("Z"), "the time of a commit:", commit)
            for target in ("/v1/schedule", "/v1/operations", "/metrics", "/readyz?verbose", "/v1/state?version=1"):
                answer = client.get(target)
                expect(answer.status in (200, 410), target, answer.status, answer.body)
            fork = client.post(b"{}", "/v1/forks")
            expect_equal(fork.status, 201, fork.body)
        server.stop()
        server.start()
    with server.client() as client:
        expect_equal(client.get("/v1/state/n").json, 4, "what was counted")
