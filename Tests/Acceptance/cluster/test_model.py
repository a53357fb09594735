"""A model in JavaScript on a history in etcd that several servers share."""

import pathlib

from harness.actions import action
from harness.etcd import Etcds
from harness.expectations import expect_equal, wait_until
from harness.models import ROOT
from harness.programs import free_port
from harness.server import Server

TODO = ROOT / "config/models/todo.js"


def test_servers_that_share_a_history_reduce_one_model_to_one_state(workspace):
    etcds = Etcds(workspace, 1)
    servers = []
    for _ in range(2):
        port = free_port()
        server = Server(workspace, etcds.address("model"), {"model": TODO, "cluster_address": f"http://127.0.0.1:{port}"})
        server.fixed_port = port
        servers.append(server.start())
    titles = []
    for number in range(60):
        with servers[number % 2].client() as client:
            titles.append(f"title {number}")
            client.commit(action("todos/added", {"title": titles[-1]}))
    with servers[0].client() as one, servers[1].client() as other:
        cursor = one.get("/v1").json["cursor"]
        expect_equal(other.get(f"/v1/state?at-least={cursor}&wait=5").body, one.get("/v1/state").body, "the states")
        view = [each["title"] for each in other.get("/v1/views/open-todos").json]
        expect_equal(view, titles, "a view at the other server")
        victim = one.get("/v1/state/todos/ids").json[0]
        # A rejection is judged by the newest state wherever it is asked for.
        other.commit(b'{"type":"todos/removed","payload":"%s"}' % victim.encode())
        body = action("todos/changed", {"id": victim, "changes": {"done": True}})
        expect_equal([each.post(body).json.get("code") for each in (one, other)], ["todos.unknown"] * 2, "the rejections")
    servers[0].kill()
    with servers[1].client() as other:
        wait_until(lambda: other.post(action("todos/added", {"title": "last"})).status == 200, "the other one writes")
        expect_equal(len(other.get("/v1/views/open-todos").json), 60, "what is open")


def test_a_server_with_an_older_version_of_the_model_takes_no_action_and_turns_red(workspace):
    etcds = Etcds(workspace, 1)
    text = (ROOT / "config/models/counter.js").read_text()
    old, new = (pathlib.Path(workspace.path(f"v{version}/counter.js")) for version in (1, 2))
    for path, version in ((old, 1), (new, 2)):
        path.parent.mkdir()
        path.write_text(f"export const version = {version};\nexport const migrate = (state) => state;\n{text}")
    first = Server(workspace, etcds.address("versions"), {"model": old}).start()
    with first.client() as client:
        client.commit(action("counter/add", {"amount": 1}))
        second = Server(workspace, etcds.address("versions"), {"model": new}).start()
        with second.client() as other:
            other.commit(action("counter/add", {"amount": 1}))
            cursor = other.get("/v1").json["cursor"]
        expect_equal(client.get(f"/v1/state?at-least={cursor}&wait=5").json, {"_version": 2, "counter": {"value": 2}}, "the state")
        refused = client.post(action("counter/add", {"amount": 1}))
        expect_equal((refused.status, refused.json["code"]), (409, "model-version"), "an action at the older server")
        expect_equal((client.get("/readyz").status, client.get("/readyz").json["code"]), (503, "model-version"), "its readiness")
