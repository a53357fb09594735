"""A client of a document changes and uses only the places that it may see.

Two servers differ only in what the client may not see: each action of the document has the same answer from both.
"""

import json
import subprocess

import pytest

from harness.expectations import expect, expect_equal, remains, wait_until
from harness.tokens import bearer, make_token, token_names

HIDDEN = "/tasks/ben"
GRANT = ["--read", "/tasks/{subject}", "--dispatch", "document/*"]


def on(kind, path, **members):
    return {"type": f"document/{kind}", "payload": {"path": path, **members}}


def patch(*operations):
    return {"type": "document/patch", "payload": {"patch": list(operations)}}


# Each looks at a place that is hidden, or changes one, or one above what the client may see.
REACHING = {
    "set": on("set", HIDDEN, value=1),
    "set below": on("set", HIDDEN + "/evil", value=1),
    "set above": on("set", "/tasks", value={}),
    "set of the whole": on("set", "", value={}),
    "set with a similar name": on("set", "/tasks/anna", value=1),
    "set with ttl": on("set", HIDDEN, value=1, ttl=1),
    "add": on("add", HIDDEN + "/list/-", value=1),
    "remove": on("remove", HIDDEN),
    "increment": on("increment", HIDDEN + "/count"),
    "merge": on("merge", HIDDEN, value={"a": 1}),
    "merge of the whole": {"type": "document/merge", "payload": {"value": {"tasks": {"ann": {"a": 1}}}}},
    "test": patch({"op": "test", "path": HIDDEN + "/count", "value": 7}),
    "copy": patch({"op": "copy", "from": HIDDEN, "path": "/tasks/ann/stolen"}),
    "move": patch({"op": "move", "from": HIDDEN, "path": "/tasks/ann/stolen"}),
    "copy to": patch({"op": "copy", "from": "/tasks/ann", "path": HIDDEN}),
    "a second operation": patch(
        {"op": "add", "path": "/tasks/ann/x", "value": 1}, {"op": "replace", "path": HIDDEN, "value": 1}),
}


class World:
    def __init__(self, workspace, hidden):
        data = workspace.path(f"data{workspace.count()}")
        self.root = make_token(workspace, data, "root", "--all")
        self.ann = make_token(workspace, data, "ann", *GRANT)
        self.data = data
        self.server = workspace.server(data=data, domain="document")
        self.client = self.server.client()
        self.client.commit(json.dumps(on("set", "/tasks/ann", value={"count": 1})).encode(), **bearer(self.root))
        for step in (hidden, {"type": "document/increment", "payload": {"path": "/tasks/ann/count"}}):
            self.client.commit(json.dumps(step).encode(), **bearer(self.root))

    def answer(self, body, target="/v1/actions"):
        answer = self.client.post(
            json.dumps(body).encode(), target=target, X_Request_Id="x", **bearer(self.ann))
        epoch = self.client.get("/v1", **bearer(self.root)).json["epoch"]
        return answer.status, answer.body.decode().replace(epoch, "EPOCH")


@pytest.fixture
def worlds(workspace):
    with_rows = on("set", HIDDEN, value={"count": 7, "list": ["topsecret"]})
    return World(workspace, with_rows), World(workspace, on("set", "/tasks/other", value=None))


def test_a_client_reaches_no_place_that_it_may_not_see(worlds):
    for name, action in REACHING.items():
        for target in ("/v1/actions", "/v1/actions?dry-run"):
            for body in (action, [on("set", "/tasks/ann/y", value=1), action], action | {"schedule": {"after": 1}}):
                first, second = (world.answer(body, target) for world in worlds)
                expect_equal(first, second, f"the answers to {name} of two servers")
                expect_equal(first[0], 422, f"the status of {name}: {first[1]}")
                problem = json.loads(first[1])
                expect_equal(problem["code"], "invalid-action", f"the code of {name}")
                expect("may not see" in problem["detail"], problem["detail"])
                expect("/payload/" in problem["errors"][0]["pointer"], f"the pointer: {problem['errors']}")
    for world in worlds:
        expect("stolen" not in json.dumps(world.client.get("/v1/state", **bearer(world.root)).json), "the state")


def test_a_client_changes_what_it_may_see(worlds):
    world = worlds[0]
    for body in (
        on("set", "/tasks/ann/title", value="call"), on("increment", "/tasks/ann/count"),
        on("merge", "/tasks/ann", value={"due": "today"}), on("add", "/tasks/ann/tags", value=["a"]),
        patch({"op": "copy", "from": "/tasks/ann/title", "path": "/tasks/ann/old"}, {"op": "remove", "path": "/tasks/ann/due"}),
    ):
        status, text = world.answer(body)
        expect_equal(status, 200, text)
    expect_equal(
        world.client.get("/v1/state/tasks/ann", **bearer(world.ann)).json,
        {"count": 3, "title": "call", "tags": ["a"], "old": "call"}, "her rows")


def test_an_action_is_refused_when_due_if_its_sender_may_not_see_the_place_any_more(worlds, workspace):
    world = worlds[0]
    status, text = world.answer(on("set", "/tasks/ann/late", value=1) | {"id": "late", "schedule": {"after": 2}})
    expect_equal(status, 200, text)
    name = token_names(world.data)["ann"]
    subprocess.run(
        [workspace.binary, "token", "revoke", "--data", world.data, name], check=True, timeout=20, stdout=subprocess.DEVNULL)
    make_token(workspace, world.data, "ann", "--read", "/other", "--dispatch", "document/*")
    wait_until(
        lambda: world.client.get("/v1/schedule", **bearer(world.root)).json["count"] == 0, "it was due", seconds=10)
    rows = lambda: world.client.get("/v1/state/tasks/ann", **bearer(world.root)).json
    remains(lambda: "late" not in rows(), "the rows", 0.2)
