"""What catching up from the journal costs the server."""

import pytest

from harness.actions import action, commit_large_renames
from harness.expectations import expect
from harness.followers import read_history
from harness.streams import open_stream


@pytest.mark.alone
def test_a_stream_that_catches_up_costs_at_most_three_times_what_pages_cost(workspace, figures):
    """The history in memory holds 100 of the 2,001 commits; the rest comes from the journal."""
    server = workspace.server(history_commits_max=100)
    with server.client() as client:
        epoch = client.get("/v1").json["epoch"]
        client.commit(action("tasks/add", {"id": 1, "title": "one"}))
        commit_large_renames(client, [200] * 10)
        wanted = [f"{epoch}.{version}" for version in range(1, 2002)]

        def page():
            pages = read_history(client, f"{epoch}.0", limit=100)
            return [change["cursor"] for page in pages for change in page["changes"]]

        def stream(more=""):
            with open_stream(server, f"/v1/changes?since=oldest{more}") as stream:
                return [event.id for event in stream.until(lambda event: event.id == wanted[-1], 60)]

        costs = {}
        for name, read in (("pages", page), ("stream", stream), ("filtered", lambda: stream("&path=/tasks"))):
            before = server.cpu_seconds()
            for _ in range(3):
                expect(read() == wanted, f"{name}: not every commit once")
            costs[name] = (server.cpu_seconds() - before) / 3
    text = ", ".join(f"{name} {1000 * seconds:.0f} ms" for name, seconds in costs.items())
    expect(max(costs.values()) <= 3 * costs["pages"], f"the server's time for 2,001 commits of 8 kB: {text}")
    figures(text)
