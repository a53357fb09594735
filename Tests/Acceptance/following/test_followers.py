"""Followers of /v1/changes beside many writers."""

import random
import time

import pytest

from harness.expectations import expect, expect_equal
from harness.followers import follow, judge_history, read_history
from harness.pollers import poll
from harness.records import Record
from harness.worker import processes
from harness.writers import write_actions


@pytest.mark.rounds(400, long=1000)
def test_followers_see_each_action_of_ten_writers_once_and_pollers_end_on_the_last_value(workspace, figures, rounds):
    """Ten processes post so many actions each; five followers and six pollers judge what they receive."""
    total = 10 * rounds
    server = workspace.server()
    client = server.client()
    start = client.get("/v1/state")
    port, target = processes.Value("i", server.port), processes.Value("q", -1)
    finished = processes.Event()
    began = time.monotonic()
    followers = [
        workspace.worker(follow, port, start.json, start.cursor, target, limit, 120) for limit in (1, 7, 100, 100, 1000)
    ]
    pollers = [workspace.worker(poll, port, "/counter", finished, 120) for _ in range(5)]
    pollers.append(workspace.worker(poll, port, "/tasks/favourites", finished, 120))
    writers = [workspace.worker(write_actions, port, name, rounds, workspace.seed) for name in range(1, 11)]

    acknowledged = {}
    for writer in writers:
        for version, sent in writer.result(120).items():
            expect(version not in acknowledged, f"version {version} was acknowledged to two writers")
            acknowledged[version] = sent
    seconds = time.monotonic() - began
    final = client.get("/v1/state")
    expect_equal(sorted(acknowledged), list(range(1, total + 1)), "the acknowledged versions")
    expect_equal(final.version, total, "the final version")
    target.value = final.version
    finished.set()
    for follower in followers:
        record, _ = follower.result(60)
        expect_equal(record.state, final.json, "the state that a follower's patches lead to")
        for version, (identifier, kind, payload) in acknowledged.items():
            seen_id, seen = record.seen[version - 1]
            expect_equal((seen_id, seen["type"], seen["payload"]), (identifier, kind, payload), f"version {version}")
    results = [poller.result(60)[0] for poller in pollers]
    for poller in results[:5]:
        expect_equal(poller.value, final.json["counter"], "the value that a long-poller ends on")
        expect(poller.changes > 1, "a long-poller saw no change at all")
    expect_equal(results[5].value, final.json["tasks"]["favourites"], "the favourites that a long-poller ends on")
    woken = sum(poller.changes for poller in results)
    figures(f"{total:,} actions in {seconds:.1f} s; pollers were woken {woken} times, never for nothing")


def test_followers_behind_the_history_in_memory_read_on_from_the_journal(workspace):
    """Past versions of the state are as they were."""
    server = workspace.server(history_commits_max=50)
    client = server.client()
    start = client.get("/v1/state")
    port, target = processes.Value("i", server.port), processes.Value("q", 3000)
    writers = [workspace.worker(write_actions, port, name, 1000, workspace.seed) for name in range(1, 4)]
    followers = [workspace.worker(follow, port, start.json, start.cursor, target, limit, 60) for limit in (5, 49, 1000)]
    for writer in writers:
        writer.result(60)
    records = [follower.result(60)[0] for follower in followers]
    history = judge_history(client, start.json, start.cursor)
    for record in records:
        expect_equal((record.seen, record.state), (history.seen, history.state), "what a follower saw")
    wanted = set(random.Random(workspace.seed).sample(range(1, 3001), 30)) | {1, 2999, 3000}
    replay = Record(start.json, start.cursor)
    for page in read_history(client, start.cursor, limit=1):
        replay.take(page)
        if replay.version in wanted:
            past = client.get(f"/v1/state?version={replay.version}")
            expect_equal((past.status, past.version), (200, replay.version), "status and cursor of a past version")
            expect_equal(past.json, replay.state, f"the state of version {replay.version}")
