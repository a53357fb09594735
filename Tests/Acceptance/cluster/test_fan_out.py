"""Watchers of the other servers cost the writer nothing, and the page's table of a million of them is what is simulated."""

import statistics
import sys

import pytest

from harness.actions import add
from harness.etcd import Etcds
from harness.expectations import expect, expect_equal, paced
from harness.nodes import Nodes
from harness.pages import ROOT
from harness.streams import open_stream
from harness.tools import run

WATCHERS, COMMITS = 400, 200


def test_the_page_has_the_table_that_the_simulation_prints():
    code, said = run(sys.executable, ROOT / "Tests/Benchmarks/fan_out.py")

    expect_equal(code, 0, said)
    expect(said.count("\n") == 6, said)
    expect(said in (ROOT / "Sources/StateServer/StateServer.docc/Guides/ScalingOut.md").read_text(), said)


@pytest.mark.alone
def test_the_writer_does_not_pay_for_the_watchers_of_another_server(workspace, figures):
    nodes = Nodes(workspace, Etcds(workspace, 1), "fan", count=2, are_led=True)
    number = nodes.writer()
    writer, follower = nodes.servers[number], nodes.servers[1 - number]

    def cost(watchers):
        """The writer's processor time for a commit, and the follower's, which so many clients watch."""
        streams = [open_stream(follower, "/v1/state/counter") for _ in range(watchers)]
        before = [server.cpu_seconds() for server in (writer, follower)]
        with writer.client() as client:
            # Until the watchers have it: a processor that serves them is a slower one for the next commit.
            for _ in paced(range(COMMITS), 0.015):
                cursor = client.commit(add(1))["cursor"]
        with follower.client() as client:
            client.get(f"/v1/state/counter?at-least={cursor}&wait=20")
        spent = [(server.cpu_seconds() - at) / COMMITS for server, at in zip((writer, follower), before)]
        for stream in streams:
            stream.close()
        return spent

    cost(0)
    alone, watched = zip(*((cost(0), cost(WATCHERS)) for _ in range(3)))
    (writer_alone, follower_alone), (writer_watched, follower_watched) = (
        [statistics.median(column) for column in zip(*rows)] for rows in (alone, watched)
    )
    text = (
        f"a commit costs the writer {1e6 * writer_alone:.0f} us, and "
        f"{1e6 * writer_watched:.0f} us with {WATCHERS} streams at another server, which pays {1e6 * follower_alone:.0f} us and "
        f"{1e6 * follower_watched:.0f} us"
    )
    figures(text)
    expect(follower_watched > 2 * follower_alone, f"the watchers were not served: {text}")
    expect(writer_watched < 1.2 * writer_alone, text)
