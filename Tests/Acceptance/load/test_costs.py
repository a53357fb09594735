"""What an operation costs the server as the state grows."""

import json
import random
import statistics

from harness.actions import action
from harness.expectations import expect
from harness.messages import encode_request
from harness.traffic import Traffic


def test_renaming_one_of_100000_tasks_costs_at_most_twice_renaming_one_of_100(workspace, figures):
    request = renaming(random.Random(workspace.seed))
    costs, ratio = compare(workspace, "none", request, request, 4000)
    text = f"{costs[0]:.1f} us with 100, {costs[1]:.1f} us with 100,000: ratio {ratio:.2f}"
    expect(ratio <= 2, text)
    figures(text)


def test_renaming_one_of_100000_tasks_with_a_journal_costs_at_most_twice_renaming_one_of_100(workspace, figures):
    request = renaming(random.Random(workspace.seed))
    costs, ratio = compare(workspace, None, request, request, 4000)
    text = f"{costs[0]:.1f} us with 100, {costs[1]:.1f} us with 100,000: ratio {ratio:.2f}"
    expect(ratio <= 2, text)
    figures(text)


def test_reading_one_of_100000_tasks_costs_at_most_twice_reading_a_small_state(workspace, figures):
    """GET by JSON Pointer."""
    chance = random.Random(workspace.seed)

    def small(_):
        return encode_request("GET", "/v1/state/counter")

    def large(size):
        return encode_request("GET", f"/v1/state/tasks/entities/{chance.randrange(size)}")

    costs, ratio = compare(workspace, "none", small, large, 10_000)
    text = f"{costs[0]:.1f} us the small state, {costs[1]:.1f} us one of 100,000: ratio {ratio:.2f}"
    expect(ratio <= 2, text)
    figures(text)


def compare(workspace, data, small_request, large_request, count):
    """The cost with 100 tasks, with 100,000, and the ratio: of nine measurements each, in turn, the middle ones.

    What disturbs the machine then disturbs both sides, and no single measurement decides.
    """
    sides = []
    for size, request in ((100, small_request), (100_000, large_request)):
        server = workspace.server(data=data)
        with server.client() as client:
            fill_tasks(client, size)
        sides.append((server, lambda index, turn, size=size, request=request: request(size)))
    measured = [[cost(server, request, count) for server, request in sides] for _ in range(9)]
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
