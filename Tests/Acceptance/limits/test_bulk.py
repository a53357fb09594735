"""Bodies of many lines, each of which costs the server work."""

import json
import select
import socket
import time

import pytest
from harness.actions import action, add, batch, bulk
from harness.expectations import expect, expect_equal, remains, wait_until
from harness.messages import encode_request

LINES = {"Content-Type": "application/x-ndjson"}


@pytest.mark.alone
def test_2000_lines_that_each_expect_a_whole_state_are_answered_in_little_time_memory_and_text(workspace, figures):
    """The state has 1.3 MB, and none of the lines is met."""
    server = workspace.server(data="none")
    with server.client() as client:
        bulk(client, [action("tasks/add", {"id": number, "title": "x" * 100}) for number in range(10_000)])
        state = client.get("/v1/state")
        size = len(state.body.rstrip(b"\n"))
        expect(size > 1_200_000, "the state is too small:", size)
        before = server.memory_peak_bytes()
        line, changing = add(1, expect=[{"path": "", "value": 0}]) + b"\n", add(1) + b"\n"
        begun = time.monotonic()
        answer = client.request("POST", "/v1/actions", line * 2000, LINES)
        seconds = time.monotonic() - begun
        documents = [json.loads(text) for text in answer.body.splitlines()]
        expect_equal(client.get("/v1/state").cursor, state.cursor, "the cursor after lines that were not met")
        begun = time.monotonic()
        mixed = client.request("POST", "/v1/actions", (line + changing) * 500, LINES)
        seconds_between = time.monotonic() - begun
        counter = client.get("/v1/state/counter").json
    expect_equal(len(documents), 2000, "the number of answers")
    for document in documents:
        expect_equal(
            (document["status"], document["actualBytes"], "actual" in document),
            (412, size, False),
            "status, size and value in the answer to a line",
        )
    expect(len(answer.body) < 2000 * 600, "the answer is too large:", len(answer.body))
    kinds = ["version" if "version" in json.loads(text) else "status" for text in mixed.body.splitlines()]
    expect_equal(kinds, ["status", "version"] * 500, "refusals and commits in turn")
    expect_equal(counter["value"], 500, "the counter after 500 commits")
    grown = server.memory_peak_bytes() - before
    expect(grown < 200 << 20, "the server has grown by so many bytes:", grown)
    expect(seconds < 3, "the lines took so many seconds:", seconds)
    figures(f"{seconds:.2f} s, {seconds_between:.2f} s with 500 commits between, {grown >> 20} MB")


@pytest.mark.alone
def test_8_mb_of_lines_with_1000_unknown_types_do_not_keep_other_requests_waiting(workspace, figures):
    """Each of them has an unknown type of its own; at most the first is compared with the names of the catalogue."""
    server = workspace.server(data="none")
    unknown = [action(f"{'tasks/ad' * 7}{number}") for number in range(1000)]
    lines = b"\n".join(unknown + [add(0, meta={"note": "x" * 30})] * 80_000)
    with server.client() as client, server.client() as other:
        client.send(encode_request("POST", "/v1/actions", lines, LINES))
        longest = asked = 0
        while not select.select([client.socket], [], [], 0.02)[0]:
            begun = time.monotonic()
            expect_equal(other.get("/livez").status, 200, "the status of /livez")
            longest = max(longest, time.monotonic() - begun)
            asked += 1
        documents = [json.loads(text) for text in client.receive().body.splitlines()]
    expect(asked > 0, "NOT CHECKED: the answer came before /livez was asked")
    expect_equal(len(documents), 81_000, "the number of answers")
    expect_equal({document["code"] for document in documents[:1000]}, {"unknown-action"}, "the codes")
    expect_equal(documents[-1]["version"], 80_000, "the version of the last line")
    hints = [number for number, document in enumerate(documents[:1000]) if "did you mean" in document["detail"]]
    expect(hints in ([], [0]), "lines with a hint beside the first:", hints[:5])
    expect(longest < 0.5, "/livez took so many seconds:", longest)
    figures(f"{len(lines) / 1e6:.1f} MB, /livez {longest:.2f} s at most")


def test_a_bulk_load_with_more_than_1000_faulty_lines_is_refused_whole(workspace):
    server = workspace.server(data="none")
    lines = [add(1)] + [action(f"tasks/ad{number}") for number in range(1001)] + [add(1)]
    with server.client() as client:
        before = client.get("/v1").version
        answer = client.request("POST", "/v1/actions", b"\n".join(lines), LINES)
        expect_equal((answer.status, answer.json["code"]), (422, "too-many-faults"), "status and code")
        expect_equal(answer.json["line"], 1002, "the line of the first fault too many")
        expect_equal(client.get("/v1").version, before, "the version afterwards")


def toggles(count):
    """Lines that each take an element out of a list of 10,000, or put it back."""
    return [
        action("tasks/favourite", {"id": number * 7919 % 10_000, "favourite": number // 10_000 % 2 == 1})
        for number in range(count)
    ]


def load_favourites(client):
    for start in range(0, 10_000, 1000):
        tasks = range(start, start + 1000)
        client.commit(batch(*[action("tasks/add", {"id": number, "title": "x"}) for number in tasks]))
        client.commit(batch(*[action("tasks/favourite", {"id": number}) for number in tasks]))


@pytest.mark.alone
def test_an_answer_to_lines_has_at_most_16_mib_of_values(workspace, figures):
    """Each of 2,000 lines changes a list of 49 kB, and asks for it."""
    server = workspace.server(data="none")
    with server.client() as client:
        load_favourites(client)
        before, version = server.memory_peak_bytes(), client.get("/v1").version
        fields = LINES | {"Prefer": "return=representation"}
        few = client.request("POST", "/v1/actions", b"\n".join(toggles(10)), fields)
        many = client.request("POST", "/v1/actions", b"\n".join(toggles(2000)[10:]), fields)
        expect_equal(client.get("/v1").version, version + 2000, "the version after all lines")
    grown = server.memory_peak_bytes() - before
    expect_equal(few.fields.get("preference-applied"), "return=representation", "the preference, applied to few lines")
    expect_equal(many.fields.get("preference-applied"), None, "the preference, applied to many lines")
    documents = [json.loads(text) for text in many.body.splitlines()]
    values = ["state" in document for document in documents]
    expect_equal([document["version"] for document in documents][-1], version + 2000, "the version of the last line")
    expect(any(values) and values == sorted(values, reverse=True), "lines without a value before one with a value")
    expect(12 << 20 < len(many.body) < 18 << 20, "bytes in the answer:", len(many.body))
    expect(grown < 150 << 20, "the server has grown by so many bytes:", grown)
    figures(f"{len(many.body) / 1e6:.1f} MB in the answer, {grown >> 20} MB grown")


def test_a_bulk_load_ends_soon_after_its_client_has_gone(workspace, figures):
    server = workspace.server(data="none")
    with server.client() as client, server.client() as leaving:
        load_favourites(client)
        version = client.get("/v1").version
        leaving.send(encode_request("POST", "/v1/actions", b"\n".join(toggles(100_000)), LINES))
        wait_until(lambda: client.get("/v1").version >= version + 1000, "the load has begun", 20)
        leaving.close()
        time.sleep(0.5)
        after = client.get("/v1").version
        remains(lambda: client.get("/v1").version == after, "the version half a second later", 0.5)
    expect(after < version + 100_000, "NOT CHECKED: the load had ended")
    figures(f"{after - version} lines of 100,000")


def test_a_client_that_has_finished_sending_learns_which_lines_had_their_turn(workspace):
    server = workspace.server(data="none")
    with server.client() as client, server.client() as sending:
        load_favourites(client)
        version = client.get("/v1").version
        sending.send(encode_request("POST", "/v1/actions", b"\n".join(toggles(50_000)), LINES))
        end = time.monotonic() + 20
        while client.get("/v1").version < version + 500:
            expect(time.monotonic() < end, "the load has not begun")
        sending.socket.shutdown(socket.SHUT_WR)
        documents = [json.loads(text) for text in sending.receive().body.splitlines()]
        committed = client.get("/v1").version - version
    kinds = ["version" if "version" in document else document["code"] for document in documents]
    expect(committed < 50_000, "NOT CHECKED, or not ended: all lines are committed")
    expect_equal(kinds.count("version"), committed, "the number of receipts")
    expect(kinds == ["version"] * committed + ["hung-up"] * (50_000 - committed), "lines in another order")


def test_a_stop_in_a_long_bulk_load_ends_it(workspace):
    """The lines are costly, and 1,800 batches."""
    count = 115_000
    server = workspace.server()
    with server.client() as client, server.client() as loading:
        load_favourites(client)
        version = client.get("/v1").version
        loading.send(encode_request("POST", "/v1/actions", b"\n".join(toggles(count)), LINES))
        wait_until(lambda: client.get("/v1").version >= version + 1000, "the load has begun", 20)
        begun = time.monotonic()
        server.terminate()
        documents = [json.loads(text) for text in loading.receive().body.splitlines()]
        expect_equal(server.wait(), 0, "the exit code")
        seconds = time.monotonic() - begun
    expect(seconds < 8, "the stop took so many seconds:", seconds)
    committed = len([document for document in documents if "version" in document])
    expect(1000 <= committed < count, "committed lines:", committed)
    expect_equal(len(documents), count, "the number of answers")
    expect_equal({document["code"] for document in documents[committed:]}, {"draining"}, "the codes of the others")
    server.start()
    with server.client() as client:
        expect_equal(client.get("/v1").version, version + committed, "the version after the restart")


@pytest.mark.parametrize("actions_max", [10, 100])
def test_a_small_mailbox_takes_a_long_bulk_load_whole(workspace, actions_max):
    server = workspace.server(data="none", mailbox_actions_max=actions_max)
    with server.client() as client:
        bulk(client, [add(1)] * 5000)
        expect_equal(client.get("/v1/state/counter").json["value"], 5000, "the counter")
