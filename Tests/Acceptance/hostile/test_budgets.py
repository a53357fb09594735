"""Budgets in bytes: where they are written, and what a client is told that has used its share."""

import time

import pytest
from harness.actions import action, add
from harness.expectations import expect, expect_equal, paced, wait_until
from harness.hostile.attacks import load_tasks
from harness.hostile.connections import Crowd
from harness.messages import encode_request, parse_answer
from harness.refusals import Case, judge_problem
from harness.siege import MEBIBYTE


@pytest.mark.parametrize("setting", ["memory_bytes_max"])
def test_a_budget_is_a_setting_and_stands_in_get_v1(workspace, setting):
    known = workspace.known(**{setting: 64 * MEBIBYTE}, body_bytes_max=4 * MEBIBYTE)
    expect(known, f"the server has no setting {setting}")
    server = workspace.server(data="none", **known)
    with server.client() as client:
        expect_equal(
            client.get("/v1").json["limits"].get(setting), 64 * MEBIBYTE, f"{setting} in the limits of GET /v1"
        )


def answers_of(crowd, seconds=3):
    """The whole answers that came on the connections, one each at most."""
    answers = []
    end = time.monotonic() + seconds
    for connection in crowd.sockets:
        buffer = bytearray()
        while time.monotonic() < end and not parse_answer(buffer):
            connection.settimeout(0.01)
            try:
                part = connection.recv(1 << 20)
            except TimeoutError:
                break
            except OSError:
                break
            if not part:
                break
            buffer += part
        if parsed := parse_answer(buffer):
            answers.append(parsed[0])
    return answers


def test_bodies_over_the_share_of_an_address_are_refused_with_429_or_503_and_retry_after(workspace):
    """32 bodies of 8 MB that lack their last bytes, at a budget of 128 MiB; another address commits 4 MB meanwhile."""
    server = workspace.server(data="none", **workspace.known(memory_bytes_max=128 * MEBIBYTE))
    large = encode_request("POST", "/v1/actions", add(1, meta={"a": "x" * 4_000_000}))

    crowd = Crowd(server.port)
    request = encode_request(
        "POST", "/v1/actions", None, {"Content-Type": "application/json", "Content-Length": 8 << 20}
    )
    crowd.open(32, request + b" " * (4 << 20))
    for _ in range(15):
        for connection in crowd.sockets:
            connection.settimeout(0.02)
            crowd.send(connection, b" " * (256 << 10))
    answers = answers_of(crowd)
    expect(answers, "no body was refused")
    for answer in answers:
        judge_problem(answer, Case("", b"", answer.status))
        expect(answer.status in (429, 503), "the status:", answer)
        expect("retry-after" in answer.fields, "no Retry-After:", answer)
    with server.client(timeout=5) as client:
        client.send(large)
        expect_equal(client.receive().status, 200, "the status of a commit from another address")
    crowd.leave()
    time.sleep(1)
    with server.client(timeout=5) as client:
        client.send(large)
        expect_equal(client.receive().status, 200, "the status of a commit a second after the end")


def test_waits_for_large_values_over_the_budget_are_refused_with_429_or_503(workspace):
    server = workspace.server(data="none", **workspace.known(memory_bytes_max=16 * MEBIBYTE, body_bytes_max=MEBIBYTE))
    crowd = Crowd(server.port)
    crowd.open(1500, encode_request("GET", "/v1/state/tasks?wait=20&until=[" + ",".join(["1"] * 1650) + "]"))
    answers = answers_of(crowd, 3)
    expect(answers, "no wait was refused: 1,500 times 52 kB in a budget of 16 MiB")
    for answer in answers:
        expect(answer.status in (429, 503) and "retry-after" in answer.fields, "a wait was answered", answer)
    with server.client(timeout=5) as client:
        answer = client.get("/v1/state/counter/value?wait=0.1&until=7")
        expect_equal(answer.status, 304, "the status of a short wait from another address")
    crowd.leave()


def test_a_412_holds_a_short_value_and_names_the_size_of_a_long_one(workspace):
    server = workspace.server(data="none")
    with server.client() as client:
        load_tasks(client, 2000, 1000)
        long = client.post(add(1, expect=[{"path": "/tasks", "value": 0}]))
        short = client.post(add(1, expect=[{"path": "/counter/value", "value": 7}]))
    expect_equal((long.status, short.status), (412, 412), "the statuses")
    expect_equal(short.json["actual"], 0, "the value of a part of one byte")
    expect(len(long.body) < 64 << 10, "the answer for a part of 2 MB has so many bytes:", len(long.body))


def test_an_idempotency_ledger_that_one_address_has_filled_takes_keys_of_others(workspace):
    """Also after a restart, because keys are kept in the journal."""
    server = workspace.server(idempotency_keys_max=500)
    crowd = Crowd(server.port)
    fields = {"Content-Type": "application/x-ndjson", "Idempotency-Key": "hostile-0"}
    for number in range(5):
        lines = b"\n".join([add(1)] * 200)
        request = encode_request("POST", "/v1/actions", lines, fields | {"Idempotency-Key": f"hostile-{number}"})
        connection = crowd.join()
        crowd.send(connection, request)
        buffer = bytearray()
        while not parse_answer(buffer):
            buffer += connection.recv(1 << 20)
    faults = []
    for when in ("before", "after"):
        with server.client() as client:
            for number in range(3):
                answer = client.post(add(1), Idempotency_Key=f"quiet-{when}-{number}")
                if answer.status != 200:
                    faults.append(f"{answer.status} {answer.json['code']} {when} a restart")
        if when == "before":
            server.stop()
            server.start()
    crowd.leave()
    expect(not faults, f"keys of another address were refused: {faults}")


def test_the_oldest_key_of_an_address_is_not_forgotten_early_for_its_newest(workspace):
    """An address that has used its share gets a refusal, and its keys stay true."""
    server = workspace.server(idempotency_keys_max=50)
    with server.client() as client:
        answers = [client.post(add(1), Idempotency_Key=f"key-{number}") for number in range(80)]
        taken = [number for number, answer in enumerate(answers) if answer.status == 200]
        refused = [answer for answer in answers if answer.status != 200]
        expect(taken and refused, "NOT CHECKED: all or none were taken")
        for answer in refused:
            expect(answer.status in (429, 503) and "retry-after" in answer.fields, "a key was refused with", answer)
        before = client.get("/v1").version
        for number in taken:
            again = client.post(add(1), Idempotency_Key=f"key-{number}")
            expect_equal(again.json, answers[number].json, f"the receipt of key {number} again")
        expect_equal(client.get("/v1").version, before, "the version after all keys were sent again")


@pytest.mark.alone
def test_streams_that_are_not_read_do_not_hold_their_values(workspace):
    """100 streams of a state of 2 MB that changes, at a budget of 48 MiB."""
    budget = workspace.known(memory_bytes_max=48 * MEBIBYTE, body_bytes_max=3 * MEBIBYTE)
    server = workspace.server(data="none", history_bytes_max=MEBIBYTE, **budget)
    with server.client() as client:
        load_tasks(client, 2000, 1000)
        before = server.memory_bytes()
        crowd = Crowd(server.port, receive_bytes=4096)
        crowd.open(100, encode_request("GET", "/v1/state/tasks", fields={"Accept": "text/event-stream"}))
        for number in paced(range(100), 0.01):
            client.commit(action("tasks/rename", {"id": number, "title": "z" * 1000}))
        grown = server.memory_peak_bytes() - before
        crowd.leave()
    expect(grown < 64 * MEBIBYTE, f"the server grew by {grown / MEBIBYTE:.0f} MiB for streams that nobody reads")


@pytest.mark.parametrize("form", [pytest.param("chunked", marks=pytest.mark.chunks), "declared"])
def test_bodies_whose_client_has_left_within_them_give_their_share_back_at_once(workspace, form):
    """The client closes behind its last bytes, so that both can arrive together."""
    server = workspace.server(data="none")
    head = {"chunked": b"Transfer-Encoding: chunked", "declared": b"Content-Length: 8100000"}[form]
    body = b" " * 1_000_000 if form == "declared" else b"f4240\r\n" + b" " * 1_000_000 + b"\r\n"
    request = b"POST /v1/actions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for _ in range(16):
        with server.client() as leaving:
            leaving.send(request + head + b"\r\n\r\n" + body * 8)
    begun = time.monotonic()

    with server.client() as client:
        wait_until(lambda: server.metric(client, "connections") == 1, "the connections to be closed", seconds=3)
        answer = client.post(add(1) + b" " * 4_000_000)

    expect_equal(answer.status, 200, f"a body of 4 MB from the same address after {time.monotonic() - begun:.1f} s")
