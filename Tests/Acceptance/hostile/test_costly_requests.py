"""One request that is meant to cost much, sent again and again, beside a quiet client of another address.

What a single action, a view or a fork may cost is bounded, so that the quiet client's commits and reads take at most
100 ms, or five times as long as before, for 99 of 100.
"""

import json
import socket
import time

import pytest
from harness.actions import action
from harness.client import Client
from harness.expectations import expect, expect_equal, wait_until
from harness.hostile.attacks import bombs, bulk, floods, post
from harness.messages import HOST, encode_request
from harness.quiet import HOSTILE_HOST, PERIOD, PERIOD_SHORT_FORM, Line, get
from harness.siege import SECONDS_BOUND, SECONDS_BOUND_SHORT, judge_siege, siege

MODEL = """
const s = createSlice({ name: 's', initialState: { v: 0, t: '' }, reducers: {
  inc(state) { state.v++; },
  slow(state, action) { let x = 0; for (let i = 0; i < action.payload.n; i++) x += i % 7; state.v += x > 0 ? 1 : 0; },
  text(state, action) { state.t = 'xy'.repeat(action.payload.n); },
} });
view('slow', (state) => { let x = 0; for (let i = 0; i < 4e7; i++) x += i; return x + state.s.v; }, { reads: ['s'] });
"""


def model_of(workspace):
    path = workspace.path("model.js")
    with open(path, "w") as file:
        file.write(MODEL)
    return path


def moves(count):
    return [
        {"op": "move", "from": "/o" if number % 2 == 0 else "/p", "path": "/p" if number % 2 == 0 else "/o"}
        for number in range(count)
    ]


def patch(operations):
    return post(action("document/patch", {"patch": operations}))


LARGE = {f"k{number}": 1 for number in range(100_000)}

DOCUMENT = {
    "moves of an object of 100,000 members": lambda: patch(moves(1000)),
    "moves into a short object": lambda: patch(
        [
            {"op": "move", "from": ["/o", "/s/o"][number % 2], "path": ["/s/o", "/o"][number % 2]}
            for number in range(1000)
        ]
    ),
    "tests of an object of 100,000 members": lambda: patch([{"op": "test", "path": "/o", "value": LARGE}]),
    "a merge of 300,000 members": lambda: post(
        action("document/merge", {"path": "/m", "value": {f"k{number}": number for number in range(300_000)}})
    ),
    "copies of copies": lambda: patch([{"op": "copy", "from": "/o", "path": f"/o/c{number}"} for number in range(60)]),
}


def beside(workspace, server, attack, request, part, is_long):
    """Runs an attack beside commits, reads and probes; returns the figures."""
    period = PERIOD if is_long else PERIOD_SHORT_FORM
    lines = [
        Line("POST", request, period=period),
        get("GET", part, period=period),
        get("GET on a new connection", "/livez", is_fresh=True, period=8 * PERIOD),
    ]
    bound = SECONDS_BOUND if is_long else SECONDS_BOUND_SHORT
    return judge_siege(siege(workspace, server, attack, 10 if is_long else 2, lines, seconds_bound=bound))


@pytest.mark.alone
@pytest.mark.long_form
@pytest.mark.parametrize("kind", DOCUMENT)
def test_a_costly_change_of_a_document_is_refused_at_once(workspace, figures, request, kind):
    server = workspace.server(domain="document", data="none")
    with server.client() as client:
        for path, value in [("/o", LARGE), ("/s", {}), ("/m", {}), ("/n", 0)]:
            expect_equal(client.post(action("document/set", {"path": path, "value": value})).status, 200, path)
        before = client.get("/v1/state").fields["etag"]
        client.send(DOCUMENT[kind]())
        answer = client.receive("POST")
        expect_equal((answer.status, answer.json["code"]), (422, "document.too-large"), "the answer")
        expect_equal(client.get("/v1/state").fields["etag"], before, "the state behind it")
    quiet = encode_request("POST", "/v1/actions", action("document/increment", {"path": "/n"}))
    attack = bombs(DOCUMENT[kind]())
    figures(beside(workspace, server, attack, quiet, "/v1/state/n", request.config.getoption("--long")))


@pytest.mark.alone
@pytest.mark.long_form
@pytest.mark.parametrize("kind", ["actions", "places"])
def test_who_fills_the_schedule_leaves_leases_to_others(workspace, figures, request, kind):
    """The quiet client renews a lease with each commit: it is never refused, and as fast as without the attack."""
    server = workspace.server(domain="document", data="none", schedule_max=20_000)
    quiet = encode_request("POST", "/v1/actions", action("document/set", {"path": "/lease", "value": 1, "ttl": 60}))

    def lines(number):
        some = range(500 * number, 500 * number + 500)
        if kind == "places":
            return bulk([action("document/set", {"path": f"/h/{each}", "value": 1, "ttl": 1e9}) for each in some])
        far = {"at": "9999-12-31T00:00:00Z"}
        return bulk([action("document/set", {"path": "/x", "value": 1}, schedule=far) for each in some])

    figures(beside(workspace, server, bombs(lines), quiet, "/v1/state/lease", request.config.getoption("--long")))
    with server.client() as client:
        count = client.get("/v1/schedule?limit=1").json["count"]
        expect(5000 <= count <= 5001, f"the share of the hostile client, and the lease: {count}")


@pytest.mark.alone
@pytest.mark.long_form
def test_a_slow_view_holds_nobody_up(workspace, figures, request):
    server = workspace.server(model=model_of(workspace), data="none")
    quiet = encode_request("POST", "/v1/actions", action("s/inc"))
    attack = floods(encode_request("GET", "/v1/views/slow"))
    figures(beside(workspace, server, attack, quiet, "/v1/state/s", request.config.getoption("--long")))


@pytest.mark.alone
@pytest.mark.long_form
def test_forks_that_run_slow_reducers_hold_nobody_up(workspace, figures, request):
    server = workspace.server(model=model_of(workspace), data="none")
    with server.client() as client:
        client.post(action("s/inc"))
        cursor = client.get("/v1").json["cursor"]
        insertion = {"after": cursor, "action": {"type": "s/slow", "payload": {"n": 1_000_000}}}
        order = json.dumps({"insert": [insertion] * 2000}).encode()
        quiet = encode_request("POST", "/v1/actions", action("s/inc"))
        attack = floods(post(order, target="/v1/forks"))
        figures(beside(workspace, server, attack, quiet, "/v1/state/s", request.config.getoption("--long")))
        wait_until(lambda: client.get("/v1/operations").json["memory"]["usedBytes"] == 0, "the memory is given back")


def test_a_fork_ends_with_its_client_and_counts_what_is_inserted(workspace):
    with workspace.server(domain="document", data="none").client() as client:
        client.post(action("document/set", {"path": "/a", "value": "x" * 1_000_000}))
        cursor = client.get("/v1").json["cursor"]
        copies = [
            {"after": cursor, "action": action_of({"op": "copy", "from": "/a", "path": f"/b{number}"})}
            for number in range(1500)
        ]
        answer = client.request("POST", "/v1/forks", json.dumps({"insert": copies}).encode(), JSON)
        expect_equal((answer.status, answer.json["code"]), (503, "memory-exhausted"), "a fork of 1.5 GB")
        wait_until(lambda: client.get("/v1/operations").json["memory"]["usedBytes"] == 0, "its memory is given back")

    server = workspace.server(model=model_of(workspace), data="none")
    with server.client() as client:
        client.post(action("s/inc"))
        cursor = client.get("/v1").json["cursor"]
        insertion = {"after": cursor, "action": {"type": "s/slow", "payload": {"n": 1_000_000}}}
        order = json.dumps({"insert": [insertion] * 40_000}).encode()
        with socket.create_connection((HOST, server.port), 5, (HOSTILE_HOST, 0)) as connection:
            connection.sendall(encode_request("POST", "/v1/forks", order, JSON))
            time.sleep(1)
        begun = time.monotonic()
        expect_equal(client.request("POST", "/v1/forks", b"{}", JSON).status, 201, "a fork of another client")
        expect(time.monotonic() - begun < 2, "it waits for the client that has gone")
        expect_equal(len(client.get("/v1/forks").json["forks"]), 1, "the forks")
        begun = server.cpu_seconds()
        time.sleep(1)
        expect(server.cpu_seconds() - begun < 0.3, "the fork of the client that has gone goes on")


def test_a_client_has_a_share_of_the_forks(workspace):
    server = workspace.server(forks_max=4, data="none")
    with server.client() as client:
        for _ in range(3):
            expect_equal(client.request("POST", "/v1/forks", b"{}", JSON).status, 201, "a fork within the share")
        answer = client.request("POST", "/v1/forks", b"{}", JSON)
        expect_equal((answer.status, answer.json["code"]), (429, "too-many-forks"), "one more")
        with Client(server.port, source=HOSTILE_HOST) as other:
            expect_equal(other.request("POST", "/v1/forks", b"{}", JSON).status, 201, "a fork of another client")
            answer = other.request("POST", "/v1/forks", b"{}", JSON)
            expect_equal((answer.status, answer.json["code"]), (503, "too-many-forks"), "one more than all")


def test_a_state_stays_within_its_bytes(workspace):
    with workspace.server(model=model_of(workspace), data="none", state_bytes_max=1 << 20).client() as client:
        expect_equal(client.post(action("s/text", {"n": 400_000})).status, 200, "a text of 800 kB")
        answer = client.post(action("s/text", {"n": 600_000}))
        expect_equal((answer.status, answer.json["code"]), (413, "state-too-large"), "a text of 1.2 MB")
        expect_equal(client.post(action("s/inc")).status, 200, "the action behind it")
        expect_equal(client.get("/v1/state/s/v").json, 1, "what is counted")

    data = workspace.path("data")
    server = workspace.server(data=data)
    with server.client() as client:
        for number in range(4):
            client.post(action("tasks/add", {"id": number, "title": "x" * 400_000}))
    server.stop()
    with workspace.server(data=data, state_bytes_max=1 << 20).client() as client:
        answer = client.post(action("tasks/add", {"id": 9, "title": "x"}))
        expect_equal((answer.status, answer.json["code"]), (413, "state-too-large"), "a task more")
        expect_equal(client.post(action("tasks/remove", {"id": 1})).status, 200, "a task less")
        expect_equal(client.post(action("tasks/remove", {"id": 2})).status, 200, "another one less")
        expect_equal(client.post(action("tasks/add", {"id": 9, "title": "x"})).status, 200, "a task more, within the limit")


JSON = {"Content-Type": "application/json"}


def action_of(operation):
    return {"type": "document/patch", "payload": {"patch": [operation]}}
