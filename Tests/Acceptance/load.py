"""Checks under load, and of what an operation costs the server as the state grows."""

import json
import random
import statistics

from harness.actions import action, add
from harness.expectations import expect, expect_equal
from harness.followers import judge_history
from harness.messages import encode_request
from harness.traffic import Traffic


def busy_connections(workspace):
    """128, 256 and 1,000 busy connections: every one is served all the time, none stalls, nothing is lost."""
    server = workspace.server()
    requests = [
        encode_request("POST", "/v1/actions", add(1)), encode_request("GET", "/v1/state/counter"),
        encode_request("GET", "/v1/changes?since=now"), encode_request("GET", "/v1/state")]
    figures, posts = [], 0
    for count in (128, 256, 1000):
        traffic = Traffic(server, count, lambda index, turn: requests[(index + turn) % len(requests)])
        traffic.run(seconds=4)
        posts += traffic.posts
        rate = sum(traffic.answers) / 4
        # What one connection may expect when all are served in turn.
        fair = count / rate
        slowest, poorest = max(traffic.slowest), min(traffic.answers)
        expect(slowest < max(1, 10 * fair), f"{count} connections: one waited {slowest:.2f} s, the fair share is {fair:.2f} s")
        middle = statistics.median(traffic.answers)
        expect(poorest > middle / 4, f"{count} connections: one got {poorest} answers, the middle one {middle}")
        figures.append(f"{count}: {rate:.0f}/s, slowest answer {1000 * slowest:.0f} ms")
        traffic.close()
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter").json["value"], posts, "the counter after as many posts")
        judge_history(client, workspace.empty_state(), client.get("/v1").json["epoch"] + ".0")
    return "; ".join(figures)


def fill_tasks(client, count):
    """Puts tasks 0 to count - 1 in the table."""
    for start in range(0, count, 5000):
        batch = [
            {"type": "tasks/add", "payload": {"id": number, "title": f"task {number}"}}
            for number in range(start, min(count, start + 5000))]
        client.commit(json.dumps(batch).encode())


def cost(server, request, count):
    """Server CPU time of one request in microseconds, everything that it causes in the background included."""
    traffic = Traffic(server, 16, request)
    traffic.run(count=count // 10)  # to warm up
    before = server.cpu_seconds()
    done = traffic.run(count=count)
    traffic.close()
    return 1e6 * (server.cpu_seconds() - before) / done


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


def renaming(chance):
    def request(size):
        payload = {"id": chance.randrange(size), "title": f"title {chance.random()}"}
        return encode_request("POST", "/v1/actions", action("tasks/rename", payload))

    return request


def cost_of_renaming(workspace):
    """Renaming one of 100,000 tasks costs the server at most twice what renaming one of 100 costs."""
    request = renaming(random.Random(workspace.seed))
    costs, ratio = compare(workspace, "none", request, request, 4000)
    text = f"{costs[0]:.1f} us with 100, {costs[1]:.1f} us with 100,000: ratio {ratio:.2f}"
    expect(ratio <= 2, text)
    return text


def cost_of_renaming_durably(workspace):
    """The same with a journal: renaming one of 100,000 tasks costs at most twice what renaming one of 100 costs."""
    request = renaming(random.Random(workspace.seed))
    costs, ratio = compare(workspace, None, request, request, 4000)
    text = f"{costs[0]:.1f} us with 100, {costs[1]:.1f} us with 100,000: ratio {ratio:.2f}"
    expect(ratio <= 2, text)
    return text


def cost_of_reading(workspace):
    """GET of one of 100,000 tasks by pointer costs the server at most twice a GET of a small state."""
    chance = random.Random(workspace.seed)

    def small(_):
        return encode_request("GET", "/v1/state/counter")

    def large(size):
        return encode_request("GET", f"/v1/state/tasks/entities/{chance.randrange(size)}")

    costs, ratio = compare(workspace, "none", small, large, 10_000)
    text = f"{costs[0]:.1f} us the small state, {costs[1]:.1f} us one of 100,000: ratio {ratio:.2f}"
    expect(ratio <= 2, text)
    return text
