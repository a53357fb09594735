"""A server on a history in etcd with a directory of its own: it keeps the newest snapshot there, and can lose it."""

import os

from harness.actions import add
from harness.etcd import Etcds
from harness.expectations import expect, expect_equal, wait_until
from harness.server import Server, log_when_ready


def cached(directory):
    return [name for name in os.listdir(directory) if name.startswith("snapshot-")]


def test_the_newest_snapshot_is_kept_and_used_and_may_be_damaged_or_deleted(workspace):
    etcds = Etcds(workspace, 1)
    directory = workspace.path("own")
    os.mkdir(directory)
    settings = {"cluster_directory": directory, "history_commits_max": 1}
    server = Server(workspace, etcds.address("kept"), settings).start()
    lines = b"\n".join([add(1)] * 5_000)
    with server.client() as client:
        for _ in range(3):
            answer = client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"})
            expect_equal(answer.status, 200, "the status of 5,000 lines")
        wait_until(lambda: len(etcds.keys("kept/snapshots/")) == 2, "there is a snapshot behind the first one")
        client.commit(add(1))
        # It is read from the first snapshot, which is not kept in place of the newest.
        expect_equal(client.get("/v1/state/counter/value?version=1").json, 1, "the counter of version 1")
    server.stop()
    newest = max(etcds.keys("kept/snapshots/")).rpartition("/")[2].lstrip("0")
    expect_equal([name.split("-")[1] for name in cached(directory)], [newest], "the version of the kept snapshot")
    # Without its parts in etcd only the copy has the newest one.
    part = max(etcds.keys("kept/chunks/"))
    etcds.put(part, b"damaged")

    def value_after_start(says_skipped):
        again = Server(workspace, etcds.address("kept"), settings).start()
        expect_equal("snapshot skipped" in log_when_ready(again), says_skipped, "whether a snapshot was skipped")
        with again.client() as client:
            expect_equal(client.get("/v1/state/counter/value").json, 15_001, "the counter")
        again.stop()

    value_after_start(False)
    path = os.path.join(directory, cached(directory)[0])
    with open(path, "r+b") as file:
        file.write(b"X")
    value_after_start(True)
    for name in cached(directory):
        os.remove(os.path.join(directory, name))
    value_after_start(True)
