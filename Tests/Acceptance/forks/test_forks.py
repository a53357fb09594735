"""The history without an action or with another one, beside the truth; and the commit that broke something."""

import json
import subprocess
import threading
import time

import pytest

from harness.actions import action, add
from harness.expectations import expect, expect_equal, wait_until
from harness.tokens import bearer, make_token


def post(client, path, body, **fields):
    return client.request("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json", **fields})


def fork(client, **order):
    answer = post(client, "/v1/forks", order)
    expect_equal(answer.status, 201, f"the status of a new fork: {answer.body}")
    expect_equal(answer.fields["location"], answer.json["href"], "its place")
    return answer.json


def test_a_fork_without_an_action_is_the_history_as_it_would_have_been(workspace):
    with workspace.server().client() as client:
        for identifier, body in [
            ("a", action("tasks/add", {"id": 1, "title": "milk"}, id="a")),
            ("b", action("counter/add", {"amount": 5}, id="b")),
            ("c", action("tasks/rename", {"id": 1, "title": "bread"}, id="c")),
            ("d", action("counter/add", {"amount": 7}, id="d")),
        ]:
            expect_equal(client.post(body).status, 200, f"the status of {identifier}")
        before = client.get("/v1/state").body
        made = fork(client, skip=["a"])
        expect_equal((made["appliedCount"], made["skippedCount"], made["refusedCount"]), (2, 1, 1), "what became of them")
        [refused] = made["refused"]
        expect_equal((refused["id"], refused["code"], refused["type"]), ("c", "tasks.unknown", "tasks/rename"), "the refusal")
        expect_equal(refused["cursor"].rpartition(".")[2], "3", "its version in the history")
        path = made["href"]
        expect_equal(client.get(f"{path}/state/tasks/ids").json, [], "the tasks of the fork")
        expect_equal(client.get(f"{path}/state/counter/value").json, 12, "its counter")
        changes = client.get(f"{path}/changes?since=oldest").json["changes"]
        expect_equal([(change["id"], change["version"]) for change in changes], [("b", 1), ("d", 2)], "its commits")
        expect_equal(client.get(f"{path}/actions/d").json["cursor"], changes[1]["cursor"], "the commit of an ID")
        # It takes actions of its own, and the live store knows nothing of them.
        expect_equal(post(client, f"{path}/actions", {"type": "counter/add", "payload": {"amount": 30}}).status, 200, "an action")
        expect_equal(client.get(f"{path}/state/counter/value").json, 42, "the counter behind it")
        expect_equal(client.get(f"{path}/state/counter/value?version=1").json, 5, "the counter as it was")
        expect_equal(client.get("/v1/state").body, before, "the state of the live store")
        # An added action comes behind a commit.
        cursor = client.get("/v1/actions/b").json["cursor"]
        added = fork(client, insert=[{"after": cursor, "action": {"type": "counter/reset", "id": "new"}}])
        expect_equal(client.get(f"{added['href']}/state/counter/value").json, 7, "the counter with a reset between")
        expect_equal(client.get(f"{added['href']}/state/tasks/entities/1/title").json, "bread", "what else there is")
        copy = fork(client)
        expect_equal(client.get(f"{copy['href']}/state").body, before, "the state of a copy")
        absolute = client.get(f"http://localhost{copy['href']}/state?pretty")
        expect_equal((absolute.status, absolute.json), (200, json.loads(before)), "the answer to a target with its host")


def test_any_version_can_be_asked_of_a_fork(workspace):
    with workspace.server().client() as client:
        client.commit(add(1))
        made = fork(client)
        epoch, newest = made["cursor"].split(".")
        for version in [int(newest) + 1, 2**63 - 1, 2**63, 2**63 + 2, 2**64 - 1]:
            for target in [f"actions/{epoch}.{version}", f"state?version={version}", f"changes?since={epoch}.{version}"]:
                answer = client.get(f"{made['href']}/{target}")
                expect(answer.status in (404, 409, 410), target, "is answered with", answer)
        expect_equal(client.get(f"{made['href']}/state/counter/value").json, 1, "the counter of the fork")


def test_a_wait_in_a_fork_ends_with_a_change_and_with_the_fork(workspace):
    server = workspace.server()
    with server.client() as client, server.client() as other:
        client.commit(add(1))
        path = fork(client)["href"]
        tag = client.get(f"{path}/state/counter").fields["etag"]
        answers = []

        def wait():
            answers.append(other.request("GET", f"{path}/state/counter?wait=20", None, {"If-None-Match": tag}))

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.3)
        post(client, f"{path}/actions", {"type": "counter/add", "payload": {"amount": 1}})
        thread.join(5)
        expect_equal((answers[0].status, answers[0].json), (200, {"value": 2}), "what the wait ended with")
        tag = answers[0].fields["etag"]
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.3)
        expect_equal(client.request("DELETE", path).status, 204, "the status of the end")
        thread.join(5)
        expect(not thread.is_alive(), "the wait outlives its fork")
        expect_equal(client.get(f"{path}/state").json["code"], "no-such-fork", "the code of a fork that has ended")


def test_forks_are_bounded_in_number_length_and_life(workspace):
    settings = {"forks_max": 2, "fork_seconds_max": 2, "fork_commits_max": 3}
    with workspace.server(**settings).client() as client:
        for _ in range(5):
            client.commit(add(1))
        oldest = client.get("/v1").json["oldest"]
        answer = post(client, "/v1/forks", {"from": oldest})
        expect_equal((answer.status, answer.json["code"]), (422, "fork-too-long"), "a fork of five commits")
        fork(client), fork(client)
        answer = post(client, "/v1/forks", {})
        expect_equal((answer.status, answer.json["code"]), (503, "too-many-forks"), "a third fork")
        wait_until(lambda: client.get("/v1/forks").json["forks"] == [], "the forks have ended", seconds=5)
        fork(client)


def test_a_fork_counts_in_the_memory_budget_and_gives_it_back(workspace):
    with workspace.server(memory_bytes_max=4 << 20, body_bytes_max=256 << 10).client() as client:
        def used():
            return client.get("/v1/operations").json["memory"]["usedBytes"]

        for start in range(0, 2800, 700):
            lines = b"\n".join(action("tasks/add", {"id": start + each, "title": "x" * 250}) for each in range(700))
            answer = client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"})
            expect_equal(answer.status, 200, "a load")
        # The body of a request counts until the server has seen that its answer is sent, which is after the client has it.
        wait_until(lambda: used() == 0, "the bodies are given back", seconds=5)
        answer = post(client, "/v1/forks", {})
        expect_equal((answer.status, answer.json["code"]), (503, "memory-exhausted"), "a fork without room")
        wait_until(lambda: used() == 0, "the memory of the refused fork is given back", seconds=5)
        oldest = client.get("/v1").json["oldest"]
        small = fork(client, **{"from": oldest, "to": oldest})
        expect(used() > 0, "a fork counts for nothing")
        client.request("DELETE", small["href"])
        wait_until(lambda: used() == 0, "the memory of the fork is given back", seconds=5)


def test_only_a_token_that_may_see_everything_and_fork_has_forks(workspace):
    data = workspace.path("data")
    everything = make_token(workspace, data, "admin", "--all")
    reader = make_token(workspace, data, "reader", "--read", "*", "--others", "--dispatch", "*")
    part = make_token(workspace, data, "part", "--read", "/tasks", "--fork")
    with workspace.server(data=data).client() as client:
        client.post(add(1), **bearer(everything))
        made = post(client, "/v1/forks", {}, **bearer(everything)).json
        for token in (reader, part):
            for method, path in [("POST", "/v1/forks"), ("GET", "/v1/forks"), ("GET", f"{made['href']}/state"), ("DELETE", made["href"])]:
                answer = client.request(method, path, b"{}" if method == "POST" else None, {"Content-Type": "application/json", **bearer(token)})
                expect_equal((answer.status, answer.json["code"]), (404, "no-such-route"), f"{method} {path}")
        expect_equal(client.get(f"{made['href']}/state").status, 401, "the status without a token")
        expect_equal(post(client, "/v1/bisect", {"test": {"path": "/counter/value", "value": 1}}, **bearer(reader)).json["found"], True, "a search")
        answer = post(client, "/v1/bisect", {"test": {"path": "/counter/value", "value": 1}}, **bearer(part))
        expect_equal(answer.json["code"], "no-such-route", "a search of a token that sees a part")
        expect_equal(client.get("/v1/operations", **bearer(reader)).json["code"], "no-such-route", "operations")
        report = client.get("/v1/operations", **bearer(everything)).json
        expect_equal(sorted(grant["subject"] for grant in report["grants"]), ["admin", "part", "reader"], "the grants")
        expect("sha256" not in json.dumps(report) and everything not in json.dumps(report), "a secret is in the report")


@pytest.mark.alone
def test_a_fork_of_10_000_commits_takes_under_2_s_and_does_not_hold_up_the_live_store(workspace, figures):
    server = workspace.server()
    with server.client() as client, server.client() as poster:
        lines = b"\n".join([add(1)] * 10_000)
        client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"})
        cursor = client.get("/v1").json["cursor"]
        skipped = f"{cursor.partition('.')[0]}.5000"

        def latencies(count):
            times = []
            for _ in range(count):
                begun = time.monotonic()
                poster.commit(add(0))
                times.append(time.monotonic() - begun)
            return sorted(times)

        latencies(200)
        alone = latencies(2000)
        taken, order = [], {"from": client.get("/v1").json["oldest"], "to": cursor, "skip": [skipped]}

        def make():
            for _ in range(5):
                begun = time.monotonic()
                made = fork(client, **order)
                taken.append(time.monotonic() - begun)
                client.request("DELETE", made["href"])

        thread = threading.Thread(target=make)
        thread.start()
        beside = []
        while thread.is_alive():
            beside += latencies(50)
        beside.sort()
        made = fork(client, **order)
        expect_equal(client.get(f"{made['href']}/state/counter/value").json, 9_999, "the counter without one of 10,000")
        ratio = beside[len(beside) // 2] / alone[len(alone) // 2]
        figures(f"a fork in {min(taken):.2f} to {max(taken):.2f} s; a POST beside it takes {ratio:.2f} of the time (median)")
        expect(max(taken) < 2, f"a fork takes {max(taken):.1f} s")
        expect(ratio < 1.5, f"a POST takes {ratio:.2f} times as long beside a fork")


@pytest.mark.alone
@pytest.mark.rounds(100_000, long=1_000_000)
def test_the_commit_that_broke_something_is_found_in_a_long_history(workspace, rounds, figures):
    with workspace.server().client() as client:
        for start in range(0, rounds, 50_000):
            lines = b"\n".join([add(1)] * min(50_000, rounds - start))
            answer = client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"})
            expect_equal(answer.status, 200, "a load")
            if start == rounds // 2:
                client.commit(action("tasks/add", {"id": 7, "title": "the culprit"}, id="culprit"))
        begun = time.monotonic()
        answer = post(client, "/v1/bisect", {"test": {"path": "/tasks/entities/7", "exists": True}})
        seconds = time.monotonic() - begun
        expect_equal(answer.json["commit"]["id"], "culprit", "the commit")
        figures(f"{rounds} commits: found in {seconds:.2f} s with {answer.json['looks']} looks")
        expect(answer.json["looks"] < 25, f"{answer.json['looks']} looks")
        expect(seconds < 5, f"it takes {seconds:.1f} s")


def test_the_command_finds_the_same_commit_in_the_journal(workspace):
    data = workspace.path("data")
    server = workspace.server(data=data)
    with server.client() as client:
        client.commit(add(1))
        client.commit(action("tasks/add", {"id": 7, "title": "milk"}, id="first"))
        client.commit(action("tasks/remove", {"id": 7}, id="last"))
        client.commit(add(1))

    def bisect(*arguments):
        return subprocess.run(
            [workspace.binary, "journal", "bisect", "--data", data, *arguments], capture_output=True, text=True, timeout=20
        )

    found = bisect("--path", "/counter/value", "--equals", "2")
    expect_equal((found.returncode, json.loads(found.stdout)["version"]), (0, 4), "where the counter becomes 2")
    for test, version in ((("--at-least", "1"), 1), (("--at-least", "1.5"), 4)):
        expect_equal(json.loads(bisect("--path", "/counter/value", *test).stdout)["version"], version, f"{test}")
    gone = bisect("--path", "/tasks/entities/7", "--not", "--since", "2")
    expect_equal(json.loads(gone.stdout)["id"], "last", "the commit that removes the task")
    for arguments, says in [
        (["--path", "/counter/value"], "the test holds already at the beginning"),
        (["--path", "/counter/value", "--equals", "9"], "the test does not hold at the end"),
        (["--path", "counter"], "--path: expected a JSON Pointer, empty or beginning with /"),
        (["--path", "/a~2"], "--path: expected a JSON Pointer, in which each ~ is followed by 0"),
        (["--path", "/counter/value", "--equals", "x"], "--equals is not JSON"),
        (["--path", "/tasks/ids", "--repeats", "--equals", "1"], "--equals cannot be combined with another test"),
        (["--path", "/counter/value", "--at-most", "1", "--at-least", "1"], "--at-least cannot be combined with another test"),
        (["--path", "/counter/value", "--at-most", "many"], "--at-most takes a number"),
        (["--path", "/counter/value", "--at-most", "9"], "the test holds already at the beginning"),
    ]:
        refused = bisect(*arguments)
        expect(refused.returncode != 0 and says in refused.stderr, f"{arguments}: {refused.stderr}")
