"""Turns of almost a megabyte each, which no request for hundreds of them can have in one answer."""

import signal

import pytest

from harness.actions import action
from harness.etcd import Etcds
from harness.expectations import expect_equal, wait_until
from harness.server import Server

TASKS, COMMITS = 50, 120


@pytest.mark.alone
def test_the_past_of_large_turns_is_read_and_a_server_that_stood_still_takes_them_over(workspace):
    etcds = Etcds(workspace, 1)
    writer, other = (Server(workspace, etcds.address("large"), {}).start() for _ in range(2))
    with writer.client() as client:
        client.commit(b"[%s]" % b",".join(action("tasks/add", {"id": number, "title": "t"}) for number in range(1, TASKS + 1)))
        other.process.send_signal(signal.SIGSTOP)
        for count in range(COMMITS):
            title = f"{count}".ljust(8_000, "x")
            client.commit(b"[%s]" % b",".join(action("tasks/rename", {"id": number, "title": title}) for number in range(1, TASKS + 1)))
        other.process.send_signal(signal.SIGCONT)
        latest = client.get("/v1").json["cursor"]
    writer.stop()
    writer.start()
    with writer.client() as client, other.client() as follower:
        for each in (client, follower):
            wait_until(lambda: each.get("/v1").json["cursor"] == latest, "the server has the newest version", seconds=20)
        seen, since = [], "oldest"
        while len(seen) <= COMMITS:
            page = follower.get(f"/v1/changes?since={since}&limit=1000")
            expect_equal(page.status, 200, f"the status of the page behind {len(seen)} commits")
            seen += [change["version"] for change in page.json["changes"]]
            since = page.json["next"]
        expect_equal(seen, list(range(1, COMMITS + 2)), "the versions of the past")
