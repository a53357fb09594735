"""Checks of connections on which requests wait: what comes before and behind, and clients that are odd or slow."""

import json
import random
import socket
import time

from harness.actions import add
from harness.client import Client, ConnectionLost
from harness.expectations import Failure, expect, expect_equal, wait_until
from harness.messages import HOST, encode_request, parse_answer
from harness.streams import EVENTS
from harness.waits import begin, ends, parked


def next_requests(workspace):
    """A connection goes on after a wait: post, get, wait, post, 200 times in turn on one connection."""
    return alternate(workspace.server(data="none"), 200)


def alternate(server, turns):
    value = 0
    with server.client() as client, server.client() as other:
        port = client.socket.getsockname()
        for turn in range(turns):
            value += 1
            expect_equal(client.commit(add(1))["version"], value, "the version of a receipt")
            got = client.get("/v1/state/counter")
            expect_equal((got.json, got.version), ({"value": value}, value), "what was got")
            if turn % 3 == 0:
                target, fields = f"/v1/changes?since={got.cursor}&wait=10", {}
            else:
                target, fields = "/v1/state/counter?wait=10", {"If-None-Match": got.fields["etag"]}
            if turn % 10 == 9:  # its time is up
                answer = client.request("GET", target.replace("wait=10", "wait=0.05"), fields=fields)
                expect(answer.status == 304 or answer.json["changes"] == [], "a wait where nothing came:", answer)
                expect(not answer.closes, "the connection was closed after a wait:", answer)
                continue
            client.send(encode_request("GET", target, fields=fields))
            if turn % 2:
                wait_until(lambda: server.metric(other, "waiters") == 1, "the wait")
            value += 1
            other.commit(add(1))
            answer = client.receive()
            told = answer.json["changes"][-1]["version"] if turn % 3 == 0 else answer.json["value"]
            expect_equal((answer.status, told, answer.closes), (200, value, False), "what was waited for, and closing")
        expect_equal(client.socket.getsockname(), port, "the client's own port")
        expect_equal(server.metric(other, "connections"), 2, "connections")
    return f"{value} commits"


def pipelined(workspace):
    """A request that is sent behind one that waits is never answered wrongly, nor done without an answer."""
    server = workspace.server(data="none")
    with server.client() as witness:
        own = encode_request("GET", "/v1/state/counter/value")
        behinds = {
            "a get": own, "two gets": own * 2, "a post": encode_request("POST", "/v1/actions", add(1000)),
            "half a request": own[:10], "another wait": encode_request("GET", "/v1/changes?since=now&wait=1"),
            "much": encode_request("POST", "/v1/actions", b" " * 40_000)}
        texts = []
        for name, behind in behinds.items():
            for pause in (None, 0.0, 0.05):
                for ahead in (b"", own):
                    texts.append(judge_pipelined(server, witness, f"{name} {pause} {len(ahead)}", ahead, behind, pause))
        expect_equal(witness.get("/v1/state/counter/value").json % 1000, len(texts), "the counter")
    return f"{sum(texts)} of {len(texts)} answers closed the connection"


def judge_pipelined(server, witness, name, ahead, behind, pause):
    """Sends a wait and something behind it; whether the answer closed the connection."""
    now = witness.get("/v1/state/counter/value")
    wait = encode_request("GET", "/v1/state/counter/value?wait=10", fields={"If-None-Match": now.fields["etag"]})
    with server.client(timeout=5) as client:
        if pause is None:
            client.send(ahead + wait + behind)
        else:
            client.send(ahead + wait)
            time.sleep(pause)
            client.send(behind)
        if ahead:
            expect_equal(client.receive().json, now.json, f"the answer to the request before the wait ({name})")
        parked(server, witness, 1)
        cpu = server.cpu_seconds()
        time.sleep(0.02)
        expect(server.cpu_seconds() - cpu < 0.02, f"the server is busy with what cannot be read yet ({name})")
        version = witness.commit(add(1))["version"]
        answer = client.receive()
        expect_equal((answer.status, answer.version, answer.json), (200, version, now.json + 1), f"the answer ({name})")
        if answer.closes:
            expect(ends(client), f"something came behind an answer that closes the connection ({name})")
            expect_equal(witness.get("/v1").json["version"], version, f"the version: nothing was done unanswered ({name})")
            return True
        if behind.startswith(b"POST") and b"1000" in behind:
            expect_equal(client.receive().json["version"], version + 1, f"the receipt behind the wait ({name})")
        elif b"since=now" in behind:
            expect_equal(client.receive().json["changes"], [], f"the page behind the wait ({name})")
        elif behind.startswith(b"POST"):
            expect_equal(client.receive().status, 400, f"the status of the post behind the wait ({name})")
        else:
            if len(behind) < 20:
                client.send(encode_request("GET", "/v1/state/counter/value")[len(behind):])
            for _ in range(max(1, behind.count(b"\r\n\r\n"))):
                expect_equal(client.receive().json, answer.json, f"the answer to the request behind the wait ({name})")
        return False


def odd_clients(workspace):
    """Waits of HTTP/1.0, HEAD, half-closed, chunked and fragmented clients are answered as they should be."""
    server = workspace.server(data="none")
    path = "/v1/state/counter/value"
    with server.client() as client:
        tag = client.get(path).fields["etag"]

        def wake(waiter, method="GET"):
            parked(server, client, 1)
            version = client.commit(add(1))["version"]
            answer = waiter.receive(method)
            expect_equal((answer.status, answer.version), (200, version), "status and version of an answer")
            if method == "GET":
                expect_equal(answer.json, version, "the value of an answer")
            return answer, answer.fields["etag"]

        for fields in ("", "Connection: keep-alive\r\n", "Host: here\r\n"):
            with server.client(timeout=5) as old:
                old.send(f"GET {path}?wait=10 HTTP/1.0\r\n{fields}If-None-Match: {tag}\r\n\r\n".encode())
                _, tag = wake(old)
                expect(ends(old), "the connection of an HTTP/1.0 client was not closed")
        with server.client(timeout=5) as closing:
            closing.send(encode_request(
                "GET", f"{path}?wait=10", fields={"If-None-Match": tag, "Connection": "Close"}))
            answer, tag = wake(closing)
            expect(answer.closes and ends(closing), "Connection: close was not honoured:", answer)
        with server.client(timeout=5) as head:
            for _ in range(3):
                head.send(encode_request("HEAD", f"{path}?wait=10", fields={"If-None-Match": tag}))
                answer, tag = wake(head, "HEAD")
                expect_equal(int(answer.fields["content-length"]), len(client.get(path).body), "Content-Length of HEAD")
                expect_equal(head.get(path).status, 200, "the request after HEAD")
        with server.client(timeout=5) as chunked:
            for fragments in (1, 5):
                body = add(1)
                chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
                fields = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                request = b"POST /v1/actions HTTP/1.1\r\nHost: here\r\n" + fields + chunk
                size = len(request) // fragments + 1
                for start in range(0, len(request), size):
                    chunked.send(request[start : start + size])
                    time.sleep(0.01 if fragments > 1 else 0)
                expect_equal(chunked.receive().status, 200, "the status of a chunked post")
                chunked.send(encode_request("GET", f"{path}?wait=10", fields={"If-None-Match": tag}))
                tag = chunked.receive().fields["etag"]  # the post has changed it
                chunked.send(encode_request("GET", f"{path}?wait=10", fields={"If-None-Match": tag}))
                answer, tag = wake(chunked)
                if answer.closes:
                    expect(ends(chunked), "the connection was not closed as announced")
                    break
        with server.client(timeout=5) as slow:
            for byte in encode_request("GET", f"{path}?wait=10", fields={"If-None-Match": tag}):
                slow.send(bytes([byte]))
                time.sleep(0.001)
            answer, tag = wake(slow)
            expect(not answer.closes, "the connection of a client that sends byte by byte was closed")
            expect_equal(slow.get(path).status, 200, "its next request")
        for target, fields in ((f"{path}?wait=10", {"If_None_Match": tag}), ("/v1/changes?since=now", {"Accept": EVENTS})):
            half = begin(server, target, **fields)
            parked(server, client, 1)
            half.socket.shutdown(socket.SHUT_WR)
            wait_until(lambda: server.metric(client, "waiters") == 0, "a half-closed client to be noticed", 5)
            half.socket.settimeout(5)
            text = b""
            while data := half.socket.recv(1 << 16):
                text += data
            # What it is owed, or nothing; no half of an answer.
            parsed = parse_answer(text) if fields.get("Accept") is None and text else None
            expect(parsed is None or parsed[0].status in (200, 304), "a half-closed client was answered", text)
            expect(not text or text.startswith(b"HTTP/1.1 ") and b"\r\n\r\n" in text, "a half-closed client was told", text)
            half.close()
        wait_until(lambda: server.metric(client, "connections") == 1, "all connections to be given up", 5)


def read_slowly(workspace):
    """A large answer to a wait reaches a client that reads it bit by bit; one that reads nothing is given up in time."""
    server = workspace.server(data="none")
    with await_large_answer(server) as patient:
        seconds = read_bit_by_bit(patient)
        expect_equal(patient.get("/v1/state/counter").status, 200, "the next request on the connection")
    server = workspace.server(data="none", idle_timeout_seconds=1)
    with await_large_answer(server) as slow, await_large_answer(server) as dead:
        read_bit_by_bit(slow)
        slow.close()

        def is_alone():
            with server.client() as client:
                return server.metric(client, "connections") == 1

        wait_until(is_alone, "a client that reads nothing to be given up", 4)
        dead.socket.settimeout(5)
        text = b""
        try:
            while data := dead.socket.recv(1 << 18):
                text += data
        except ConnectionResetError:
            pass
        expect(parse_answer(text) is None, "the whole answer was kept for a client that did not read")
    return f"5.6 MB within {seconds:.1f} s"


def await_large_answer(server):
    """A client that is being sent 5.6 MB, which it has waited for, and that has little room for it."""
    with server.client() as client:
        first = len(client.get("/v1/state/tasks/ids").json)
        waiter = StalledClient(server.port)
        tag = client.get("/v1/state/tasks").fields["etag"]
        waiter.send(encode_request("GET", "/v1/state/tasks?wait=10", fields={"If-None-Match": tag}))
        parked(server, client, 1)
        client.commit(json.dumps([
            {"type": "tasks/add", "payload": {"id": first + number, "title": "x" * 8000}} for number in range(700)]).encode())
        waiter.wanted = client.get("/v1/state/tasks")
        return waiter


def read_bit_by_bit(client):
    """Reads what was waited for, with breaks; returns how long it took."""
    begun, reads = time.monotonic(), 0
    while not (parsed := parse_answer(client.buffer)):
        client.buffer += client.socket.recv(16 << 10)
        reads += 1
        time.sleep(0 if reads % 10 else 0.05)
    answer, size = parsed
    del client.buffer[:size]
    expect_equal((answer.status, answer.body == client.wanted.body), (200, True), "status, and whether it came whole")
    seconds = time.monotonic() - begun
    expect(seconds > 1.2, f"NOT CHECKED: the answer was read within {seconds:.2f} s")
    return seconds


class StalledClient(Client):
    """A client that has little room for what it is sent."""

    def __init__(self, port):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 10)
        self.socket.settimeout(20)
        self.socket.connect((HOST, port))
        self.buffer = bytearray()


class Conversation:
    """One connection after another on which anything may follow anything; what is answered is known beforehand."""

    def __init__(self, server, chance):
        self.server, self.chance = server, chance
        self.client, self.other = server.client(timeout=10), server.client(timeout=10)
        self.value = 0
        self.closed = 0

    def step(self):
        """Does something at random; returns what it was."""
        kind = self.chance.choice(
            ["read", "post", "chunks", "woken", "woken", "told", "timeout", "until", "ahead", "never", "cascade", "head", "missing",
             "pair", "behind"])
        getattr(self, kind)()
        return kind

    def send(self, data):
        """Sends a request whole or in pieces."""
        if self.chance.random() < 0.3:
            middle = self.chance.randrange(1, len(data))
            self.client.send(data[:middle])
            time.sleep(self.chance.choice((0, 0.001)))
            data = data[middle:]
        self.client.send(data)

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
        self.send(b"POST /v1/actions HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\n5\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (body[:5], len(body) - 5, body[5:]))
        self.value += 1
        self.had_chunks = True
        expect_equal(self.receive().json["version"], self.value, "the version of a receipt")

    def woken(self):
        self.send(self.get("?wait=10", self.known()))
        self.commit()
        self.judge(self.receive())

    def told(self):
        head = self.other.get("/v1").json["cursor"]
        self.send(encode_request("GET", f"/v1/changes?since={head}&wait=10"))
        self.commit()
        expect_equal([change["version"] for change in self.receive().json["changes"]], [self.value], "the commits told")

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


def interleavings(workspace):
    """200 random conversations of fifteen kinds of requests, waits among them, are answered as they should be."""
    server = workspace.server(data="none")
    closed = 0
    value = 0
    for number in range(200):
        seed = f"{workspace.seed}/{number}"
        conversation = Conversation(server, random.Random(seed))
        conversation.value = value
        steps = []
        try:
            for _ in range(10):
                steps.append(conversation.step())
        except (Failure, ConnectionLost, KeyError, TypeError, ValueError) as fault:
            raise Failure(f"conversation {number} of seed {workspace.seed}, after {steps}: {type(fault).__name__}: {fault}") from None
        value = conversation.value
        closed += conversation.closed
        conversation.client.close()
        conversation.other.close()
    return f"{value} commits; {closed} connections were closed behind something pipelined or chunked"
