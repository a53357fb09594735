"""Clients of every kind at once; .ci/sanitize runs it against servers that the sanitizers watch."""

import os
import time

import pytest

from harness.actions import action, add, batch
from harness.client import Client, ConnectionLost
from harness.expectations import expect, expect_equal
from harness.followers import judge_history
from harness.hostile.attacks import (
    NDJSON,
    bombs,
    bulk,
    chunk_dribble,
    churning_streams,
    connects,
    floods,
    hang_ups,
    post,
    rename,
    slow_bytes,
    unfinished_bodies,
    unread,
    unread_streams_and_commits,
    waits_and_commits,
)
from harness.messages import encode_request
from harness.streams import EVENTS, LINES, open_stream

ADDS = encode_request("POST", "/v1/actions", add(1))
BROKEN = [
    b"GET /v1 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST /v1/actions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
    b"GET /v1/state?" + b"&a=b" * 200 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/state HTTP/1.1\r\nHost: localhost\r\nCookie: " + b"c" * 30_000 + b"\r\n\r\n",
    b"POST /v1/actions HTTP/1.1\r\nHost: localhost\r\nContent-Length: +4\r\n\r\n{}{}",
    b"\x16\x03\x01\x02\x00\x01\x00",
]
ATTACKS = [
    bombs(lambda number: BROKEN[number % len(BROKEN)]),
    bombs(lambda number: encode_request("GET", f"/v1/state/tasks?version={number % 90 + 3}")),
    bombs(bulk([b'{"type":"counter/ad"}'] * 2000)),
    bombs(post(batch(*[action("tasks/rename", {"id": 0, "title": "z" * 100})] * 1000))),
    chunk_dribble(4),
    churning_streams(8, "/v1/state/tasks"),
    churning_streams(8, "/v1/changes?since=oldest"),
    connects(),
    connects(ADDS[:40]),
    floods(encode_request("GET", "/v1/state/tasks"), depth=8),
    hang_ups(20, encode_request("GET", "/v1/changes?since=now&wait=20")),
    slow_bytes(10, encode_request("GET", "/v1/state/counter"), 0.02),
    unfinished_bodies(8, 1 << 20),
    unread(encode_request("GET", "/v1/state"), 20, copies=20),
    unread_streams_and_commits(10, "/v1/state/tasks", lambda number: post(rename(number, 20_000))),
    waits_and_commits(
        20, encode_request("GET", "/v1/state/tasks/entities/0?wait=20"), lambda number: post(rename(number))
    ),
]


def again(port, seconds, turn):
    """Runs `turn`, with a client and a number, until the time is up; returns the sum of what it returns."""
    end = time.monotonic() + seconds
    total, number, client = 0, 0, None
    while time.monotonic() < end:
        try:
            client = client or Client(port)
            total += turn(client, number)
        except ConnectionLost:
            client = None
        number += 1
    return total


def posts(client, number):
    """Commits something; returns how much the counter has grown."""
    time.sleep(0.002)
    kind = number % 5
    if kind == 0:
        client.commit(add(1))
    elif kind == 1:
        client.commit(batch(add(1), add(1), action("tasks/rename", {"id": 0, "title": f"{number}"})))
    elif kind == 2:
        answer = client.request("POST", "/v1/actions", b"\n".join([add(1)] * 5), NDJSON)
        expect_equal(answer.status, 200, "the status of five lines")
    elif kind == 3:
        # The same key twice counts once.
        for _ in range(2):
            client.commit(add(1), Idempotency_Key=f"{os.getpid()}-{number}")
    else:
        answer = client.request("POST", "/v1/actions", add(1), {"Content-Type": "application/json", "Prefer": "wait=20"})
        expect_equal(answer.status, 200, "the status of a POST that waits")
    return (1, 2, 5, 1, 1)[kind]


def reads(client, number):
    """Reads states, whole and in part, past ones and unchanged ones."""
    targets = ["/v1/state", "/v1/state/counter", "/v1/state?pretty", "/v1/views/count", "/v1", "/metrics", "/v1/actions"]
    answer = client.get(targets[number % len(targets)])
    expect_equal(answer.status, 200, "the status of a GET")
    tag = answer.fields.get("etag")
    if tag:
        expect(client.get(targets[number % len(targets)], If_None_Match=tag).status in (200, 304), "a GET with its tag")
    return 1


def waits(client, number):
    """Waits for a change, with and without a debounce."""
    more = ("", "&debounce=20", "&path=/counter", "&as=keyed")[number % 4]
    answer = client.get(f"/v1/changes?since=now&wait=1{more}" if number % 2 else "/v1/state/counter?wait=1")
    expect(answer.status in (200, 204, 304), "the status of a wait", answer)
    return 1


def streams(server, seconds):
    """Opens streams, reads for a moment, and leaves; returns how many events came."""
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        for target, form in (("/v1/state/counter", EVENTS), ("/v1/changes?since=oldest", LINES)):
            try:
                with open_stream(server, target, form=form) as stream:
                    count += len(stream.watch(0.3))
            except ConnectionLost:
                pass
    return count


def attacks(port, seconds):
    """Each hostile client for two seconds, again and again; returns how many there were."""
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end:
        leave = min(end, time.monotonic() + 2)
        ATTACKS[count % len(ATTACKS)](port, lambda: time.monotonic() >= leave)
        count += 1
    return count


@pytest.mark.rounds(8, long=600)
def test_a_mixed_load_loses_nothing_and_the_server_ends_as_it_should(workspace, figures, rounds):
    """So many seconds."""
    seconds = rounds
    server = workspace.server(memory_bytes_max=128 << 20, journal_commits_max=20_000)
    with server.client() as client:
        client.commit(batch(*[action("tasks/add", {"id": number, "title": f"{number}"}) for number in range(100)]))
        state, cursor = client.get("/v1/state").json, client.get("/v1/state").fields["state-cursor"]
    workers = {
        "posts": [workspace.worker(again, server.port, seconds, posts) for _ in range(2)],
        "reads": [workspace.worker(again, server.port, seconds, reads) for _ in range(2)],
        "waits": [workspace.worker(again, server.port, seconds, waits) for _ in range(4)],
        "events": [workspace.worker(streams, server, seconds) for _ in range(2)],
        "attacks": [workspace.worker(attacks, server.port, seconds)],
    }
    counts = {name: sum(worker.result(seconds + 60) for worker in group) for name, group in workers.items()}
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter").json["value"], counts["posts"], "the counter")
        version = client.get("/v1").fields["state-cursor"]
        if client.get(f"/v1/changes?since={cursor}&limit=1").status == 200:
            judge_history(client, state, cursor)
    server.stop()
    expect(all(counts.values()), f"some clients did nothing: {counts}")
    figures(", ".join(f"{count} {name}" for name, count in counts.items()) + f", version {version}")
