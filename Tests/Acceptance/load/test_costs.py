"""What an operation costs the server as the state grows."""

import json
import random
import statistics

import pytest

from harness.actions import action
from harness.expectations import expect
from harness.messages import encode_request
from harness.traffic import Traffic


@pytest.mark.alone
@pytest.mark.parametrize(
    "data",
    [
        pytest.param("none", id="in_memory", marks=pytest.mark.rounds(5, long=9)),
        pytest.param(None, id="with_a_journal", marks=pytest.mark.rounds(3, long=9)),
    ],
)
def test_renaming_one_of_100000_tasks_costs_at_most_twice_renaming_one_of_100(workspace, figures, rounds, data):
    request = renaming(random.Random(workspace.seed))
    # A turn that this machine holds up for 5 ms keeps a server's turns off its loop for a minute, which costs 20 us each: then
    # new servers are measured.
    for _ in range(5):
        costs, ratio = compare(workspace, data, request, 4000, rounds)
        if ratio <= 2:
            break
    text = f"{costs[0]:.1f} us with 100, {costs[1]:.1f} us with 100,000: ratio {ratio:.2f}"
    expect(ratio <= 2, text)
    figures(text)


@pytest.mark.alone
@pytest.mark.rounds(5, long=9)
def test_reading_one_of_100000_tasks_costs_at_most_twice_reading_one_of_100(workspace, figures, rounds):
    """GET by JSON Pointer. Each request has a head of its own, so that the server reads each anew on both sides."""
    chance = random.Random(workspace.seed)

    def request(size):
        target = f"/v1/state/tasks/entities/{chance.randrange(size)}"
        return encode_request("GET", target, fields={"X-Request-Id": chance.getrandbits(64)})

    costs, ratio = compare(workspace, "none", request, 10_000, rounds)
    text = f"{costs[0]:.1f} us one of 100, {costs[1]:.1f} us one of 100,000: ratio {ratio:.2f}"
    expect(ratio <= 2, text)
    figures(text)


def compare(workspace, data, request, count, rounds):
    """The cost with 100 tasks, with 100,000, and the ratio: the medians of so many measurements of each, in turn.

    A disturbance of the machine then affects both sides, and no single measurement decides.
    """
    sides = []
    for size in (100, 100_000):
        server = workspace.server(data=data)
        with server.client() as client:
            fill_tasks(client, size)
        sides.append((server, lambda index, turn, size=size: request(size)))
    measured = [[cost(server, request, count) for server, request in sides] for _ in range(rounds)]
    costs = [statistics.median(column) for column in zip(*measured)]
    return costs, statistics.median(large / small for small, large in measured)


def cost(server, request, count):
    """Server CPU time of one request in microseconds, everything that it causes in the background included."""
    traffic = Traffic(server, 16, request)
    traffic.run(count=count // 10)  # to warm up
    before = server.cpu_seconds()
    done = traffic.run(count=count)
    traffic.close()
    return 1e6 * (server.cpu_seconds() - before) / done


def fill_tasks(client, count):
    """Puts tasks 0 to count - 1 in the table."""
    for start in range(0, count, 5000):
        batch = [
            {"type": "tasks/add", "payload": {"id": number, "title": f"task {number}"}}
            for number in range(start, min(count, start + 5000))
        ]
        client.commit(json.dumps(batch).encode())


def renaming(chance):
    def request(size):
        payload = {"id": chance.randrange(size), "title": f"title {chance.random()}"}
        return encode_request("POST", "/v1/actions", action("tasks/rename", payload))

    return request
