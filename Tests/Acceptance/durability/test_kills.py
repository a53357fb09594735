"""kill -9 beside writers, followers and pollers."""

import random
import time

import pytest

from harness.expectations import expect, expect_equal, wait_until
from harness.followers import follow, judge_history
from harness.messages import version_of
from harness.models import ROOT
from harness.pollers import poll
from harness.worker import processes
from harness.writers import write_through_kills

COUNTER = ROOT / "config/models/counter.js"


@pytest.mark.rounds(6, long=20)
@pytest.mark.parametrize("settings", [{}, {"model": COUNTER}], ids=["Swift", "a model"])
def test_kill_9_loses_nothing_acknowledged_repeats_nothing_and_followers_go_on(workspace, figures, rounds, settings):
    """Epoch and cursors stay; each kill comes while six clients post."""
    kills = rounds
    chance = random.Random(workspace.seed)
    server = workspace.server(**settings)
    start = server.client().get("/v1/state")
    epoch = start.cursor.rpartition(".")[0]
    port, target = processes.Value("i", server.port), processes.Value("q", -1)
    finished = processes.Event()
    acknowledged = [processes.Value("q", 0) for _ in range(6)]
    writers = [
        workspace.worker(
            write_through_kills, port, f"w{name}", name % 2 == 1, finished, acknowledged[name], workspace.seed
        )
        for name in range(6)
    ]
    followers = [workspace.worker(follow, port, start.json, start.cursor, target, limit, 150) for limit in (10, 1000)]
    poller = workspace.worker(poll, port, "/counter", finished, 150)
    recoveries = []
    old_cursors = [start.cursor]

    def go_on():
        before = max(value.value for value in acknowledged)
        wait_until(lambda: max(value.value for value in acknowledged) > before + 20, "the writers went on", 20)

    for _ in range(kills):
        go_on()
        server.kill(after=chance.uniform(0.02, 0.5))
        promised = max(value.value for value in acknowledged)
        began = time.monotonic()
        server.start()
        recoveries.append(time.monotonic() - began)
        port.value = server.port
        with server.client() as client:
            here = client.get("/v1").json
            expect_equal(here["epoch"], epoch, "the epoch after a kill")
            expect(here["version"] >= promised, f"version {promised} was acknowledged, {here['version']} is there")
            cursor = chance.choice(old_cursors)
            page = client.get(f"/v1/changes?since={cursor}&limit=1").json
            expect_equal(page["changes"][0]["version"], version_of(cursor) + 1, f"the change after {cursor}")
            old_cursors.append(here["cursor"])
    go_on()
    finished.set()
    receipts, sent, lost, replayed = {}, {}, 0, 0
    for writer in writers:
        some_receipts, some_sent, some_lost, some_replayed = writer.result(60)
        receipts |= some_receipts
        sent |= some_sent
        lost += some_lost
        replayed += some_replayed
    expect(lost >= kills, f"only {lost} answers were lost in {kills} kills: these were not in the middle of anything")
    client = server.client()
    history = judge_history(client, start.json, start.cursor)
    final = client.get("/v1/state")
    target.value = final.version

    versions = {}
    for version, (identifier, what) in history.by_version().items():
        expect(
            identifier not in versions,
            f"{identifier} is there twice: versions {versions.get(identifier)} and {version}",
        )
        versions[identifier] = version
        expect_equal(what["payload"]["amount"], sent[identifier], f"the amount of {identifier}")
    for identifier, version in receipts.items():
        expect_equal(versions.get(identifier), version, f"the version of {identifier}, which was acknowledged,")
    for identifier in sent:
        if int(identifier[1]) % 2 == 1:
            expect(identifier in versions, f"{identifier}, sent again until it was answered, is not there")
    total = sum(sent[identifier] for identifier in versions)
    expect_equal(final.json["counter"]["value"], total, "the counter, against the sum of what is in the history")
    for follower in followers:
        record, losses = follower.result(60)
        expect(losses >= kills // 2, f"a follower was cut off only {losses} times")
        expect_equal(record.seen, history.seen, "what a follower saw through all kills")
        expect_equal(record.state, final.json, "the state of a follower")
    result, _ = poller.result(60)
    expect_equal(result.value, final.json["counter"], "the value that the long-poller ends on")
    figures(
        f"{len(receipts)} acknowledged, {len(versions)} in the history, {lost} answers cut off,"
        f" {replayed} replayed by key;"
        f" restart {1000 * sorted(recoveries)[kills // 2]:.0f} ms (median)"
    )
