"""The schedule is for all: a client has a quarter of it, and what nobody can dispatch any more goes."""

import json
import os
import subprocess
import urllib.parse

import pytest

from harness.actions import action
from harness.client import Client
from harness.expectations import expect, expect_equal, remains, wait_until
from harness.quiet import HOSTILE_HOST
from harness.tokens import bearer, make_token, token_names

FAR = {"at": "9999-12-31T00:00:00Z"}


def fill(client, count, make, **fields):
    """Sends so many actions as NDJSON; the receipts and the problems."""
    body = b"\n".join(make(number) for number in range(count))
    answer = client.request("POST", "/v1/actions", body, {"Content-Type": "application/x-ndjson", **fields})
    expect_equal(answer.status, 200, f"a bulk load: {answer.body[:200]}")
    lines = [json.loads(line) for line in answer.body.splitlines()]
    return [line for line in lines if "version" in line], [line for line in lines if "status" in line]


ATTACKS = {
    "actions": lambda number: action("document/set", {"path": "/x", "value": 1}, schedule=FAR),
    "named": lambda number: action("document/set", {"path": "/x", "value": 1}, schedule={**FAR, "name": f"n{number}"}),
    "places": lambda number: action("document/set", {"path": f"/h/{number}", "value": 1, "ttl": 1e9}),
    "counters": lambda number: action("document/increment", {"path": f"/h/{number}", "ttl": 1e9}),
}


@pytest.mark.parametrize("attack", list(ATTACKS))
def test_an_address_that_fills_its_share_leaves_the_rest_to_others(workspace, attack):
    server = workspace.server(domain="document", schedule_max=400)
    with server.client() as innocent, Client(server.port, source=HOSTILE_HOST) as hostile:
        taken, refused = fill(hostile, 150, ATTACKS[attack])
        expect_equal((len(taken), len(refused)), (100, 50), "what is taken and refused")
        expect_equal({(line["status"], line["code"]) for line in refused}, {(429, "schedule-full")}, "the refusals")
        again = hostile.post(ATTACKS[attack](1000))
        expect_equal((again.status, again.fields["retry-after"]), (429, "60"), again.body)
        dry_run = hostile.post(ATTACKS[attack](1000), target="/v1/actions?dry-run")
        expect_equal((dry_run.status, dry_run.json["code"]), (429, "schedule-full"), "a dry run of the same")
        for number in range(99):
            answer = innocent.post(action("document/set", {"path": f"/i/{number}", "value": 1, "ttl": 60}))
            expect_equal(answer.status, 200, f"an innocent client: {answer.body}")
        expect_equal(innocent.post(action("document/set", {"path": "/t", "value": 1}, schedule={"after": 0.1})).status, 200, "one more")
        expect_equal(innocent.get("/v1/state/t?until-exists&wait=5").status, 200, "and it is dispatched")
        # Whoever has too much can give some of it back, and does other things meanwhile.
        expect_equal(hostile.post(action("document/set", {"path": "/other", "value": 1})).status, 200, "an action")
    server.restart()
    with server.client() as innocent, Client(server.port, source=HOSTILE_HOST) as hostile:
        expect_equal(hostile.post(ATTACKS[attack](1001)).status, 429, "behind a start")
        expect_equal(innocent.post(action("document/set", {"path": "/i/x", "value": 1, "ttl": 60})).status, 200, "an innocent client")


def test_a_subject_has_one_share_from_every_address(workspace):
    data = workspace.path("data")
    tokens = {name: make_token(workspace, data, name, "--all") for name in ["ann", "bob"]}
    server = workspace.server(data, domain="document", schedule_max=40, schedule_bytes_max=1 << 20)
    with server.client() as one, Client(server.port, source=HOSTILE_HOST) as other:
        counts = [len(fill(client, 8, ATTACKS["actions"], **bearer(tokens["ann"]))[0]) for client in (one, other)]
        expect_equal(counts, [8, 2], "what is taken of one subject")
        expect_equal(len(fill(one, 12, ATTACKS["actions"], **bearer(tokens["bob"]))[0]), 10, "of another one")


def revoke(workspace, data, name):
    """Revokes a token by its ID, or the one of a subject."""
    name = token_names(data).get(name, name)
    subprocess.run([workspace.binary, "token", "revoke", "--data", data, name], check=True, capture_output=True, timeout=20)


def test_the_actions_of_a_subject_go_with_its_last_token_a_thousand_a_commit(workspace):
    data = workspace.path("data")
    root, bob = make_token(workspace, data, "root", "--all"), make_token(workspace, data, "bob", "--all")
    ann, second = make_token(workspace, data, "ann", "--all"), make_token(workspace, data, "ann", "--all")
    server = workspace.server(data, domain="document")
    with server.client() as client:
        taken, refused = fill(client, 2500, ATTACKS["named"], **bearer(ann))
        expect_equal((len(taken), refused), (2500, []), "what ann has scheduled")
        client.commit(ATTACKS["places"](1), **bearer(ann))
        client.commit(ATTACKS["named"](1), **bearer(bob))
        count = lambda: client.get("/v1/schedule?limit=1", **bearer(root)).json["count"]
        names = [entry["id"] for entry in json.load(open(f"{data}/tokens.json"))["tokens"] if entry["subject"] == "ann"]
        revoke(workspace, data, names[0])
        wait_until(lambda: client.get("/v1", **bearer(ann)).status == 401, "the first token ends")
        expect_equal(client.get("/v1", **bearer(second)).status, 200, "the second one")
        expect_equal(count(), 2502, "nothing is taken back while there is another token")
        version = client.get("/v1", **bearer(root)).json["version"]
        revoke(workspace, data, names[1])
        wait_until(lambda: count() == 2, "what ann has scheduled is taken back", 20)
        left = client.get("/v1/schedule", **bearer(root)).json["schedule"]
        expect_equal({each.get("place", each.get("by")) for each in left}, {"/h/1", "bob"}, "what stays")
        commits = client.get("/v1/changes?before=now&limit=10", **bearer(root)).json["changes"]
        sizes = [len(each["action"]) for each in commits if each["version"] > version]
        expect_equal(sorted(sizes), [500, 1000, 1000], "the actions of each commit")
        expect("by" not in commits[0], "nobody has dispatched it:", commits[0]["version"])
        expect_equal(
            commits[0]["action"][0], {"type": "storekeeper/unschedule", "payload": commits[0]["action"][0]["payload"]}, "an action")
        expect_equal(commits[0]["action"][0]["payload"]["by"], "ann", "whose it was")


def test_a_token_that_goes_while_the_server_is_down_takes_its_actions_along_and_a_missing_file_does_not(workspace):
    data = workspace.path("data")
    root, ann = make_token(workspace, data, "root", "--all"), make_token(workspace, data, "ann", "--all")
    server = workspace.server(data, domain="document")
    with server.client() as client:
        client.commit(ATTACKS["named"](1), **bearer(ann))
        client.commit(ATTACKS["named"](1), **bearer(root))
    server.stop()
    revoke(workspace, data, "ann")
    server.start()
    with server.client() as client:
        listed = lambda: [each["by"] for each in client.get("/v1/schedule", **bearer(root)).json["schedule"]]
        wait_until(lambda: listed() == ["root"], "what ann has scheduled is taken back")
        # A file that is missing for a while, as when it is moved, says nothing of anybody's tokens.
        os.rename(f"{data}/tokens.json", f"{data}/moved.json")
        wait_until(lambda: client.get("/v1", **bearer(root)).status == 401, "no token is there")
        remains(lambda: client.get("/v1", **bearer(root)).status == 401, "no token is there", 1)
        os.rename(f"{data}/moved.json", f"{data}/tokens.json")
        wait_until(lambda: client.get("/v1", **bearer(root)).status == 200, "the token is there again")
        expect_equal(listed(), ["root"], "what is scheduled")


def test_who_may_do_everything_takes_back_what_another_has_scheduled(workspace):
    data = workspace.path("data")
    server = workspace.server(data, domain="document")
    with server.client() as client:
        client.commit(ATTACKS["named"](7))
    server.stop()
    root = make_token(workspace, data, "root", "--all")
    odd = "a/b~c+\u00e9"
    tokens = {name: make_token(workspace, data, name, "--read", "*", "--others", "--dispatch", "*") for name in [odd, "bob"]}
    server.start()
    with server.client() as client:
        client.commit(ATTACKS["named"](7), **bearer(tokens[odd]))
        by = urllib.parse.quote(odd, safe="")
        remove = lambda token, query: client.request("DELETE", f"/v1/schedule/n7{query}", fields=bearer(token))
        expect_equal((remove(tokens["bob"], f"?by={by}").status, remove(tokens["bob"], "?by=").status), (404, 404), "who may not")
        expect_equal(remove(root, "").status, 404, "its own, which is not there")
        expect_equal(remove(root, "?by=bob").status, 404, "of one who has none")
        answer = remove(root, f"?by={by}")
        expect_equal(answer.status, 200, answer.body)
        expect_equal(remove(root, f"?by={by}").json["code"], "not-scheduled", "a second time")
        expect_equal(client.get("/v1/schedule", **bearer(root)).json["count"], 1, "that of the open server is left")
        expect_equal(remove(root, "?by=").status, 200, "of a client without a subject")
        expect_equal(client.get("/v1/schedule", **bearer(root)).json["count"], 0, "nothing is left")
        made = client.get(f"/v1/actions/{answer.json['cursor']}", **bearer(root)).json
        expect_equal((made["by"], made["action"]["payload"]), ("root", {"name": "n7", "by": odd}), "the commit")
    server.restart()
    with server.client() as client:
        expect_equal(client.get("/v1/schedule", **bearer(root)).json["count"], 0, "behind a start")
