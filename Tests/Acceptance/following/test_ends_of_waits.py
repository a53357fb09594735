"""Followers whose wait ends at the moment of a commit."""

import random
import time

from harness.actions import add
from harness.client import Client
from harness.expectations import expect, expect_equal
from harness.messages import encode_request, version_of


def test_a_follower_whose_wait_ends_while_a_commit_is_made_never_misses_the_commit(workspace, figures):
    """Waits of a few milliseconds beside commits at random times: `next` never passes a commit that was not sent."""
    server = workspace.server()
    with server.client() as client:
        start = client.get("/v1").json["cursor"]
    seconds = 8
    followers = [workspace.worker(follow_briefly, server.port, start, seconds, f"{workspace.seed}/{n}") for n in (1, 2)]
    posters = [workspace.worker(post_at_random, server.port, seconds, f"{workspace.seed}/{n}") for n in (3, 4)]
    results = [follower.result(seconds + 20) for follower in followers]
    count, timed_out = (sum(result[index] for result in results) for index in (0, 1))
    committed = sum(poster.result(20) for poster in posters)
    faults = [fault for result in results for fault in result[2]]
    expect(timed_out > 1000 and committed > 500, f"NOT CHECKED: {timed_out} waits ended, {committed} commits")
    expect_equal(faults[:5], [], f"{len(faults)} of {timed_out} waits that ended with no commits skipped one")
    figures(f"{count} answers, {timed_out} of them after the time was up, beside {committed} commits")


def follow_briefly(port, start, seconds, seed):
    """Follows with 16 clients; the number of answers, of those without a commit, and what was skipped."""
    chance = random.Random(seed)
    clients = {Client(port): start for _ in range(16)}
    count, timed_out, faults = 0, 0, []
    end = time.monotonic() + seconds

    def ask(client):
        wait = chance.randint(1, 5) / 1000
        client.send(encode_request("GET", f"/v1/changes?since={clients[client]}&wait={wait}"))

    for client in clients:
        ask(client)
    while time.monotonic() < end:
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


def post_at_random(port, seconds, seed):
    chance, count = random.Random(seed), 0
    end = time.monotonic() + seconds
    with Client(port) as client:
        while time.monotonic() < end:
            client.commit(add(1))
            time.sleep(chance.random() / 100)
            count += 1
    return count
