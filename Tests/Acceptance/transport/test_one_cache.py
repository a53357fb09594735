"""Random requests of twenty clients, each answered as by a server that has never read such a head.

Two servers get the same requests in lockstep. One remembers heads and what handlers have kept with them; to the other
each request comes with a field of its own, so that it finds no head in its cache, nor the fields of one.
"""

import collections
import gzip
import os
import random
import re
import socket
import subprocess
import time

import pytest

from harness.expectations import Failure, expect_equal, wait_until
from harness.tokens import bearer, make_token, token_names

CLIENTS, CONNECTIONS_MAX = 20, 24
HOSTS = ["localhost"] * 40 + ["127.0.0.1", "state.example", "STATE.example", "evil.example", "localhost:1", ""]
ORIGINS = ["https://app.example", "https://evil.example", "null"]
TRACES = [f"00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333{end}" for end in ("1-01", "2-00", "")]
CODINGS = ["gzip", "zstd", "gzip;q=0, zstd;q=0.5", "identity", "*", "br"]
PARTS = ["", "/counter", "/counter/value", "/tasks", "/tasks/entities", "/session", "/canvas", "/nosuch", "/counter/"]
PATHS = ["", "/views", "/views/count", "/views/tasks.open", "/views/nosuch", "/actions", "/stores", "/streams", "/nosuch"]
PATHS += ["/stores/counter/state", "/stores/tasks/state/entities", "/stores/nosuch/state", "/state/%63ounter"]
QUERIES = ["pretty", "wait=0", "version=1", "version=99999999", "as=keyed", "unknown=1", "at-least=EPOCH.1", "a&a"]
GRANTS = {
    "root": ["--all"],
    "reader": ["--read", "/tasks"],
    "counter": ["--read", "/counter", "--dispatch", "counter/*"],
    "writer": ["--dispatch", "tasks/*", "--read", "/tasks/entities/3"],
    "views": ["--read", "view:count", "--read", "store:tasks"],
}
# What differs between two servers all the same.
OWN = re.compile(
    rb'"(requestId|time)": ?"[^"]*"|X-Request-Id: [^\r]*|\r\nDate: [^\r]*|Content-Length: [0-9]+', re.IGNORECASE
)


class Side:
    """One of the two servers and the connections to it."""

    def __init__(self, server):
        self.server, self.sockets, self.rest, self.epoch = server, {}, {}, None

    def connect(self, client):
        self.sockets[client] = socket.create_connection(("127.0.0.1", self.server.port), 20)
        self.sockets[client].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest[client] = b""

    def send(self, client, data):
        if client not in self.sockets:
            self.connect(client)
        self.sockets[client].sendall(data)

    def answer(self, client, is_head):
        """The next answer: the bytes of its head and of its body; None where the connection has ended."""
        buffer, connection = self.rest[client], self.sockets[client]
        while (end := buffer.find(b"\r\n\r\n")) < 0:
            if not (part := receive(connection)):
                return None
            buffer += part
        head, length = buffer[:end], 0
        if head[9:12] == b"100":
            self.rest[client] = buffer[end + 4 :]
            return self.answer(client, is_head)
        if (at := head.find(b"Content-Length: ")) >= 0 and not is_head and head[9:12] not in (b"204", b"304"):
            length = int(head[at + 16 :].partition(b"\r")[0])
        while len(buffer) < end + 4 + length:
            if not (part := receive(connection)):
                return None
            buffer += part
        self.rest[client] = buffer[end + 4 + length :]
        return head, buffer[end + 4 : end + 4 + length]

    def close(self, client):
        if client in self.sockets:
            self.sockets.pop(client).close()


def receive(connection):
    try:
        return connection.recv(1 << 18)
    except ConnectionResetError:
        return b""


class Chance:
    """What clients send, by a seed."""

    def __init__(self, seed, tokens):
        self.random, self.tokens, self.revoked, self.etags = random.Random(seed), tokens, [], ["x"]
        self.number, self.former = 0, []

    def of(self, probability):
        return self.random.random() < probability

    def request(self):
        """A request, most often a former one of any client: a head is remembered when it has come twice."""
        if len(self.former) < 400:
            self.former.append(self.new())
            return self.former[-1]
        place = self.random.randrange(len(self.former))
        if self.of(0.3):
            self.former[place] = self.new()
        return self.former[place]

    def new(self):
        """Method, target, fields and body."""
        pick = self.random.choice
        others = pick(["PUT", "DELETE", "BREW", "get"])
        method = self.random.choices(["GET", "HEAD", "POST", "OPTIONS", others], [66, 8, 20, 3, 3])[0]
        fields = [("Host", pick(HOSTS))] if self.of(0.995) else []
        body = b""
        if method == "POST":
            target, body = self.dispatch(fields)
        elif self.of(0.6):
            target = "/v1/state" + (pick(PARTS) if self.of(0.4) else f"/tasks/entities/{self.random.randrange(60)}")
        else:
            target = "/v1" + pick(PATHS) if self.of(0.9) else pick(["/livez", "/readyz", "/"])
        if method != "POST" and self.of(0.1):
            target += "?" + pick(QUERIES)
        self.ask(fields)
        self.random.shuffle(fields)
        if self.of(0.1):
            fields = [(name.upper() if self.of(0.5) else name.lower(), value) for name, value in fields]
        return method, target, fields, body

    def ask(self, fields):
        """The fields that any request can have."""
        pick, token = self.random.choice, self.tokens[self.random.choice(sorted(self.tokens))]
        if self.of(0.97):
            known = [f"Bearer {token}", f"bearer {token}"]
            unknown = ["Basic", "Bearer wrong", f"Bearer {pick(self.revoked or ['none'])}"]
            fields.append(("Authorization", pick(known) if self.of(0.99) else pick(unknown)))
        for name, values, probability in [
            ("Origin", ORIGINS, 0.1),
            ("traceparent", TRACES, 0.15),
            ("Accept-Encoding", CODINGS, 0.15),
            ("X-Request-Id", ["a", "b", "c d"], 0.15),
            ("Accept", ["application/json", "*/*", "text/html"], 0.1),
            ("Prefer", ["return=minimal", "return=representation", "wait=0"], 0.1),
            ("Connection", ["close", "keep-alive"], 0.02),
            ("Expect", ["100-continue"], 0.005),
        ]:
            if self.of(probability):
                fields.append((name, pick(values)))
        if self.of(0.3):
            tag = pick(self.etags)
            fields.append(("If-None-Match", pick([f'"{tag}"', f'"{tag}"', f'W/"{tag}"', f'"y", "{tag}"', "*", "bad"])))
        if self.of(0.01):
            # Around the longest head that is remembered, and far above it.
            fields.append(("Cookie", "c" * pick([600, 700, 800, 900, 2000, 6000])))

    def dispatch(self, fields):
        """A POST: its target and its body."""
        pick, of_three = self.random.choice, self.random.randrange(3)
        add = '{"type":"counter/add","payload":{"amount":%d}}' % of_three
        task = '{"type":"tasks/%s","payload":{"id":%d,"title":"%d"}}'
        tasks = [task % (kind, self.random.randrange(50), of_three) for kind in ("add", "rename")]
        bodies = [add, add, *tasks, *tasks, f"[{add},{tasks[0]}]", '[{"type":"nosuch"}]', '{"type":', ""]
        body = pick(bodies).encode()
        fields.append(("Content-Length", str(len(body))))
        if self.of(0.98):
            fields.append(("Content-Type", pick(["application/json"] * 12 + ["text/plain", "application/x-ndjson"])))
        if self.of(0.15):
            fields.append(("Idempotency-Key", f'"k{self.random.randrange(30)}"'))
        if self.of(0.1):
            fields.append(("If-Match", pick([f'"{pick(self.etags)}"', "*"])))
        return "/v1/actions" + pick([""] * 12 + ["?dry-run", "?path=/counter", "?nosuch"]), body


def encode(request, version, further=""):
    method, target, fields, body = request
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    return f"{method} {target} HTTP/1.{version}\r\n{further}{lines}\r\n".encode() + body


@pytest.mark.rounds(20_000, long=1_000_000)
@pytest.mark.seconds(120, long=3000)
def test_a_remembered_head_is_answered_as_one_that_was_never_read(workspace, figures, rounds):
    data = workspace.path("access")
    tokens = {name: make_token(workspace, data, name, *given) for name, given in GRANTS.items()}
    settings = {"tokens": os.path.join(data, "tokens.json"), "access": "tokens", "connections_max": CONNECTIONS_MAX}
    settings |= {"allowed_hosts": "localhost,127.0.0.1,state.example", "allowed_origins": "https://app.example"}
    sides = tested, fresh = [Side(workspace.server(data="none", **settings)) for _ in range(2)]
    for side in sides:
        with side.server.client() as client:
            side.epoch = client.request("GET", "/v1", fields=bearer(tokens["root"])).json["epoch"].encode()
    chance = Chance(workspace.seed, tokens)
    counts, done, changes = collections.Counter(), 0, 0
    while done < rounds:
        what = f"request {done} of seed {workspace.seed}"
        if chance.of(0.0005):
            beyond_capacity(chance, sides, what)
        client = chance.random.randrange(CLIENTS)
        requests = [chance.request() for _ in range(1 if chance.of(0.9) else chance.random.randrange(2, 6))]
        exchange(chance, sides, client, requests, what, counts)
        done += len(requests)
        if done // 5000 > changes:
            changes = done // 5000
            change(workspace, data, chance, changes, sides)
    figures(f"{done} requests: " + ", ".join(f"{count} times {status}" for status, count in sorted(counts.items())))


def exchange(chance, sides, client, requests, what, counts):
    """Sends requests, one behind the other, on the connection of a client to each side, and judges the answers."""
    minor = 1 if chance.of(0.97) else 0
    for side in sides:
        text = b""
        for request in requests:
            chance.number += 1
            text += encode(request, minor, f"X-Number: {chance.number}\r\n" if side is sides[1] else "")
        side.send(client, text.replace(b"EPOCH", side.epoch))
    for request in requests:
        pair = [side.answer(client, request[0] == "HEAD") for side in sides]
        judge(request, pair, *sides, what)
        if pair[0] is None:
            break
        head = pair[0][0]
        counts[head[9:12].decode()] += 1
        if (at := head.find(b'ETag: "')) >= 0 and chance.of(0.3):
            chance.etags = [head[at + 7 :].partition(b'"')[0].decode(), *chance.etags[:7]]
        if b"Connection: close" in head:
            break
    else:
        return
    for side in sides:
        side.close(client)


def beyond_capacity(chance, sides, what):
    """More connections than there are places: those without one are answered to probes, and to nothing else."""
    time.sleep(0.05)
    more = range(CLIENTS, CLIENTS + 8)
    for client in more:
        for side in sides:
            side.connect(client)
    for client in more:
        target = chance.random.choice(["/livez", "/readyz", "/v1/state/counter"])
        fields = [("Host", "localhost"), ("Authorization", f"Bearer {chance.tokens['root']}")]
        request = ("GET", target, fields, b"")
        exchange(chance, sides, client, [request], what + ", beyond capacity", collections.Counter())
        for side in sides:
            side.close(client)
    time.sleep(0.05)


def judge(request, pair, tested, fresh, what):
    if any(answer and answer[0].startswith(b"HTTP/1.1 429") for answer in pair):
        # Wrong credentials of one address have a limit by the time, which each server notices by itself.
        return
    if all(answer and answer[0].startswith(b"HTTP/1.1 431") for answer in pair):
        # Whether the end of the head has come when it is refused, its pieces decide.
        return
    if None in pair:
        expect_equal(pair[0] is None, pair[1] is None, f"{what}, {request}: the end of the connection")
        return
    found, wanted = (OWN.sub(b"", b"\r\n\r\n".join(decoded(*answer))) for answer in pair)
    found = found.replace(tested.epoch, fresh.epoch)
    if found != wanted:
        raise Failure(f"{what}, {request}, is answered\n{found[:900]}\nand by a server without it\n{wanted[:900]}")


def decoded(head, body):
    """An answer with its body as it was before it was compressed; one of zstd has none."""
    if b"Content-Encoding: gzip" in head and body:
        return head, gzip.decompress(body)
    return head, b"" if b"Content-Encoding: zstd" in head else body


def change(workspace, data, chance, number, sides):
    """Revokes a token, and makes one with the same grant; both servers know it within a second or two."""
    name = chance.random.choice(sorted(GRANTS))
    [identity] = [each for subject, each in token_names(data).items() if subject.partition("-")[0] == name]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("STOREKEEPER_")}
    command = [workspace.binary, "token", "revoke", "--data", data, identity]
    subprocess.run(command, check=True, capture_output=True, env=environment, timeout=20)
    chance.revoked = [chance.tokens[name], *chance.revoked[:3]]
    chance.tokens[name] = make_token(workspace, data, f"{name}-{number}", *GRANTS[name])
    for side in sides:
        with side.server.client() as client:
            wait_until(lambda: client.request("GET", "/v1", fields=bearer(chance.tokens[name])).status == 200,
                       "the server knows a new token", 10)
