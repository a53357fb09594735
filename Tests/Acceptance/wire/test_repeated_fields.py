"""A client that repeats its fields and not its targets gets what it would get on a connection of its own."""

import itertools
import random
import subprocess

from harness.actions import add
from harness.client import Client
from harness.expectations import expect_equal, wait_until
from harness.tokens import bearer, make_token, token_names

TARGETS = [
    "/v1/state/counter",
    "/v1/state/counter/value",
    "/v1/state/counter/value/",
    "/v1/state/counter/none",
    "/v1/state/counter?pretty",
    "/v1/state/counter?as=keyed",
    "/v1/state/counter?nothing=1",
    "/v1/state/counter?version=0",
    "/v1/state/counter#value",
    "/v1/state/",
    "/v1/state//",
    "/v1/state//counter",
    "/v1/state",
    "/v1/state/%63ounter",
    "/v1/state/count%65r/value",
    "/v1/state/counter%2Fvalue",
    "/v1/state/counter%zz",
    "/v1/state/counter~1value",
    "/v1/state/counter~value",
    "/v1/state/coun+er",
    "/v1/state/Counter",
    "/v1/state/tasks",
    "/v1/state/tasks/ids",
    "/v1/state/tasks/ids/0",
    "/v1/state/tasks/entities/1",
    "/v1/state/tasks/entities/2",
    "/v1/state/tasks/entities/2/title",
    "/v1/state/canvas/objects",
    "/v1/state/canvas/objects/",
    "/v1/state/canvas/objects/0",
    "/v1/state/canvas/objects/00",
    "/v1/state/canvas/objects/1",
    "/v1/state/canvas/objects/1/",
    "/v1/state/canvas/objects/1/frame",
    "/v1/state/canvas/objects/1/frame/x",
    "/v1/state/canvas/objects/7?pretty",
    "/v1/state/canvas/objects/7",
    "/v1/state/canvas/objects/01",
    "/v1/state/canvas/objects/-1",
    "/v1/state/" + "a/" * 1000 + "b",
    "/v1/state/" + "a/" * 900 + "b",
    "/v1/states/counter",
    "/v1/views",
    "/v1/stores/canvas/state/objects",
    "/v1/stores/counter/state/value",
    "/v1/changes?since=0",
    "/v1/",
    "/v1",
    "/livez",
    "/v2/state/counter",
    "http://127.0.0.1/v1/state/counter",
    "http://evil.example/v1/state/counter",
]
FIELDS = [
    {},
    {"Accept": "application/json"},
    {"Accept-Encoding": "gzip"},
    {"If-None-Match": '"none"'},
    {"If-None-Match": "*"},
    {"If-None-Match": "none"},
    {"Prefer": "wait=0"},
    {"Host": "evil.example"},
    {"X-Request-ID": "mine"},
]


def told(answer):
    """What an answer says, without what names its request and the time."""
    kept = {name: value for name, value in answer.fields.items() if name != "date"}
    body = answer.body
    if answer.status >= 400:
        body = {name: value for name, value in answer.json.items() if name != "requestId"}
        kept.pop("content-length", None)
    return answer.status, kept, body


def compare(port, own, seed, rounds):
    """Asks for all targets on some connections, in another order each time, and compares with a connection for each."""
    generator = random.Random(seed)
    for fields in FIELDS:
        fields = {**own, **fields}
        expected = {}
        for target in TARGETS:
            with Client(port, timeout=10) as client:
                expected[target] = told(client.request("GET", target, fields=fields))
        clients = [Client(port, timeout=10) for _ in range(2)]
        for target in (generator.choice(TARGETS) for _ in range(rounds)):
            place = generator.randrange(2)
            answer = clients[place].request("GET", target, fields=fields)
            expect_equal(told(answer), expected[target], f"the answer to {target[:60]} with {list(fields)}")
            if answer.fields.get("connection") == "close":
                clients[place].close()
                clients[place] = Client(port, timeout=10)
        for client in clients:
            client.close()


def test_a_connection_that_repeats_its_fields_gets_what_another_gets(workspace):
    server = workspace.server(data="none")
    with server.client() as client:
        client.commit(add(3))
        client.commit(b'{"type":"tasks/add","payload":{"id":1,"title":"one"}}')
        # So long that it is compressed for the clients that take that.
        client.commit(b'{"type":"tasks/add","payload":{"id":2,"title":"%s"}}' % (b"long " * 1000))
        frame = b'"frame":{"x":0,"y":0,"width":1,"height":1}'
        client.commit(b'{"type":"canvas/addBlock","payload":{"id":0,%s}}' % frame)
        for number in (0, 1, 7):
            client.commit(b'{"type":"canvas/addObject","payload":{"id":%d,"block":0,%s}}' % (number, frame))
        expect_equal(client.get("/v1/state/canvas/objects/7").status, 200, "the status of an object")
        expect_equal(client.get("/v1/state/tasks/entities/2").status, 200, "the status of a task")
    compare(server.port, {}, 1, 250)


def test_a_client_that_sees_a_part_sees_that_part_by_repeated_fields(workspace):
    data = workspace.path("data")
    token = make_token(workspace, data, "part", "--read", "/counter/value", "--read", "store:tasks")
    server = workspace.server(data=data)
    compare(server.port, bearer(token), 2, 100)


def test_a_revoked_token_is_not_taken_with_fields_that_came_before(workspace):
    data = workspace.path("data")
    make_token(workspace, data, "ci", "--all")
    other = make_token(workspace, data, "other", "--all")
    server = workspace.server(data=data)
    with server.client() as client:
        for number in range(6):
            answer = client.get(f"/v1/state/canvas/objects/{number}", **bearer(other))
            expect_equal(answer.status, 404, "the status of an object that is not there")
        name = token_names(data)["other"]
        subprocess.run([workspace.binary, "token", "revoke", "--data", data, name], check=True, timeout=20)
        numbers = itertools.count(6)
        status = lambda: client.get(f"/v1/state/canvas/objects/{next(numbers)}", **bearer(other)).status
        wait_until(lambda: status() == 401, "a revoked token is not taken", 2, pause=0.02)
        expect_equal(client.get("/v1/state/counter", **bearer(other)).status, 401, "the status behind the end")
