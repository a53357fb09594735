"""Posts that wait, values that differ in bytes only, and states that nest deeply."""

import random
import socket
import subprocess
import threading
import time

import pytest
from harness.actions import action, add
from harness.expectations import expect, expect_equal
from harness.messages import encode_request
from harness.refusals import Case, judge_problem
from harness.waits import ends, parked

# The same letter twice: composed, and as a letter and an accent. A program that compares texts by canonical
# equivalence takes them for the same; they are different bytes, and different values of JSON.
COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


@pytest.fixture
def slow_films(workspace):
    """The base URL of a server that takes connections and never answers, so that an effect is under way."""
    listener = socket.create_server(("127.0.0.1", 0))
    workspace.at_close.append(listener.close)
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_post_that_waits_for_its_cascade_counts_as_a_waiter(workspace, slow_films):
    server = workspace.server(data="none", films_base_url=slow_films, films_timeout_seconds=5, films_retries=0)
    with server.client() as client, server.client() as poster:
        poster.send(encode_request("POST", "/v1/actions", action("films/load"), {"Prefer": "wait=4"}))
        parked(server, client, 1)
        expect(poster.receive().status in (200, 202), "the answer to the post")
        parked(server, client, 0)


def test_a_post_does_not_wait_where_there_are_too_many_waiters(workspace, slow_films):
    """Its wait is a preference (RFC 7240, section 2): the action is committed, and the answer does not claim a wait."""
    server = workspace.server(
        data="none", films_base_url=slow_films, films_timeout_seconds=5, films_retries=0, waiters_max=1
    )
    with server.client() as client, server.client() as waiting:
        waiting.send(encode_request("GET", "/v1/changes?since=now&wait=4"))
        cursor = client.get("/v1").json["cursor"]
        waiting.receive()  # `now` never waits
        waiting.send(encode_request("GET", f"/v1/changes?since={cursor}&wait=4"))
        parked(server, client, 1)
        answer = client.post(action("films/load"), Prefer="wait=2")
        expect_equal((answer.status, answer.fields.get("preference-applied")), (200, None), "status and preference")
        expect("settled" not in answer.json, "the answer tells of a cascade that was not waited for:", answer)
        expect_equal(client.post(add(1)).status, 200, "a post that does not wait")


def test_texts_of_equal_letters_and_different_bytes_are_a_difference(server):
    """In the receipt, the tag, the patch and the keyed difference alike."""
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": COMPOSED}))
        before = client.get("/v1/state/tasks")
        receipt = client.commit(action("tasks/rename", {"id": 1, "title": DECOMPOSED}))
        after = client.get("/v1/state/tasks")
        page = client.get(f"/v1/changes?since={before.cursor}").json
        keyed = client.get(f"/v1/state/tasks?as=keyed&since={before.cursor}").json
        by_commit = client.get(f"/v1/changes?since={before.cursor}&as=keyed").json
    expect_equal(after.json["entities"]["1"]["title"], DECOMPOSED, "the title")
    expect_equal(receipt["changed"], True, "`changed` of the receipt")
    expect(before.fields["etag"] != after.fields["etag"], "the tag stays while the bytes change")
    expect(page["changes"][0]["patch"], "the patch is empty")
    wanted = {"/tasks/entities": {"changed": [1]}}
    expect_equal(keyed["collections"], wanted, "the keyed difference")
    expect_equal(by_commit["changes"][0]["keyed"], wanted, "the keyed difference of the commit")


def test_a_test_and_a_wait_compare_bytes(server):
    with server.client() as client:
        client.commit(action("navigation/set", {"route": [COMPOSED]}))
        answer = client.post(add(1, expect=[{"path": "/navigation/route/0", "value": DECOMPOSED}]))
        expect_equal(answer.status, 412, "the status of a test for other bytes")
        client.commit(add(1, expect=[{"path": "/navigation/route/0", "value": COMPOSED}]))
        other = "%22cafe%CC%81%22"
        answer = client.get(f"/v1/state/navigation/route/0?wait=0.1&until={other}")
        expect_equal(answer.status, 304, "the status of a wait for other bytes")


@pytest.mark.parametrize("depth_max", [None, 4, 512])
def test_what_is_nested_is_refused_or_can_be_read_back_after_a_restart(workspace, depth_max):
    server = workspace.server(**{} if depth_max is None else {"depth_max": depth_max})
    taken, refused = [], []
    for depth in (
        1,
        2,
        3,
        4,
        5,
        10,
        58,
        60,
        61,
        62,
        63,
        64,
        65,
        100,
        506,
        508,
        509,
        510,
        511,
        512,
        513,
        5000,
        1_000_000,
    ):
        meta = '{"a":' * depth + "1" + "}" * depth
        body = b'{"type":"counter/add","payload":{"amount":1},"meta":%s}' % meta.encode()
        with server.client() as client:
            answer = client.post(body)
        if answer.status == 200:
            taken.append((answer.json["id"], depth))
        else:
            judge_problem(answer, Case("", b"", 400, "too-deep"))
            refused.append(depth)
    expect(taken and refused, "NOT CHECKED: all or none were taken:", refused)
    for again in (False, True):
        if again:
            server.restart()
        with server.client() as client:
            for name, depth in taken:
                answer = client.get(f"/v1/actions/{name}")
                expect_equal(answer.status, 200, f"the status of a commit with a meta of depth {depth}")
                expect_equal(answer.body.count(b'{"a":'), depth, "the depth that came back")
            page = client.get("/v1/changes?since=oldest&limit=1000")
            expect_equal(page.status, 200, "the status of all commits")
            expect_equal(page.body.count(b'"version"'), len(taken), "the number of commits")
    server.stop()
    exported = subprocess.run(
        [workspace.binary, "journal", "export", "--data", server.data], capture_output=True, timeout=30
    )
    expect_equal(exported.returncode, 0, f"the exit code of an export, which says {exported.stderr[-300:]}")
    imported = subprocess.run(
        [workspace.binary, "journal", "import", "--data", workspace.path("copy")],
        input=exported.stdout,
        capture_output=True,
        timeout=30,
    )
    expect_equal(imported.returncode, 0, f"the exit code of an import, which says {imported.stderr[-300:]}")


@pytest.mark.rounds(150, long=1500)
def test_a_request_that_arrives_while_the_one_before_it_is_woken_is_answered_or_cut_off(workspace, figures, rounds):
    """Its bytes arrive within the same microseconds as the commit that ends the wait. Never silence."""
    server = workspace.server(data="none")
    chance = random.Random(workspace.seed)
    answered = closed = 0
    with server.client() as witness:
        own = encode_request("GET", "/v1/state/counter/value")
        for number in range(rounds):
            now = witness.get("/v1/state/counter/value")
            wait = encode_request("GET", "/v1/state/counter/value?wait=5", fields={"If-None-Match": now.fields["etag"]})
            with server.client(timeout=3) as client:
                client.send(wait)
                parked(server, witness, 1)
                waker = threading.Thread(target=witness.commit, args=(add(1),))
                pause = chance.uniform(0, 0.001)
                waker.start()
                end = time.monotonic() + pause
                while time.monotonic() < end:
                    pass
                client.send(own)
                first = client.receive()
                waker.join()
                expect_equal((first.status, first.json), (200, now.json + 1), f"the answer to wait {number}")
                if first.closes:
                    closed += 1
                    expect(ends(client), "something came behind an answer that closes the connection")
                else:
                    answered += 1
                    expect_equal(client.receive().json, now.json + 1, "the answer to the request behind the wait")
    figures(f"{answered} answered, {closed} cut off with the answer before them")
