"""`--domain document`: one JSON document without a program of one's own, beside jsonpatch of PyPI."""

import contextlib
import copy
import json
import os
import pathlib
import random
import signal
import sqlite3

import jsonpatch
import jsonpointer
import pytest

from harness.actions import action
from harness.expectations import expect, expect_equal, wait_until
from harness.server import log_when_ready, start_refusal


def codes(answer):
    return answer.status, answer.json.get("code")


def merged(value, patch):
    """RFC 7396, as its section 2 says it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, new in patch.items():
        if new is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), new)
    return result


def random_value(chance, depth=3):
    kind = chance.randrange(9 if depth else 6)
    if kind < 6:
        # Python takes 1 for True.
        return [None, True, chance.randrange(2, 9), chance.random(), "x" * chance.randrange(300), "\u00e9~/\""][kind]
    if kind < 7:
        return [random_value(chance, depth - 1) for _ in range(chance.randrange(6))]
    return {chance.choice(["a", "b", "0", "7", "~/", "\u00e9"]): random_value(chance, depth - 1) for _ in range(4)}


def random_pointer(chance, document):
    tokens, value = [], document
    while chance.randrange(4):
        if isinstance(value, dict):
            token = chance.choice([*value, "a", "new"])
            value = value.get(token)
        elif isinstance(value, list):
            token = chance.choice([*map(str, range(len(value) + 1)), "-"])
            value = value[int(token)] if token.isdigit() and int(token) < len(value) else None
        else:
            break
        tokens.append(token)
    return jsonpointer.JsonPointer.from_parts(tokens).path


def random_operation(chance, document):
    name = chance.choice(["add", "add", "remove", "replace", "move", "copy", "test"])
    operation = {"op": name, "path": random_pointer(chance, document)}
    if name in ("add", "replace", "test"):
        operation["value"] = random_value(chance)
    if name in ("move", "copy"):
        operation["from"] = random_pointer(chance, document)
    return operation


def is_inside_text(document, pointer):
    """Whether a pointer goes on below a text, of which jsonpatch takes a character."""
    value = document
    for token in jsonpointer.JsonPointer(pointer).parts:
        if isinstance(value, str):
            return True
        if isinstance(value, dict):
            value = value.get(token)
        elif isinstance(value, list):
            value = value[int(token)] if token.isdigit() and int(token) < len(value) else None
    return False


def applied(document, operations):
    """What jsonpatch makes of a document, one operation after the other; None where it refuses, or should."""
    document = copy.deepcopy(document)
    for operation in operations:
        # It takes these, which the RFC does not.
        if operation["op"] == "move" and operation["path"].startswith(operation["from"] + "/"):
            return None
        if any(is_inside_text(document, operation[name]) for name in ("path", "from") if name in operation):
            return None
        try:
            document = jsonpatch.apply_patch(document, [operation])
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, KeyError, IndexError):
            return None
    return [document]


def is_disputed(operations):
    """Whether an operation names the whole document, with which jsonpatch does otherwise than the RFC."""
    return any("" in (operation["path"], operation.get("from")) for operation in operations)


@pytest.mark.rounds(600, long=20_000)
def test_random_patches_and_merges_are_those_of_jsonpatch(workspace, rounds, figures):
    chance = random.Random(workspace.seed)
    server = workspace.server(domain="document")
    document, taken, refused = {}, 0, 0
    with server.client() as client:
        for number in range(rounds):
            if number % 40 == 0 or not isinstance(document, (dict, list)):
                document = {"a": random_value(chance), "b": [random_value(chance) for _ in range(5)]}
                client.commit(action("document/set", {"path": "", "value": document}))
            if chance.randrange(4) == 0:
                patch = random_value(chance)
                client.commit(action("document/merge", {"value": patch}))
                document = merged(document, patch)
            else:
                operations = [random_operation(chance, document) for _ in range(chance.randrange(1, 4))]
                if is_disputed(operations):
                    continue
                wanted = applied(document, operations)
                answer = client.post(action("document/patch", {"patch": operations}))
                case = f"{number}: {json.dumps(operations)} on {json.dumps(document)}"
                expect((answer.status == 200) == (wanted is not None), case, answer, wanted)
                taken, refused = taken + (wanted is not None), refused + (wanted is None)
                document = wanted[0] if wanted else document
            if number % 10 == 0:
                expect_equal(client.get("/v1/state").json, document, f"the document, {number}")
    server.restart()
    with server.client() as client:
        expect_equal(client.get("/v1/state").json, document, "the document after a kill")
    figures(f"{taken} patches taken, {refused} refused")
    expect(min(taken, refused) > rounds / 20, "too few were taken, or refused:", taken, refused)


def test_a_document_is_held_to_its_schema(workspace):
    path = pathlib.Path(workspace.path("schema.json"))
    schema = {
        "type": "object", "default": {"users": {}}, "required": ["users"],
        "properties": {"users": {"additionalProperties": {"properties": {"age": {"type": "integer", "minimum": 0}}}}},
    }
    path.write_text(json.dumps(schema))
    server = workspace.server(domain="document", schema=path)
    with server.client() as client:
        expect_equal(client.get("/v1/state").json, {"users": {}}, "the first document")
        client.commit(action("document/set", {"path": "/users/ann", "value": {"age": 3}}))
        for payload in ({"path": "/users/ann/age", "by": -4}, {"path": "/users/ann/age", "by": 0.5}):
            answer = client.post(action("document/increment", payload))
            expect_equal(codes(answer), (422, "document.misfit"), "a document that would not fit")
            expect("/users/ann/age" in answer.json["detail"], answer.json)
            expect_equal(answer.json["errors"][0]["pointer"], "/payload/path", "the pointer of a sum")
        merged = client.post(action("document/merge", {"path": "/users", "value": {"bob": {"age": "x"}}}))
        expect_equal(merged.json["errors"][0]["pointer"], "/payload/value/bob/age", "the pointer of a value")
        expect_equal(codes(client.post(action("document/remove", {"path": "/users"}))), (422, "document.misfit"), "a removal")
        expect_equal(client.get("/v1/state/users/ann").json, {"age": 3}, "the document")
        paths = client.get("/v1/openapi.json").json["paths"]
        expect("minimum" in json.dumps(paths) or "minimum" in client.get("/v1/openapi.json").body.decode(), "no schema of the state")
    server.stop()
    path.write_text(json.dumps(schema | {"properties": {"users": {"maxProperties": 0}}}))
    start_refusal(workspace, server.data, "the present document does not fit the schema: at /users", domain="document", schema=path)
    path.write_text('{"type":"array"}')
    start_refusal(workspace, workspace.path("other"), "does not fit the first document", domain="document", schema=path)
    expect(not os.path.exists(workspace.path("other")), "a refused start has made a directory")


def test_a_schema_is_held_against_the_document_that_is_there(workspace):
    """A present document needs no default that fits, and a start without the schema is told."""
    path = pathlib.Path(workspace.path("schema.json"))
    server = workspace.server(domain="document")
    with server.client() as client:
        client.commit(action("document/set", {"path": "/team", "value": "red"}))
    server.stop()
    schema = {"type": "object", "required": ["team"], "properties": {"flags": {"additionalProperties": {"type": "boolean"}}}}
    path.write_text(json.dumps(schema))
    start_refusal(workspace, workspace.path("new"), "does not fit the first document: at /team", domain="document", schema=path)
    server.settings["schema"] = path
    server.start()
    expect("no schema" not in log_when_ready(server), "a warning beside a schema:", server.log_text())
    with server.client() as client:
        client.commit(action("document/set", {"path": "/team", "value": "blue"}))
        path.write_text(json.dumps(schema | {"required": ["owner"]}))
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "schema not loaded again" in server.log_text(), "a line about the schema")
        expect("model" not in server.log_text() and "first document" not in server.log_text(), server.log_text())
    server.stop()
    del server.settings["schema"]
    for _ in range(2):
        server.start()
        expect("no schema" in log_when_ready(server), "no warning of a start without the schema:", server.log_text())
        with server.client() as client:
            client.commit(action("document/set", {"path": "/flags/new", "value": 1}))
        server.stop()
    path.write_text(json.dumps(schema))
    start_refusal(
        workspace, server.data, "the present document does not fit the schema: at /flags/new: expected", domain="document",
        schema=path,
    )


def test_places_are_set_counted_and_guarded(workspace):
    server = workspace.server(domain="document")
    with server.client() as client:
        client.commit(action("document/set", {"path": "/users/ann", "value": {"age": 30}}))
        client.commit(action("document/increment", {"path": "/users/ann/age"}))
        client.commit(action("document/increment", {"path": "/hits", "by": 2.5}))
        expect_equal(client.get("/v1/state").json, {"users": {"ann": {"age": 31}}, "hits": 2.5}, "the document")
        refused = client.post(action("document/remove", {"path": "/users/bob"}))
        expect_equal(codes(refused), (409, "document.no-place"), "what is not there")
        expect_equal(refused.json["errors"][0]["pointer"], "/payload/path", "the pointer")
        tag = client.get("/v1/state/users/ann").fields["etag"]
        client.commit(action("document/set", {"path": "/users/ann/age", "value": 32}))
        body = b'{"type":"document/set","payload":{"path":"/hits","value":0},"expect":[{"path":"/hits","value":1}]}'
        expect_equal(codes(client.post(body)), (412, "precondition-failed"), "a precondition")
        expect(client.get("/v1/state/users/ann").fields["etag"] != tag, "the tag of a changed value is the same")
        batch = b'[{"type":"document/set","payload":{"path":"/x","value":1}},{"type":"document/remove","payload":{"path":"/y"}}]'
        expect_equal(client.post(batch).status, 409, "a batch with a refused action")
        expect_equal(client.get("/v1/state/x").status, 404, "what a refused batch leaves")


def test_a_large_set_costs_no_later_action_of_anybody(workspace, figures):
    """20,000 pairs of whole numbers that have one nearest double."""
    path = pathlib.Path(workspace.path("schema.json"))
    path.write_text(json.dumps({"properties": {"set": {"uniqueItems": True}}}))
    server = workspace.server(domain="document", schema=path)
    pairs = [[2**63 + number // 1000, 2**63 + number % 1000] for number in range(20_000)]
    with server.client() as client:
        start = server.cpu_seconds()
        client.commit(action("document/set", {"path": "/set", "value": pairs}))
        for number in range(10):
            client.commit(action("document/set", {"path": "/other", "value": number}))
        seconds = server.cpu_seconds() - start
        twice = client.post(action("document/add", {"path": "/set/-", "value": pairs[7]}))
        expect_equal(codes(twice), (422, "document.misfit"), "one of them again")
    expect(seconds < 5, f"eleven actions took {seconds:.1f} s of a processor")
    figures(f"11 actions in {seconds:.2f} s")


def test_formats_are_checked_in_what_comes(workspace):
    """What was recorded before may break a format, and stays as long as it is not changed."""
    path = pathlib.Path(workspace.path("schema.json"))
    member = {"email": {"type": "string", "format": "email"}, "host": {"format": "hostname"}, "day": {"format": "date"}}
    server = workspace.server(domain="document")
    with server.client() as client:
        client.commit(action("document/set", {"path": "/people", "value": [{"email": "nobody"}, {"email": "a@b.example"}]}))
    server.stop()
    path.write_text(json.dumps({"properties": {"people": {"items": {"properties": member}}}}))
    server.settings["schema"] = path
    server.start()
    log = log_when_ready(server)
    expect("formats are not checked" in log and "hostname" in log, "no warning of an unknown format:", log)
    cases = [
        ("/people/0/day", "2030-01-31", 200), ("/people/0/day", "31.1.2030", 422), ("/people/1/email", "nobody", 422),
        ("/people/0/email", "somebody", 422), ("/people/0/host", "-", 200), ("/people/2", {"email": "@"}, 422),
        ("/people/0/email", "c@d.example", 200), ("/people/0/email", "nobody", 422), ("/free", "x", 200),
    ]
    with server.client() as client:
        for place, value, status in cases:
            answer = client.post(action("document/set", {"path": place, "value": value}))
            expect_equal(answer.status, status, f"{value} at {place}, {answer.body}")
            if status == 422:
                expect(f"{place}" in answer.json["detail"] and "expected a" in answer.json["detail"], answer.json["detail"])


def test_a_journal_of_another_domain_is_refused_and_stays_as_it_is(workspace):
    data = workspace.path("data")
    server = workspace.server(data=data, domain="counter")
    with server.client() as client:
        client.commit(action("counter/add", {"amount": 1}))
    server.stop()
    start_refusal(workspace, data, "belongs to the domain counter, and the domain document is to be served", domain="document")
    # A journal of an earlier program does not say whose it is; its newest action does.
    with contextlib.closing(sqlite3.connect(f"{data}/journal.sqlite")) as journal, journal:
        journal.execute("DELETE FROM meta WHERE name LIKE 'domain%'")
    start_refusal(workspace, data, "is of another domain: its newest action is counter/add", domain="document")
    server = workspace.server(data=data, domain="counter")
    with server.client() as client:
        expect_equal(client.commit(action("counter/add", {"amount": 1}))["version"], 2, "the next version")


@pytest.mark.parametrize(
    "settings, says",
    [
        ({"schema": "x.json"}, "schema is for the domain document"),
        ({"domain": "counter", "schema": "x.json"}, "schema is for the domain document"),
        ({"domain": "counter", "model": "x.js"}, "model and domain counter are two domains"),
        ({"domain": "document", "drop_slice": "a"}, "drop_slice is for a model"),
    ],
)
def test_settings_that_mean_nothing_together_are_refused(workspace, settings, says):
    start_refusal(workspace, workspace.path("data"), says, **settings)
