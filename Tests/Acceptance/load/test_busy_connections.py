"""Many busy connections at once."""

import statistics

import pytest

from harness.actions import add
from harness.expectations import expect, expect_equal
from harness.followers import judge_history
from harness.messages import encode_request
from harness.traffic import Traffic


@pytest.mark.alone
@pytest.mark.rounds(2, long=4)
def test_each_of_1000_busy_connections_is_served_all_the_time_and_nothing_is_lost(workspace, figures, rounds):
    """128, 256 and 1,000 connections, each for so many seconds."""
    server = workspace.server()
    requests = [
        encode_request("POST", "/v1/actions", add(1)),
        encode_request("GET", "/v1/state/counter"),
        encode_request("GET", "/v1/changes?since=now"),
        encode_request("GET", "/v1/state"),
    ]
    texts, posts = [], 0
    for count in (128, 256, 1000):
        traffic = Traffic(server, count, lambda index, turn: requests[(index + turn) % len(requests)])
        traffic.run(seconds=rounds)
        posts += traffic.posts
        rate = sum(traffic.answers) / rounds
        # The time of one answer where the server serves all connections in turn.
        fair = count / rate
        slowest, poorest = max(traffic.slowest), min(traffic.answers)
        expect(
            slowest < max(1, 10 * fair),
            f"{count} connections: one waited {slowest:.2f} s, the fair share is {fair:.2f} s",
        )
        middle = statistics.median(traffic.answers)
        expect(poorest > middle / 4, f"{count} connections: one got {poorest} answers, the middle one {middle}")
        texts.append(f"{count}: {rate:.0f}/s, slowest answer {1000 * slowest:.0f} ms")
        traffic.close()
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter").json["value"], posts, "the counter after as many posts")
        judge_history(client, workspace.empty_state(), client.get("/v1").json["epoch"] + ".0")
    figures("; ".join(texts))
