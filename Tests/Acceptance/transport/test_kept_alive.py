"""Connections that go on after a wait, and requests that come behind one."""


import pytest

from harness.actions import add
from harness.expectations import expect, expect_equal, paced, wait_until
from harness.messages import encode_request
from harness.waits import ends, parked


def test_a_connection_goes_on_after_a_wait_200_times_in_turn(workspace, figures):
    """The requests on the one connection are post, get, wait, in turn."""
    figures(alternate(workspace.server(data="none"), 200))


def test_a_connection_of_two_loops_goes_on_after_a_wait_60_times_in_turn(workspace, figures):
    figures(alternate(workspace.server(data="none", loops=2), 60))


def alternate(server, turns):
    value = 0
    with server.client() as client, server.client() as other:
        port = client.socket.getsockname()
        for turn in range(turns):
            value += 1
            expect_equal(client.commit(add(1))["version"], value, "the version of a receipt")
            got = client.get("/v1/state/counter")
            expect_equal((got.json, got.version), ({"value": value}, value), "value and version")
            if turn % 3 == 0:
                target, fields = f"/v1/changes?since={got.cursor}&wait=10", {}
            else:
                target, fields = "/v1/state/counter?wait=10", {"If-None-Match": got.fields["etag"]}
            if turn % 10 == 9:  # its time is up
                answer = client.request("GET", target.replace("wait=10", "wait=0.05"), fields=fields)
                expect(answer.status == 304 or answer.json["changes"] == [], "a wait where nothing came:", answer)
                expect(not answer.closes, "the connection was closed after a wait:", answer)
                continue
            client.send(encode_request("GET", target, fields=fields))
            if turn % 2:
                wait_until(lambda: server.metric(other, "waiters") == 1, "the wait")
            value += 1
            other.commit(add(1))
            answer = client.receive()
            version = answer.json["changes"][-1]["version"] if turn % 3 == 0 else answer.json["value"]
            expect_equal(
                (answer.status, version, answer.closes),
                (200, value, False),
                "the answer to a wait, and whether it closes",
            )
        expect_equal(client.socket.getsockname(), port, "the client's own port")
        expect_equal(server.metric(other, "connections"), 2, "connections")
    return f"{value} commits"


@pytest.mark.alone
def test_a_request_behind_a_waiting_one_is_never_answered_wrongly_nor_done_without_an_answer(workspace, figures):
    server = workspace.server(data="none")
    with server.client() as witness:
        own = encode_request("GET", "/v1/state/counter/value")
        behinds = {
            "a get": own,
            "two gets": own * 2,
            "a post": encode_request("POST", "/v1/actions", add(1000)),
            "half a request": own[:10],
            "another wait": encode_request("GET", "/v1/changes?since=now&wait=1"),
            "much": encode_request("POST", "/v1/actions", b" " * 40_000),
        }
        texts = []
        for name, behind in behinds.items():
            for pause in (None, 0.0, 0.05):
                for ahead in (b"", own):
                    texts.append(judge_pipelined(server, witness, f"{name} {pause} {len(ahead)}", ahead, behind, pause))
        expect_equal(witness.get("/v1/state/counter/value").json % 1000, len(texts), "the counter")
    figures(f"{sum(texts)} of {len(texts)} answers closed the connection")


def judge_pipelined(server, witness, name, ahead, behind, pause):
    """Sends a wait and something behind it; whether the answer closed the connection."""
    now = witness.get("/v1/state/counter/value")
    wait = encode_request("GET", "/v1/state/counter/value?wait=10", fields={"If-None-Match": now.fields["etag"]})
    with server.client(timeout=5) as client:
        for piece in [ahead + wait + behind] if pause is None else paced([ahead + wait, behind], pause):
            client.send(piece)
        if ahead:
            expect_equal(client.receive().json, now.json, f"the answer to the request before the wait ({name})")
        parked(server, witness, 1)
        expect(server.cpu_seconds_of(0.02) < 0.02, f"the server is busy with what cannot be read yet ({name})")
        version = witness.commit(add(1))["version"]
        answer = client.receive()
        expect_equal((answer.status, answer.version, answer.json), (200, version, now.json + 1), f"the answer ({name})")
        if answer.closes:
            expect(ends(client), f"something came behind an answer that closes the connection ({name})")
            expect_equal(
                witness.get("/v1").json["version"], version, f"the version: nothing was done unanswered ({name})"
            )
            return True
        if behind.startswith(b"POST") and b"1000" in behind:
            expect_equal(client.receive().json["version"], version + 1, f"the receipt behind the wait ({name})")
        elif b"since=now" in behind:
            expect_equal(client.receive().json["changes"], [], f"the page behind the wait ({name})")
        elif behind.startswith(b"POST"):
            expect_equal(client.receive().status, 400, f"the status of the post behind the wait ({name})")
        else:
            if len(behind) < 20:
                client.send(encode_request("GET", "/v1/state/counter/value")[len(behind) :])
            for _ in range(max(1, behind.count(b"\r\n\r\n"))):
                expect_equal(client.receive().json, answer.json, f"the answer to the request behind the wait ({name})")
        return False
