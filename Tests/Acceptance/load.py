"""Checks under load, and of what an operation costs the server as the state grows."""

import json
import random
import selectors
import statistics
import time

from following import judge_history
from harness import action, add, encode_request, expect, expect_equal, parse_answer


class Traffic:
    """Keeps many connections busy from one thread: each has one request under way, and sends the next when answered."""

    def __init__(self, server, count, request):
        self.request = request
        self.selector = selectors.EpollSelector()
        self.clients = [server.client() for _ in range(count)]
        self.answers = [0] * count
        self.slowest = [0.0] * count
        self.times = []
        self.sent = [0.0] * count
        self.posts = 0

    def run(self, seconds=None, count=None):
        """Runs for a time, or for a number of requests; all that were sent are answered."""
        begun, done, stall = 0, 0, 20
        end = time.monotonic() + (seconds if seconds is not None else 120)
        for index, client in enumerate(self.clients):
            self.selector.register(client.socket, selectors.EVENT_READ, index)
            self._send(index)
            begun += 1
        while done < begun:
            ready = self.selector.select(stall)
            waiting = begun - done
            expect(ready, f"{waiting} of {len(self.clients)} connections had no answer for {stall} s")
            for key, _ in ready:
                index = key.data
                client = self.clients[index]
                data = client.socket.recv(1 << 16)
                expect(data, "the server closed a busy connection")
                client.buffer += data
                parsed = parse_answer(client.buffer)
                if not parsed:
                    continue
                answer, size = parsed
                del client.buffer[:size]
                expect(answer.status == 200, "a busy connection was answered", answer)
                now = time.monotonic()
                taken = now - self.sent[index]
                self.times.append(taken)
                self.slowest[index] = max(self.slowest[index], taken)
                self.answers[index] += 1
                done += 1
                if begun < count if count is not None else now < end:
                    self._send(index)
                    begun += 1
        for client in self.clients:
            self.selector.unregister(client.socket)
        return done

    def _send(self, index):
        data = self.request(index, self.answers[index])
        self.posts += data.startswith(b"POST")
        self.sent[index] = time.monotonic()
        self.clients[index].send(data)

    def close(self):
        for client in self.clients:
            client.close()
        self.selector.close()


def busy_connections(bench):
    """128, 256 and 1,000 busy connections: every one is served all the time, none stalls, nothing is lost."""
    server = bench.server()
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
        judge_history(client, bench.empty_state(), client.get("/v1").json["epoch"] + ".0")
    return "; ".join(figures)


def fill(client, count):
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


def compare(bench, data, small_request, large_request, count):
    """The cost with 100 tasks, with 100,000, and the ratio: of nine measurements each, in turn, the middle ones.

    What disturbs the machine then disturbs both sides, and no single measurement decides.
    """
    sides = []
    for size, request in ((100, small_request), (100_000, large_request)):
        server = bench.server(data=data)
        with server.client() as client:
            fill(client, size)
        sides.append((server, lambda index, turn, size=size, request=request: request(size)))
    measured = [[cost(server, request, count) for server, request in sides] for _ in range(9)]
    costs = [statistics.median(column) for column in zip(*measured)]
    return costs, statistics.median(large / small for small, large in measured)


def renaming(chance):
    def request(size):
        payload = {"id": chance.randrange(size), "title": f"title {chance.random()}"}
        return encode_request("POST", "/v1/actions", action("tasks/rename", payload))

    return request


def cost_of_renaming(bench):
    """Renaming one of 100,000 tasks costs the server at most twice what renaming one of 100 costs."""
    request = renaming(random.Random(bench.seed))
    costs, ratio = compare(bench, "none", request, request, 4000)
    text = f"{costs[0]:.1f} us with 100, {costs[1]:.1f} us with 100,000: ratio {ratio:.2f}"
    expect(ratio <= 2, text)
    return text


def cost_of_renaming_durably(bench):
    """The same with a journal: renaming one of 100,000 tasks costs at most twice what renaming one of 100 costs."""
    request = renaming(random.Random(bench.seed))
    costs, ratio = compare(bench, None, request, request, 4000)
    text = f"{costs[0]:.1f} us with 100, {costs[1]:.1f} us with 100,000: ratio {ratio:.2f}"
    expect(ratio <= 2, text)
    return text


def cost_of_reading(bench):
    """GET of one of 100,000 tasks by pointer costs the server at most twice a GET of a small state."""
    chance = random.Random(bench.seed)

    def small(_):
        return encode_request("GET", "/v1/state/counter")

    def large(size):
        return encode_request("GET", f"/v1/state/tasks/entities/{chance.randrange(size)}")

    costs, ratio = compare(bench, "none", small, large, 10_000)
    text = f"{costs[0]:.1f} us the small state, {costs[1]:.1f} us one of 100,000: ratio {ratio:.2f}"
    expect(ratio <= 2, text)
    return text
