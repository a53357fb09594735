"""Random conversations on kept-alive connections."""

import random

import pytest

from harness.actions import add
from harness.client import ConnectionLost
from harness.expectations import Failure, expect, expect_equal, paced, wait_until
from harness.messages import encode_request
from harness.tools import takes_chunks
from harness.waits import ends


@pytest.mark.rounds(80, long=200)
def test_random_conversations_of_fifteen_kinds_of_requests_are_answered_as_they_should_be(workspace, figures, rounds):
    """Requests that wait are among the kinds."""
    server = workspace.server(data="none")
    closed = 0
    value = 0
    for number in range(rounds):
        seed = f"{workspace.seed}/{number}"
        conversation = Conversation(server, random.Random(seed))
        conversation.value = value
        steps = []
        try:
            for _ in range(10):
                steps.append(conversation.step())
        except (Failure, ConnectionLost, KeyError, TypeError, ValueError) as fault:
            raise Failure(
                f"conversation {number} of seed {workspace.seed}, after {steps}: {type(fault).__name__}: {fault}"
            ) from None
        value = conversation.value
        closed += conversation.closed
        conversation.client.close()
        conversation.other.close()
    figures(f"{value} commits; {closed} connections were closed behind something pipelined or chunked")


class Conversation:
    """One connection after another on which any request may follow any other; each answer is known beforehand."""

    def __init__(self, server, chance):
        self.server, self.chance = server, chance
        self.client, self.other = server.client(timeout=10), server.client(timeout=10)
        self.value = 0
        self.closed = 0

    def step(self):
        """Makes a random request; returns its kind."""
        kind = self.chance.choice(
            [
                "read",
                "post",
                "chunks",
                "woken",
                "woken",
                "page",
                "timeout",
                "until",
                "ahead",
                "never",
                "cascade",
                "head",
                "missing",
                "pair",
                "behind",
            ]
        )
        if kind == "chunks" and not takes_chunks():
            kind = "post"
        getattr(self, kind)()
        return kind

    def send(self, data):
        """Sends a request whole or in pieces."""
        middle = self.chance.randrange(1, len(data)) if self.chance.random() < 0.3 else len(data)
        for piece in paced(filter(None, (data[:middle], data[middle:])), lambda _: self.chance.choice((0, 0.001))):
            self.client.send(piece)

    def receive(self, method="GET", may_close=False):
        answer = self.client.receive(method)
        if answer.closes:
            expect(may_close or self.had_chunks, "an answer closes the connection:", answer)
            expect(ends(self.client), "something came behind an answer that closes the connection")
            self.client.close()
            self.client = self.server.client(timeout=10)
            self.closed += 1
            self.had_chunks = False
        return answer

    had_chunks = False

    def judge(self, answer, value=None):
        value = self.value if value is None else value
        expect_equal((answer.status, answer.json, answer.version), (200, value, value), "an answer")

    def get(self, more="", known=None, method="GET"):
        return encode_request(method, f"/v1/state/counter/value{more}", fields={"If-None-Match": known})

    def known(self):
        return self.other.get("/v1/state/counter/value").fields["etag"]

    def commit(self):
        if self.chance.random() < 0.7:
            wait_until(lambda: self.server.metric(self.other, "waiters") >= 1, "the wait")
        self.other.commit(add(1))
        self.value += 1

    def read(self):
        self.send(self.get())
        self.judge(self.receive())

    def post(self):
        self.send(encode_request("POST", "/v1/actions", add(1)))
        self.value += 1
        expect_equal(self.receive().json["version"], self.value, "the version of a receipt")

    def chunks(self):
        body = add(1)
        self.send(
            b"POST /v1/actions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n5\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (body[:5], len(body) - 5, body[5:])
        )
        self.value += 1
        self.had_chunks = True
        expect_equal(self.receive().json["version"], self.value, "the version of a receipt")

    def woken(self):
        self.send(self.get("?wait=10", self.known()))
        self.commit()
        self.judge(self.receive())

    def page(self):
        cursor = self.other.get("/v1").json["cursor"]
        self.send(encode_request("GET", f"/v1/changes?since={cursor}&wait=10"))
        self.commit()
        expect_equal(
            [change["version"] for change in self.receive().json["changes"]], [self.value], "the commits of the page"
        )

    def timeout(self):
        self.send(self.get("?wait=0.02", self.known()))
        answer = self.receive()
        expect_equal((answer.status, answer.version), (304, self.value), "the answer when time is up")

    def until(self):
        self.send(self.get(f"?wait=10&until={self.value + 1}"))
        self.commit()
        self.judge(self.receive())

    def ahead(self):
        epoch = self.other.get("/v1").json["epoch"]
        self.send(self.get(f"?wait=10&at-least={epoch}.{self.value + 1}"))
        self.commit()
        self.judge(self.receive())

    def never(self):
        epoch = self.other.get("/v1").json["epoch"]
        self.send(self.get(f"?wait=0.02&at-least={epoch}.{self.value + 1}"))
        expect_equal(self.receive().status, 409, "the status when the version has not come")

    def cascade(self):
        self.send(encode_request("POST", "/v1/actions", add(1), {"Prefer": "wait=5"}))
        self.value += 1
        expect_equal(self.receive().json["version"], self.value, "the version of a receipt that waits for its cascade")

    def head(self):
        self.send(self.get("?wait=10", self.known(), "HEAD"))
        self.commit()
        expect_equal(self.receive("HEAD").version, self.value, "the version of HEAD")

    def missing(self):
        self.send(encode_request("GET", "/v1/state/nothing"))
        expect_equal(self.receive().status, 404, "the status of what is not there")

    def pair(self):
        self.client.send(self.get() + self.get())
        self.judge(self.receive())
        self.judge(self.receive())

    def behind(self):
        self.client.send(self.get("?wait=10", self.known()) + self.get())
        self.commit()
        before = self.closed
        self.judge(self.receive(may_close=True))
        if self.closed == before:
            self.judge(self.receive())
