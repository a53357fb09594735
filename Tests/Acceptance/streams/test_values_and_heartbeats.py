"""Streams of a value that have a heartbeat while a commit is told."""

import time

import pytest

from harness.actions import action, add
from harness.client import Client
from harness.crowd import Crowd, many_descriptors
from harness.expectations import paced


@pytest.mark.prompt
@pytest.mark.rounds(6, long=30)
def test_a_stream_of_a_value_whose_heartbeat_comes_while_a_commit_is_told_has_the_value_all_the_same(
    workspace, figures, rounds
):
    """Commits that concern no stream come all the time, so that each heartbeat tells of progress."""
    count = 12_000
    with many_descriptors(count):
        server = workspace.server(data="none", heartbeat_seconds=1, connections_max=count + 500, waiters_max=count)
        crowd = Crowd(server, "/v1/state/counter/value")
        try:
            with server.client() as client:
                crowd.join(count)
                poster = workspace.worker(rename_all_the_time, server.port, 100)
                times = []
                # By the next turn heartbeats fall due all the time.
                for turn in paced(range(1, rounds + 1), 0.7):
                    client.commit(add(1))
                    times.append(crowd.read_until(f"data: {turn}\n".encode(), 5))
                poster.end()
        finally:
            crowd.close()
    figures(f"{count} streams have a value within {1000 * max(times):.0f} ms")


def rename_all_the_time(port, seconds):
    end = time.monotonic() + seconds
    with Client(port) as client:
        client.commit(action("tasks/add", {"id": 1, "title": "one"}))
        while time.monotonic() < end:
            client.commit(action("tasks/rename", {"id": 1, "title": str(time.monotonic())}))
