"""A model in JavaScript on a history in etcd that several servers share."""

import pathlib
import signal
import threading

from harness.actions import action
from harness.client import ConnectionLost
from harness.etcd import Etcds
from harness.expectations import expect, expect_equal, wait_until
from harness.models import ROOT
from harness.nodes import led
from harness.server import Server, codes

TODO = ROOT / "config/models/todo.js"


def test_servers_that_share_a_history_reduce_one_model_to_one_state(workspace):
    servers = led(workspace, Etcds(workspace, 1).address("model"), [{"model": TODO}] * 2)
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


def test_a_server_whose_domain_a_commit_does_not_fit_turns_red_and_serves_nothing_newer(workspace):
    settings = [{"domain": "counter"}, {"domain": "document", "arguments": ["--change-domain"]}]
    servers = led(workspace, Etcds(workspace, 1).address("domains"), settings)
    with servers[0].client() as old, servers[1].client() as new:
        wait_until(lambda: servers[0].metric(old, "cluster_writer") == 1, "the older one writes")
        cursor = old.commit(action("counter/add", {"amount": 5}))["cursor"]
        expect_equal(new.get(f"/v1/state?at-least={cursor}&wait=5").json, {"value": 5}, "the state at the newer one")
        expect("state-age" not in old.get("/v1/state").fields, "the older one is current")
        servers[0].process.send_signal(signal.SIGSTOP)
        wait_until(lambda: servers[1].metric(new, "cluster_writer") == 1, "the newer one writes")
        servers[0].process.send_signal(signal.SIGCONT)
        last = new.commit(action("document/set", {"path": "/other", "value": 1}))["cursor"]
        wait_until(lambda: old.get("/readyz").status == 503, "the older one turns red")
        expect_equal(old.get("/readyz").json["code"], "domain-mismatch", "its code")
        expect(b"[-]domain: the commit of version 2" in old.get("/readyz?verbose").body, "its reason")
        answer = old.get("/v1/state")
        expect_equal((answer.status, answer.json), (200, {"value": 5}), "the state at the older one")
        expect("state-age" in answer.fields, "how old it is", answer)
        expect_equal(codes(old.get(f"/v1/state?at-least={last}&wait=1")), (503, "behind"), "a version that it has not")
        # The newer one carries out what is sent here, once this one has seen that it writes, and knows no such action.
        wait_until(lambda: codes(old.post(action("counter/add", {"amount": 1}))) == (422, "unknown-action"), "it is sent on")
        answer = old.post(action("document/set", {"path": "/other", "value": 2}))
        expect_equal((answer.status, answer.json["code"]), (422, "unknown-action"), "an action that only the newer one knows")
        servers[1].stop()
        wait_until(lambda: codes(old.post(action("counter/add", {"amount": 1}))) == (503, "domain-mismatch"), "no other writes")
    expect_equal(servers[1].start().client().get("/v1/state").json, {"value": 5, "other": 1}, "the state")


def test_a_server_with_an_older_version_of_the_model_serves_nothing_newer_until_it_has_the_newer_file(workspace):
    etcds = Etcds(workspace, 1)
    path = pathlib.Path(workspace.path("counter.js"))
    text = (ROOT / "config/models/counter.js").read_text()
    path.write_text(text)
    first, second = (Server(workspace, etcds.address("versions"), {"model": path}) for _ in range(2))
    first.start()
    with first.client() as client:
        client.commit(action("counter/add", {"amount": 1}))
        path.write_text(f"export const version = 2;\nexport const migrate = (state) => state;\n{text}")
        second.start()
        with second.client() as other:
            cursor = other.commit(action("counter/add", {"amount": 1}))["cursor"]
        wait_until(lambda: client.get("/readyz").status == 503, "it turns red")
        expect_equal(client.get("/readyz").json["code"], "model-version", "its code")
        expect_equal(client.get("/v1/state").json, {"counter": {"value": 1}}, "the state that it has")
        expect_equal(client.get(f"/v1/state?at-least={cursor}&wait=1").status, 503, "a newer version")
        refused = client.post(action("counter/add", {"amount": 1}))
        expect_equal(codes(refused), (503, "model-version"), "an action at the older server")
    first.stop()
    first.start()
    newest = {"_version": 2, "counter": {"value": 2}}
    wait_until(lambda: first.client().get(f"/v1/state?at-least={cursor}&wait=1").json == newest, "it has the newer file")
    expect_equal(first.client().get("/readyz").status, 200, "its readiness")


def test_servers_are_upgraded_one_after_the_other_under_load(workspace, figures):
    """An action more, then a version more with a migration. What is acknowledged is recorded once."""
    path = pathlib.Path(workspace.path("model.js"))
    slice_of = "export const a = createSlice({{ name: 'a', initialState: {{ n: 0 }}, reducers: {{ add(s) {{ s.n += 1 }}{} }} }});\n"
    path.write_text(slice_of.format(""))
    servers = led(workspace, Etcds(workspace, 1).address("rolling"), [{"model": path}] * 3)
    acknowledged, failures, finished = {}, [], threading.Event()

    def post(name):
        number, place, client = 0, name, None
        while not finished.is_set():
            key = f"{name}-{number}"
            try:
                client = client or servers[place % 3].client(timeout=20)
                answer = client.post(action("a/add", {}, id=key), Idempotency_Key=f'"{key}"')
            except ConnectionLost:
                client, place = None, place + 1
                continue
            if answer.status == 200:
                acknowledged[key] = answer.json["version"]
                number += 1
                finished.wait(0.005)
                continue
            # Another server may have what this one has not.
            if answer.status != 503:
                failures.append(answer)
                return
            client.close()
            client, place = None, place + 1

    threads = [threading.Thread(target=post, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    added = ", double(s) { s.n *= 2 }, other(s) { s.n += 0 }"
    files = [slice_of.format(added)]
    files.append(files[0] + "export const version = 2;\nexport const migrate = (state) => { state.a.m = 7; };\n")

    def go_on(count):
        before = len(acknowledged)
        wait_until(lambda: len(acknowledged) > before + count, "the clients go on")

    try:
        for text in files:
            go_on(100)
            path.write_text(text)
            for server in servers:
                server.stop()
                server.start()
                with server.client() as client:
                    wait_until(lambda: client.get("/readyz").status == 200, "it is ready")
                go_on(50)
            with servers[0].client() as client:
                wait_until(lambda: client.post(action("a/other", {})).status == 200, "an action of the new file", seconds=5)
    finally:
        finished.set()
        for thread in threads:
            thread.join()
    expect_equal(failures, [], "clients that failed")
    with servers[0].client() as client:
        latest = client.get("/v1").json["cursor"]
    states = []
    for server in servers:
        with server.client() as client:
            states.append(client.get(f"/v1/state?at-least={latest}&wait=5").json)
    expect_equal(states, [{"_version": 2, "a": {"m": 7, "n": len(acknowledged)}}] * 3, "the states")
    expect_equal(len(set(acknowledged.values())), len(acknowledged), "each action is a commit of its own")
    figures(f"{len(acknowledged)} actions through six starts of three servers")
