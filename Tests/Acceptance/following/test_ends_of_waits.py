"""Followers whose wait ends at the moment of a commit."""

import random
import time

from harness.actions import add
from harness.client import Client
from harness.expectations import expect, expect_equal
from harness.messages import encode_request, version_of
from harness.worker import processes

# The test takes so long, and on a busy machine until there are more commits than this.
SECONDS, SECONDS_MAX, COMMITS = 8, 60, 500


def test_a_follower_whose_wait_ends_while_a_commit_is_made_never_misses_the_commit(workspace, figures):
    """Waits of a few milliseconds beside commits at random times: `next` never passes a commit that was not sent."""
    server = workspace.server()
    with server.client() as client:
        start = client.get("/v1").json["cursor"]
    end, commits = time.monotonic() + SECONDS, processes.Value("q", 0)
    seeds = [f"{workspace.seed}/{number}" for number in range(1, 5)]
    followers = [workspace.worker(follow_briefly, server.port, start, end, commits, seed) for seed in seeds[:2]]
    posters = [workspace.worker(post_at_random, server.port, end, commits, seed) for seed in seeds[2:]]
    results = [follower.result(SECONDS_MAX + 20) for follower in followers]
    count, timed_out = (sum(result[index] for result in results) for index in (0, 1))
    for poster in posters:
        poster.result(20)
    committed = commits.value
    faults = [fault for result in results for fault in result[2]]
    expect(timed_out > 1000 and committed > COMMITS, f"NOT CHECKED: {timed_out} waits ended, {committed} commits")
    expect_equal(faults[:5], [], f"{len(faults)} of {timed_out} waits that ended with no commits skipped one")
    figures(f"{count} answers, {timed_out} of them after the time was up, beside {committed} commits")


def is_over(end, commits):
    """A busy machine takes longer for as many commits."""
    now = time.monotonic()
    return now >= end and commits.value > COMMITS or now >= end - SECONDS + SECONDS_MAX


def follow_briefly(port, start, end, commits, seed):
    """Follows with 16 clients; the number of answers, of those without a commit, and what was skipped."""
    chance = random.Random(seed)
    clients = {Client(port): start for _ in range(16)}
    count, timed_out, faults = 0, 0, []

    def ask(client):
        wait = chance.randint(1, 5) / 1000
        client.send(encode_request("GET", f"/v1/changes?since={clients[client]}&wait={wait}"))

    for client in clients:
        ask(client)
    while not is_over(end, commits):
        for client, since in clients.items():
            page = client.receive().json
            versions = [change["version"] for change in page["changes"]]
            first = version_of(since) + 1
            if version_of(page["next"]) != version_of(since) + len(versions) or (versions and versions[0] != first):
                faults.append(f"{versions} and next {version_of(page['next'])} after {first - 1}")
            clients[client] = page["next"]
            count, timed_out = count + 1, timed_out + (not versions)
            ask(client)
    return count, timed_out, faults


def post_at_random(port, end, commits, seed):
    chance = random.Random(seed)
    with Client(port) as client:
        while not is_over(end, commits):
            client.commit(add(1))
            with commits.get_lock():
                commits.value += 1
            time.sleep(chance.random() / 100)
