"""A second server on a data directory whose lock was removed."""

import os

from harness.actions import add
from harness.expectations import expect, expect_equal, wait_until
from harness.refusals import Case, judge_problem
from harness.server import Server


def test_the_first_of_two_servers_on_one_directory_refuses_and_nothing_that_either_acknowledged_is_lost(
    workspace, figures
):
    """The second takes the journal over; the first finds that at its next append, and refuses for good."""
    first = workspace.server()
    acknowledged = {}
    with first.client() as client:
        post(client, "before", 5, acknowledged)
        os.remove(os.path.join(first.data, "lock"))
        second = Server(workspace, first.data, {}).start()
        with second.client() as other:
            for number in range(10):
                refused = client.post(add(1, id=f"first{number}"))
                judge_problem(refused, Case("", b"", 503, "not-durable", says="nothing was committed"))
                post(other, f"second{number}-", 1, acknowledged)
            expect_equal(client.get("/readyz").status, 503, "/readyz of the first")
            wait_until(lambda: "journal failed" in first.log_text(), "a line in the log of the first", 5)
            expect_equal(client.get("/readyz").status, 503, "/readyz of the first, after it has tried again")
            expect_equal(other.get("/readyz").status, 200, "/readyz of the second")
    said = first.log_text()
    expect("another process has opened it for writing" in said, "the log of the first does not say why:", said)
    first.stop()
    with second.client() as other:
        post(other, "after", 1, acknowledged)
    second.restart()
    with second.client() as other:
        changes = other.get("/v1/changes?since=oldest&limit=1000").json["changes"]
        found = {change["version"]: change["id"] for change in changes}
    expect_equal(found, acknowledged, "the history against what either has acknowledged")
    figures(f"{len(acknowledged)} acknowledged by both, {len(found)} there")


def post(client, name, count, acknowledged):
    for number in range(count):
        receipt = client.commit(add(1, id=f"{name}{number}"))
        acknowledged[receipt["version"]] = receipt["id"]
