"""Checks of an end in good order."""

import threading
import time

from harness.actions import action, add
from harness.client import ConnectionLost
from harness.expectations import expect, expect_equal, wait_until
from harness.followers import judge_history
from harness.messages import Answer, encode_request, version_of


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


def stopped_under_load(workspace):
    """SIGTERM with 500 waiters parked and actions in flight: all are answered, exit code 0, nothing is lost."""
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
    time.sleep(0.3)

    signalled = time.monotonic()
    server.terminate()
    server.terminate()  # a second one must not lose anything either
    time.sleep(0.05)
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
    head = 0
    for answer in changes.collect(10):
        expect(isinstance(answer, Answer), "a follower was not answered:", answer)
        expect_equal((answer.status, answer.json["changes"], answer.closes), (200, [], True), "a follower's answer")
        head = max(head, version_of(answer.json["next"]))
    acknowledged, refused, unanswered = {}, 0, 0
    for poster in posters:
        poster.join(15)
        for identifier, sent_at, answer in poster.sent:
            if isinstance(answer, ConnectionLost) and sent_at > signalled:
                unanswered += 1  # sent to a connection that was being closed, as may happen to any kept-alive one
                continue
            expect(isinstance(answer, Answer), f"an action in flight at the signal ({identifier}) was not answered:", answer)
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
    expect(len(lost) <= unanswered, f"{len(lost)} actions are committed but were answered otherwise: {sorted(lost)[:5]}")
    expect(head <= history.version, f"a follower was sent to {head}, the head is {history.version}")
    return (
        f"exit after {seconds:.2f} s; {len(acknowledged)} actions acknowledged, {refused} refused as draining,"
        f" {unanswered} sent to a connection already closing")
