"""Views with parameters: what they are computed for, beside each other, in waits and streams, and when they take long."""

import pathlib
import random
import time

import pytest

from harness.actions import action
from harness.expectations import expect, expect_equal, lasting, paced, wait_until
from harness.messages import encode_request
from harness.server import codes, start_refusal
from harness.streams import open_stream

MODEL = pathlib.Path(__file__).parent.parent / "access/rows.js"
OWNERS = [f"o{number}" for number in range(12)]


def put(client, key, owner):
    return client.commit(action("rows/put", {"id": key, "owner": owner, "text": "x"}))


def test_each_set_of_parameters_has_its_value_now_later_and_in_the_past(workspace):
    chance = random.Random(workspace.seed)
    server = workspace.server(model=MODEL)
    with server.client() as client:
        rows, states, count = {}, {}, 80
        streams = {owner: open_stream(server, f"/v1/views/by?first=1000&owner={owner}") for owner in OWNERS}
        tag = client.get("/v1/views/by?owner=nobody").fields["etag"]
        waits = {}
        for owner in OWNERS:
            waits[owner] = server.client()
            waits[owner].send(encode_request("GET", f"/v1/views/by?owner={owner}&wait=20", fields={"If-None-Match": tag}))
        for number in range(count):
            owner = chance.choice(OWNERS)
            rows[f"r{number:03}"] = owner
            version = put(client, f"r{number:03}", owner)["version"]
            states[version] = dict(rows)
            if owner in waits:
                expect_equal(waits.pop(owner).receive().json, [f"r{number:03}"], f"the first row of {owner}")
            first = chance.randint(0, 5)
            both = [client.get(f"/v1/views/by?{query}") for query in (f"owner={owner}&first={first}", f"first={first}.0&owner={owner}")]
            own = [key for key, each in rows.items() if each == owner]
            expect_equal([each.json for each in both], [own[:first]] * 2, "a view with two parameters")
            expect_equal(both[0].fields["etag"], both[1].fields["etag"], "their tags")
        for version, then in states.items():
            owner = chance.choice(OWNERS)
            past = client.get(f"/v1/views/by?owner={owner}&version={version}").json
            expect_equal(past, [key for key, each in then.items() if each == owner], f"the view at {version}")
        for owner, stream in streams.items():
            own = [key for key, each in rows.items() if each == owner]
            events = stream.until(lambda event: event.json == own)
            for before, after in zip(events, events[1:]):
                expect(after.json[: len(before.json)] == before.json, "an older value came later:", before, after)


@pytest.mark.parametrize(
    "query, name, says",
    [
        ("", "owner", "a text"),
        ("first=2", "owner", "a text"),
        ("owner=a&first=x", "first", "a whole number"),
        ("owner=a&first=-1", "first", "0"),
        ("owner=aaaaaaaaaaaaaaaaaaaaaaaaaaa", "owner", "20"),
    ],
)
def test_what_does_not_fit_is_named(workspace, query, name, says):
    with workspace.server(model=MODEL, data="none").client() as client:
        answer = client.get(f"/v1/views/by?{query}")
        expect_equal((codes(answer), answer.json["parameter"]), ((400, "bad-parameter"), name), "the problem")
        expect(name in answer.json["detail"] and says in answer.json["detail"], answer.json["detail"])
        expect_equal(codes(client.get(f"/v1/views/by?{query}&ownr=a")), (400, "unknown-parameter"), "a mistyped name")


def test_a_name_of_the_contract_is_refused_at_the_start_with_a_sentence(workspace):
    path = pathlib.Path(workspace.path("model.js"))
    text = MODEL.read_text() + "view('odd', (state, { wait }) => wait, { parameters: { type: 'object', properties: { wait: { type: 'string' } } } });"
    path.write_text(text)
    start_refusal(workspace, "none", "has a parameter \"wait\"", model=path)


def test_a_view_that_takes_long_keeps_nobody_else_waiting(workspace):
    server = workspace.server(model=MODEL, model_milliseconds_max=1000, data="none")
    slow = "/v1/views/slow?milliseconds="
    with server.client() as client:
        put(client, "a", "ann")
        waits = []
        for number in range(3000, 3006):
            waits.append(server.client(timeout=60))
            waits[-1].send(encode_request("GET", f"{slow}{number}&wait=50", fields={"If-None-Match": '"x"'}))
        times = []
        for number in paced(lasting(3), 0.02):
            begun = time.monotonic()
            put(client, f"b{number}", "ben")
            client.get("/v1/state/rows/a")
            times.append(time.monotonic() - begun)
        times.sort()
        expect(times[len(times) // 2] < 0.1, f"an action and a read take {times[len(times) // 2]:.3f} s beside slow views")
        for wait in waits:
            expect_equal(wait.receive().status, 200, "the answer of a slow view")


def test_no_more_views_are_watched_than_may_be(workspace):
    server = workspace.server(model=MODEL, data="none", views_watched_max=2)
    with server.client() as client:
        tag = client.get("/v1/views/by?owner=a").fields["etag"]
        clients = []

        def wait(owner):
            clients.append(server.client())
            clients[-1].send(encode_request("GET", f"/v1/views/by?owner={owner}&wait=20", fields={"If-None-Match": tag}))
            return clients[-1]

        for owner in ("a", "b", "a"):
            wait(owner)
        wait_until(lambda: server.metric(client, "waiters") == 3, "three waits")
        refused = wait("d").receive()
        expect_equal((codes(refused), refused.fields["retry-after"]), ((503, "too-many-views"), "5"), "a third view")
        expect_equal(client.get("/v1/views/by?owner=d").json, [], "a read without a wait")
        expect_equal(client.get("/v1").json["limits"]["views_watched_max"], 2, "the limit")
        clients[1].close()
        wait_until(lambda: server.metric(client, "waiters") == 2, "one wait less")
        wait("d")
        wait_until(lambda: server.metric(client, "waiters") == 3, "another view")
