"""Bodies of many lines, each of which costs the server work."""

import json
import select
import time

from harness.actions import action, add, bulk
from harness.expectations import expect, expect_equal
from harness.messages import encode_request

LINES = {"Content-Type": "application/x-ndjson"}


def test_2000_lines_that_each_expect_a_whole_state_are_answered_in_little_time_memory_and_text(workspace, figures):
    """The state has 1.3 MB, and none of the lines is met."""
    server = workspace.server(data="none")
    with server.client() as client:
        bulk(client, [action("tasks/add", {"id": number, "title": "x" * 100}) for number in range(10_000)])
        state = client.get("/v1/state")
        size = len(state.body)
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
