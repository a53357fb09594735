"""Whatever ends the process twice is set aside: a dry run, a fork and a view as an action is, and nothing beside them."""

import contextlib
import json
import pathlib
import subprocess

import pytest

from harness.actions import action
from harness.client import ConnectionLost
from harness.expectations import expect, expect_equal, wait_until
from harness.server import codes

MODEL = pathlib.Path(__file__).parent / "ending.js"
BAD = {"type": "text/match", "payload": {"value": "bad"}}
LINES = json.dumps(BAD).encode() + b"\n" + action("good/add", {})


def fork(client, **order):
    return client.post(json.dumps(order).encode(), target="/v1/forks")


def in_fork(client, method, target, body=None):
    made = fork(client).json
    try:
        return codes(client.request(method, made["href"] + target, body))
    finally:
        with contextlib.suppress(ConnectionLost):
            client.request("DELETE", made["href"])


def inserted(client):
    made = fork(client, insert=[{"after": client.get("/v1").json["cursor"], "action": BAD}]).json
    client.request("DELETE", made["href"])
    return made["refused"][0]["code"]


def first_line(client):
    answer = client.request("POST", "/v1/actions?dry-run", LINES, {"Content-Type": "application/x-ndjson"})
    lines = [json.loads(line) for line in answer.body.splitlines()]
    expect_equal([line.get("code") for line in lines], ["action-quarantined", None], "the lines")
    return lines[0]["code"]


WAYS = {
    "an action": lambda client: codes(client.post(json.dumps(BAD).encode())),
    "a dry run": lambda client: codes(client.post(json.dumps(BAD).encode(), target="/v1/actions?dry-run")),
    "a dry run of an array": lambda client: codes(
        client.post(json.dumps([BAD, BAD]).encode(), target="/v1/actions?dry-run")
    ),
    "a line of dry runs": first_line,
    "an action in a fork": lambda client: in_fork(client, "POST", "/actions", json.dumps(BAD).encode()),
    "a dry run in a fork": lambda client: in_fork(client, "POST", "/actions?dry-run", json.dumps(BAD).encode()),
    "an action that a fork inserts": inserted,
    "a view": lambda client: codes(client.get("/v1/views/matches")),
    "a view of the past": lambda client: codes(client.get("/v1/views/matches?version=1")),
    "a view in a fork": lambda client: in_fork(client, "GET", "/views/matches"),
}
REFUSALS = {
    "an action that a fork inserts": "action-quarantined",
    "a line of dry runs": "action-quarantined",
}


def ending_server(workspace):
    return workspace.server(data=workspace.path("data"), model=MODEL, model_milliseconds_max=10)


def ends_it(server, way):
    """Whether a request ends the server, which then starts again."""
    with server.client() as client:
        try:
            return way(client)
        except ConnectionLost:
            expect_equal(server.wait(), 75, "the exit code")
    server.start()
    return None


def quarantine(workspace, *words):
    done = subprocess.run(
        [workspace.binary, "journal", "quarantine", *words, "--data", workspace.path("data")],
        capture_output=True, text=True, timeout=30,
    )
    expect_equal(done.returncode, 0, done.stderr)
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", WAYS)
def test_what_ends_the_process_is_set_aside_after_two_ends(workspace, name):
    server = ending_server(workspace)
    is_view = "view" in name
    with server.client() as client:
        client.commit(action("text/set", {"value": "bad" if is_view else "good"}))
        client.commit(action("good/add", {}))
    for _ in range(2):
        expect_equal(ends_it(server, WAYS[name]), None, "it ends")
    refusal = REFUSALS.get(name, (500, "view-fault") if is_view else (422, "action-quarantined"))
    for _ in range(3):
        expect_equal(ends_it(server, WAYS[name]), refusal, "the refusal")
    [found] = quarantine(workspace, "list")
    expect_equal(found[1:3] + found[4:5], ["refused", "2 crashes", "view" if is_view else "text/match"], "the list")
    with server.client() as client:
        client.commit(action("good/add", {}))
        expect_equal(client.get("/v1/views/sum").json, 2, "another view")
        expect(f"[!]quarantine: 1 action, {found[0]}" in client.get("/readyz?verbose").body.decode(), "the readiness")
    quarantine(workspace, "drop", found[0])
    wait_until(lambda: ends_it(server, WAYS[name]) is None, "it is let pass")
    server.kill()


def test_a_view_is_set_aside_until_what_it_reads_changes(workspace):
    server = ending_server(workspace)
    view = lambda client: codes(client.get("/v1/views/matches"))
    with server.client() as client:
        client.commit(action("text/set", {"value": "bad"}))
    expect_equal([ends_it(server, view) for _ in range(2)], [None, None], "the ends")
    with server.client() as client:
        client.commit(action("good/add", {}))
        expect_equal(view(client), (500, "view-fault"), "the view after a change of what it does not read")
        answer = client.get("/v1/views/matches").json["detail"]
        expect("has set it aside as q4" in answer, answer)
        client.commit(action("text/set", {"value": "good"}))
        expect_equal(client.get("/v1/views/matches").json, False, "the view after a change of what it reads")
    wait_until(lambda: quarantine(workspace, "list") == [], "the list is empty")
    with server.client() as client:
        client.commit(action("text/set", {"value": "bad"}))
    expect_equal([ends_it(server, view) for _ in range(3)], [None, None, (500, "view-fault")], "the ends")
    with server.client() as client:
        client.commit(action("text/set", {"value": "worse"}))
        client.commit(action("text/set", {"value": "bad"}))
    expect_equal([ends_it(server, view) for _ in range(2)], [None, (500, "view-fault")], "the end after another change")
    expect_equal(quarantine(workspace, "list")[0][1:3], ["refused", "3 crashes"], "the list")
    quarantine(workspace, "retry", quarantine(workspace, "list")[0][0])
    wait_until(lambda: ends_it(server, view) is None, "it is let pass")
    server.kill()


def test_a_view_of_the_present_has_no_value_of_a_fork(workspace):
    server = workspace.server(model=MODEL)
    with server.client() as client:
        for _ in range(3):
            client.commit(action("good/add", {}))
        href = fork(client).json["href"]
        client.post(action("text/set", {"value": "x"}), target=href + "/actions")
        for number in range(4, 7):
            expect_equal(client.post(action("good/add", {}), target=href + "/actions").status, 200, "an action in the fork")
            expect_equal(client.get(href + "/views/sum").json, number, "the view in the fork")
            expect_equal(client.get("/v1/views/sum").json, 3, "the view of the present")
        # The present gets the versions that the fork has had.
        for number in range(4, 8):
            client.commit(action("good/add", {}))
            expect_equal(client.get("/v1/views/sum").json, number, "the view of the present")
