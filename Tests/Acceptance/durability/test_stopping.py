"""SIGTERM beside waiters, writers and streams."""

import copy
import threading
import time

from harness.actions import action, add, commit_large_renames
from harness.client import ConnectionLost
from harness.expectations import expect, expect_equal, wait_until
from harness.followers import judge_history
from harness.messages import Answer, encode_request, version_of
from harness.records import StreamRecord
from harness.streams import open_stream, read_to_the_end
from harness.waits import begin, parked


def test_sigterm_under_load_answers_every_waiter_and_every_action_and_loses_nothing(workspace, figures):
    """500 waiters are parked and 16 clients post when the signal comes."""
    server = workspace.server()
    client = server.client()
    start = client.get("/v1/state")
    favourites = client.get("/v1/state/tasks/favourites")
    states = Waiting(server, ["/v1/state/tasks/favourites?wait=50"] * 250, {"If-None-Match": favourites.fields["etag"]})
    changes = Waiting(server, [f"/v1/changes?since={start.cursor}&wait=50&types=counter/reset"] * 250, {})
    wait_until(lambda: server.metric(client, "waiters") == 500, "500 waiters")
    posters = [Poster(server, name) for name in range(16)]
    for poster in posters:
        poster.start()
    ready, late, plain = server.client(), server.client(), server.client()
    for idle in (ready, late, plain):
        expect_equal(idle.get("/readyz").status, 200, "/readyz before")
    wait_until(lambda: all(len(poster.sent) > 20 for poster in posters), "each of 16 clients posts")

    signalled = time.monotonic()
    server.terminate()
    server.terminate()  # a second one must not lose anything either
    wait_until(lambda: '"stopping"' in server.log_text(), "the server begins to stop")
    problem = late.post(add(1))
    expect_equal((problem.status, problem.json["code"]), (503, "draining"), "an action while the server stops")
    expect("retry-after" in problem.fields and problem.closes, "no Retry-After and Connection: close:", problem)
    expect_equal(ready.get("/readyz").status, 503, "/readyz while the server stops")
    at_once = plain.get("/v1/state/counter?wait=30", If_None_Match='"other"')
    expect_equal(at_once.status, 200, "a plain GET while the server stops")
    code = server.wait(15)
    seconds = time.monotonic() - signalled
    expect_equal(code, 0, "the exit code")

    for answer in states.collect(10):
        expect(isinstance(answer, Answer), "a poller was not answered:", answer)
        expect_equal((answer.status, answer.closes), (304, True), "a poller's answer, and whether it closes")
    latest = 0
    for answer in changes.collect(10):
        expect(isinstance(answer, Answer), "a follower was not answered:", answer)
        expect_equal((answer.status, answer.json["changes"], answer.closes), (200, [], True), "a follower's answer")
        latest = max(latest, version_of(answer.json["next"]))
    acknowledged, refused, unanswered = {}, 0, 0
    for poster in posters:
        poster.join(15)
        for identifier, sent_at, answer in poster.sent:
            if isinstance(answer, ConnectionLost) and sent_at > signalled:
                unanswered += 1  # sent to a connection that was being closed, as may happen to any kept-alive one
                continue
            expect(
                isinstance(answer, Answer),
                f"an action in flight at the signal ({identifier}) was not answered:",
                answer,
            )
            if answer.status == 200:
                acknowledged[identifier] = answer.json["version"]
            else:
                expect_equal((answer.status, answer.json["code"]), (503, "draining"), "an action's answer")
                refused += 1

    server.start()
    client = server.client()
    history = judge_history(client, start.json, start.cursor)
    versions = {identifier: version for version, (identifier, _) in history.by_version().items()}
    expect_equal(len(versions), history.version, "different IDs in the history")
    for identifier, version in acknowledged.items():
        expect_equal(versions.get(identifier), version, f"the version of {identifier}, which was acknowledged,")
    lost = set(versions) - set(acknowledged)
    expect(
        len(lost) <= unanswered, f"{len(lost)} actions are committed but were answered otherwise: {sorted(lost)[:5]}"
    )
    expect(latest <= history.version, f"a follower was sent to {latest}, the latest version is {history.version}")
    figures(
        f"exit after {seconds:.2f} s; {len(acknowledged)} actions acknowledged, {refused} refused as draining,"
        f" {unanswered} sent to a connection already closing"
    )


def test_sigterm_ends_200_streams_in_good_order_and_a_stalled_one_does_not_delay_it(workspace, figures):
    """Each stream ends behind a whole event, and the server with exit code 0."""
    server = workspace.server()
    with server.client() as client:
        start = client.get("/v1/state")
        targets = [
            "/v1/changes?since=now",
            "/v1/state/counter",
            "/v1/views/count",
            "/v1/changes?since=now&types=tasks/add",
        ]
        streams = [open_stream(server, targets[number % 4]) for number in range(200)]
        client.commit(action("tasks/add", {"id": 1, "title": "one"}))
        stalled = [
            open_stream(server, target, receive_bytes=8192)
            for target in ("/v1/changes?since=now", "/v1/state/tasks/entities/1")
        ]
        commit_large_renames(client, [50])
        last = client.commit(add(1))["version"]
        for number, stream in enumerate(streams):
            if number % 4 == 0:
                events = stream.until(lambda event: event.version == last)
                StreamRecord(copy.deepcopy(start.json), start.cursor).take_all(events)
        signalled = time.monotonic()
        server.terminate()
        code = server.wait(10)
        seconds = time.monotonic() - signalled
        expect_equal(code, 0, "the exit code")
        expect(seconds < 5, f"the server took {seconds:.1f} s to stop")
        ended = read_to_the_end(streams, time.monotonic(), 5)
        for number, (stream, (_, events)) in enumerate(zip(streams, ended)):
            expect_equal((stream.reader.rest, stream.chunks.has_ended), (b"", True), "an event that was begun")
            if number % 4 == 0:
                expect_equal(events, [], "events at the end")
    server.start()
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter").json, {"value": 1}, "the counter afterwards")
        stream = streams[0]
        with open_stream(server, "/v1/changes?since=now", f"{start.cursor.rpartition('.')[0]}.0") as again:
            expect_equal(again.next().version, 1, "the first event after the restart, from the beginning")
    for stream in stalled:
        stream.close()
    figures(f"the server ended after {seconds:.2f} s")


def test_two_loops_wake_100_waiters_send_to_100_streams_and_end_all_at_sigterm(workspace):
    server = workspace.server(loops=2)
    with server.client() as client:
        tag = client.get("/v1/state/counter").fields["etag"]
        waiters = [begin(server, "/v1/state/counter?wait=50", If_None_Match=tag) for _ in range(100)]
        streams = [open_stream(server, "/v1/changes?since=now") for _ in range(100)]
        parked(server, client, 200)
        client.commit(add(1))
        version = client.get("/v1").json["version"]
        for waiter in waiters:
            expect_equal(waiter.receive().version, version, "the version in the answer to a waiter")
        for stream in streams:
            expect_equal(stream.next().version, version, "the version of a stream's event")
        for waiter in waiters:
            waiter.send(encode_request("GET", "/v1/changes?since=now&wait=50"))
            expect_equal(waiter.receive().status, 200, "the next request of a waiter")
        server.stop()
        for stream in streams:
            expect_equal((stream.watch(5), stream.has_ended), ([], True), "what came on a stream at SIGTERM")
            expect(stream.chunks.has_ended, "a stream ended without its last chunk")


class Waiting:
    """Requests that wait, each on a connection of its own, and what they were answered."""

    def __init__(self, server, targets, fields):
        self.clients = [server.client(timeout=30) for _ in targets]
        self.answers = [None] * len(targets)
        for client, target in zip(self.clients, targets):
            client.send(encode_request("GET", target, fields=fields))

    def collect(self, seconds):
        end = time.monotonic() + seconds
        for index, client in enumerate(self.clients):
            client.socket.settimeout(max(0.1, end - time.monotonic()))
            try:
                self.answers[index] = client.receive()
            except Exception as error:
                self.answers[index] = error
        return self.answers


class Poster(threading.Thread):
    """Posts actions on one connection, and keeps for each what became of it and when it was sent."""

    def __init__(self, server, name):
        super().__init__(daemon=True)
        self.client, self.name_ = server.client(timeout=30), name
        self.sent = []

    def run(self):
        number = 0
        while True:
            identifier = f"p{self.name_}-{number}"
            entry = [identifier, time.monotonic(), None]
            self.sent.append(entry)
            try:
                entry[2] = self.client.post(action("counter/add", {"amount": 1}, id=identifier))
            except Exception as error:
                entry[2] = error
                return
            if entry[2].closes:
                return
            number += 1
