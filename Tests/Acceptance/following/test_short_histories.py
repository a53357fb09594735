"""Followers that debounce while the history in memory passes them by."""

import pytest

from harness.actions import add, bulk
from harness.expectations import expect, expect_equal
from harness.waits import begin, finish, parked


@pytest.mark.parametrize("wait", ["wait=10&debounce=700", "wait=1&debounce=9000"])
@pytest.mark.parametrize("data", [None, "none"], ids=["with a journal", "in memory"])
def test_a_debounced_follower_whose_history_leaves_memory_is_never_answered_with_an_empty_list(workspace, data, wait):
    """The answer has the commits from the journal, or says that the cursor has expired."""
    server = workspace.server(data=data, history_commits_max=100)
    with server.client() as client:
        here = client.commit(add(1))["cursor"]
        waiter = begin(server, f"/v1/changes?since={here}&{wait}")
        parked(server, client, 1)
        bulk(client, [add(1)] * 1000)
        answer, _ = finish(waiter)
        if answer.status == 410:
            expect_equal(answer.json["code"], "cursor-expired", "the code")
            return
        page = answer.json
        expect(page["changes"], f"no commits after {here}, but next is {page['next']}")
        versions = [change["version"] for change in page["changes"]]
        expect_equal(versions, list(range(2, 2 + len(versions))), "the versions after 1")
        expect(page["next"].endswith(f".{versions[-1]}"), f"next is {page['next']} behind version {versions[-1]}")
