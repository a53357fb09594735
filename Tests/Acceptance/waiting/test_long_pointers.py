"""Waits at pointers that are as long as the server allows."""

import statistics
import time

import pytest

from harness.actions import add
from harness.expectations import expect, paced
from harness.waits import begin, parked


@pytest.mark.alone
def test_a_post_with_1000_waits_at_pointers_of_900_parts_costs_at_most_4_times_one_with_short_pointers(
    workspace, figures
):
    """All waits are below the value that the POST changes, and each at a pointer of its own."""
    short, long = (post_seconds(workspace, parts) for parts in (0, 900))
    text = f"{1000 * short:.1f} ms with short pointers, {1000 * long:.1f} ms with long ones"
    expect(long <= 4 * short, text)
    figures(text)


def post_seconds(workspace, parts):
    server = workspace.server(data="none")
    with server.client() as client:
        waits = [begin(server, f"/v1/state/counter/value{'/a' * parts}/{n}?wait=50&until={n}") for n in range(1000)]
        parked(server, client, 1000)
        seconds = []
        for _ in paced(range(30), 0.02):
            start = time.monotonic()
            client.commit(add(1))
            seconds.append(time.monotonic() - start)
        for wait in waits:
            wait.close()
    server.stop()
    return statistics.median(seconds)
