"""A subject, a key and an ID are what their bytes say, and an ID that may not be seen is as unknown."""

import json

import pytest

from harness.expectations import expect
from harness.tokens import bearer, make_token

# Two spellings that Unicode, and Swift, take for one.
SPELLINGS = ["caf\u00e9", "cafe\u0301"]


def add(amount, **members):
    return {"type": "counter/add", "payload": {"amount": amount}} | members


def encoded(value):
    return json.dumps(value).encode()


def test_two_spellings_of_a_subject_are_two_clients(workspace):
    data = workspace.path("data")
    grant = ["--read", "actions:counter/*", "--dispatch", "counter/*"]
    tokens = [make_token(workspace, data, subject, *grant) for subject in SPELLINGS]
    server = workspace.server(data=data)
    for again in (False, True):
        with server.client() as client:
            for number, token in enumerate(tokens, 1):
                body = encoded(add(7, id="order-1"))
                answer = client.post(body, **bearer(token), **{"Idempotency-Key": "key-1"})
                expect(answer.status == 200 and answer.json["version"] == number, f"{number}: {answer}")
                expect(("idempotency-replayed" in answer.fields) == again, f"{answer}")
            for number, token in enumerate(tokens, 1):
                answer = client.get("/v1/actions/order-1", **bearer(token))
                expect(answer.json["version"] == number, f"{number} finds {answer}")
                expect(answer.json["by"].encode() == SPELLINGS[number - 1].encode(), f"{answer}")
                seen = client.get("/v1/changes?since=oldest", **bearer(token)).json["changes"]
                expect([change["action"] is not None for change in seen] == [number == 1, number == 2], f"{seen}")
        server.stop()
        server = workspace.server(data=data)


def test_no_id_takes_the_place_of_another_subjects(workspace):
    data = workspace.path("data")
    grant = ["--read", "actions:counter/*", "--dispatch", "counter/*"]
    victim, attacker = (make_token(workspace, data, subject, *grant) for subject in ("a", "b"))
    server = workspace.server(data=data)
    with server.client() as client:
        first = client.post(encoded(add(1, id="order-1")), **bearer(victim)).json
        for name in ("a\u0000order-1", "x\ny", "\u007f", "a\u0085b", "\u001f"):
            for body in (encoded(add(2, id=name)), encoded([add(2, id=name)]), encoded(add(2, id=name, meta={}))):
                answer = client.post(body, **bearer(attacker))
                expect((answer.status, answer.json["code"]) == (422, "invalid-action"), f"{name!r}: {answer}")
                expect("control characters" in answer.json["detail"], f"{answer}")
        expect(client.get("/v1/actions/order-1", **bearer(victim)).json["version"] == first["version"], "another's")
        for name in ("caf\u00e9", "a b", "\u00a0", "\u4e2d"):
            expect(client.post(encoded(add(1, id=name)), **bearer(attacker)).status == 200, f"{name!r} is refused")


@pytest.fixture
def mixed(workspace):
    """A server, and tokens of subjects that see and dispatch some of two types."""
    data = workspace.path("data")
    both = ["--dispatch", "counter/*", "--dispatch", "tasks/*"]
    tokens = {
        "root": make_token(workspace, data, "root", "--all"),
        "sees one": make_token(workspace, data, "one", "--read", "actions:counter/*", "--others", *both),
        "sees none": make_token(workspace, data, "none", *both),
    }
    return workspace.server(data=data), tokens


def batch(prefix):
    task = {"type": "tasks/add", "payload": {"id": ord(prefix), "title": "t"}, "id": f"{prefix}-hidden"}
    return encoded([add(1, id=f"{prefix}-seen"), task])


def test_the_id_of_a_hidden_action_of_an_array_is_as_unknown(mixed):
    server, tokens = mixed
    with server.client() as client:
        made = client.post(batch("x"), **bearer(tokens["root"])).json
        answer = client.get("/v1/actions/x-seen", **bearer(tokens["sees one"]))
        expect(answer.json["version"] == made["version"], f"{answer}")
        expect([action["id"] for action in answer.json["action"]] == ["x-seen"], f"{answer}")
        hidden, nowhere = (
            client.get(f"/v1/actions/{name}", **bearer(tokens["sees one"]), **{"X-Request-ID": "x"})
            for name in ("x-hidden", "x-nowhere")
        )
        expect((hidden.status, hidden.body) == (404, nowhere.body), f"{hidden} {nowhere}")
        answer = client.get("/v1/actions/x-hidden", **bearer(tokens["root"]))
        expect(len(answer.json["action"]) == 2, f"{answer}")


def test_who_may_dispatch_and_not_see_finds_the_receipt_of_its_own_commit(mixed):
    server, tokens = mixed
    with server.client() as client:
        for who, prefix in (("sees none", "y"), ("sees one", "z")):
            made = client.post(batch(prefix), **bearer(tokens[who])).json
            answer = client.get(f"/v1/actions/{prefix}-hidden", **bearer(tokens[who]))
            expect((answer.status, answer.json) == (200, made), f"{who}: {answer} is not {made}")
        single = client.post(encoded(add(1, id="single")), **bearer(tokens["sees none"])).json
        answer = client.get("/v1/actions/single", **bearer(tokens["sees none"]))
        expect((answer.status, answer.json) == (200, single), f"{answer} is not {single}")
        for who in ("sees one", "sees none"):
            other = "y" if who == "sees one" else "z"
            answer = client.get(f"/v1/actions/{other}-hidden", **bearer(tokens[who]))
            expect(answer.status == 404, f"{who} finds the commit of another: {answer}")
