"""Actions at a time, through kills, stops and clocks that jump."""

import json
import pathlib
import random
import subprocess

import pytest

from harness.actions import action
from harness.expectations import expect, expect_equal, wait_until
from harness.schedules import DOCUMENT, changes, judge, later
from harness.shims import Clocks
from harness.tokens import bearer, make_token, token_names


ROOMS = """
import { createSlice } from '@reduxjs/toolkit';
import { schedule } from 'storekeeper';

createSlice({ name: 'rooms', initialState: {}, reducers: {
  booked(state, { payload: { room, seconds }, meta }) {
    state[room] = meta.by;
    schedule({ type: 'rooms/ended', payload: { room } }, { after: seconds, name: `end-${room}` });
  },
  ended(state, { payload: { room } }) { delete state[room]; },
} });
"""


def pending(server):
    with server.client() as client:
        return client.get("/v1/schedule?limit=1").json["count"]


@pytest.mark.rounds(4, long=20)
def test_kill_9_neither_loses_nor_repeats_a_scheduled_action(workspace, figures, rounds):
    chance = random.Random(workspace.seed)
    server = workspace.server(**DOCUMENT)
    names = [f"n{number}" for number in range(150)]
    sent = 0
    for _ in range(rounds):
        with server.client() as client:
            for _ in range(150):
                name = chance.choice(names)
                if chance.random() < 0.2:
                    answer = client.request("DELETE", f"/v1/schedule/{name}")
                    expect(answer.status in (200, 404), f"DELETE was answered with {answer.status}")
                else:
                    client.commit(later(f"u{sent}", round(chance.uniform(0, 2), 3), name))
                    sent += 1
        server.restart(after=chance.uniform(0, 0.5))
    wait_until(lambda: pending(server) == 0, "everything that was due has been dispatched", 20)

    with server.client() as client:
        commits = changes(client)
        late, left = judge(commits)
        expect_equal(left, {}, "what is still to come")
        expect_equal(sum(each["action"]["type"] == "storekeeper/schedule" for each in commits), sent, "the schedules")
        counts = client.get("/v1/state/n").json
    expect_equal(set(counts.values()), {1}, "how often each action was committed")
    expect_equal(len(counts), len(late), "the actions of the state")
    server.stop()
    verify = [workspace.binary, "journal", "verify", "--deep", "--domain", "document"]
    journal = workspace.journal_of(server.data)
    expect_equal(subprocess.run([*verify, "--data", journal], timeout=60).returncode, 0, "the exit code of verify")
    figures(f"{sent} scheduled, {len(late)} committed through {rounds} kills; median {sorted(late)[len(late) // 2]} ms late")


def test_what_is_due_while_the_server_is_down_happens_at_the_start_and_the_log_says_so(workspace):
    server = workspace.server(**DOCUMENT)
    with server.client() as client:
        for number, after in enumerate([0.6, 0.2, 0.4]):
            client.commit(later(f"u{number}", after))
        client.commit(later("far", 3600))
    server.restart(down=1, by=server.stop)
    wait_until(lambda: pending(server) == 1, "what was overdue has been dispatched")

    with server.client() as client:
        late, left = judge(changes(client))
    expect_equal((len(late), len(left)), (3, 1), "what was committed, and what is to come")
    expect(min(late) >= 300, f"they were {late} ms late")
    lines = [json.loads(line) for line in open(server.log) if "scheduled actions are late" in line]
    expect_equal([line["actions"] for line in lines], ["3"], "the log about late actions")


def test_a_stopped_process_goes_on_and_is_late(workspace):
    server = workspace.server(**DOCUMENT)
    with server.client() as client:
        for number in range(20):
            client.commit(later(f"u{number}", 0.3 + number / 50))
    server.stand_still(1.5)
    wait_until(lambda: pending(server) == 0, "everything has been dispatched")

    with server.client() as client:
        late, _ = judge(changes(client))
    expect_equal(len(late), 20, "the actions")


def test_a_wall_clock_that_jumps_makes_nothing_early_by_it_and_nothing_twice(workspace):
    server = workspace.server(**DOCUMENT)
    server.stop()
    clocks = Clocks(workspace, server)
    server.start()
    with server.client() as client:
        client.commit(later("hour", 3600))
        client.commit(later("day", 86_400))
        clocks.move(3700)
        wait_until(lambda: client.get("/v1/state/n").json == {"hour": 1}, "the hour is over by the clock", 5)
        clocks.move(-3700)
        client.commit(later("soon", 1))
        wait_until(lambda: pending(server) == 1, "a second is over by the clock", 5)
        clocks.move(90_000)
        wait_until(lambda: pending(server) == 0, "the day is over by the clock", 5)
        late, left = judge(changes(client))
        expect_equal((len(late), left), (3, {}), "what was committed")
        expect_equal(client.get("/v1/state/n").json, {"hour": 1, "day": 1, "soon": 1}, "the counts")


def test_what_a_reducer_schedules_needs_no_grant_of_the_sender_and_happens_without_its_token(workspace):
    model = pathlib.Path(workspace.path("rooms.js"))
    model.write_text(ROOMS)
    server = workspace.server(model=model, data=workspace.path("rooms"))
    server.stop()
    admin = make_token(workspace, server.data, "root", "--all")
    token = make_token(workspace, server.data, "ann", "--read", "/rooms", "--dispatch", "rooms/booked")
    server.start()
    with server.client() as client:
        for room in ("blue", "red"):
            client.commit(action("rooms/booked", {"room": room, "seconds": 1 if room == "blue" else 3}), **bearer(token))
        early = client.post(action("rooms/ended", {"room": "red"}), **bearer(token))
        expect_equal(early.status, 422, "the end that she sends herself")
        server.kill()
    server.start()
    with server.client() as client:
        fields = bearer(admin)
        wait_until(lambda: client.get("/v1/state/rooms", **fields).json == {"red": "ann"}, "the first booking has ended", 10)
        revoke = [workspace.binary, "token", "revoke", token_names(server.data)["ann"], "--data", server.data]
        revoked = subprocess.run(revoke, timeout=20, capture_output=True, text=True, check=True)
        expect("scheduled by" not in revoked.stdout, "it is not counted among what is refused", revoked.stdout)
        wait_until(lambda: client.get("/v1/state/rooms", **fields).json == {}, "the second one has ended", 10)


def test_a_subject_whose_other_token_allows_less_has_its_actions_refused_when_they_are_due(workspace):
    server = workspace.server(**DOCUMENT)
    server.stop()
    admin = make_token(workspace, server.data, "root", "--all")
    token = make_token(workspace, server.data, "gone", "--read", "*", "--dispatch", "document/*")
    name = token_names(server.data)["gone"]
    make_token(workspace, server.data, "gone", "--read", "*")
    server.start()
    with server.client() as client:
        answer = client.post(later("a", 3, id="mine"), **bearer(token))
        expect_equal(answer.status, 200, "the schedule")
        revoke = [workspace.binary, "token", "revoke", name, "--data", server.data]
        revoked = subprocess.run(revoke, timeout=20, capture_output=True, text=True)
        expect_equal(revoked.returncode, 0, "the exit code of the revocation")
        expect("\nscheduled by gone: 1; each is taken back" in revoked.stdout, "what waits is named", revoked.stdout)
        fields = bearer(admin)
        wait_until(lambda: client.get("/v1/schedule", **fields).json["count"] == 0, "it is not scheduled any more", 10)
        found = client.get("/v1/actions/mine", **fields).json
        expect_equal(found["refused"]["code"], "token-revoked", "the refusal")
        expect_equal(client.get("/v1/state", **fields).json, {}, "the document")
