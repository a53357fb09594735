"""Clients that follow /v1/changes page by page, and the judge of a whole history."""

import copy
import json
import time

from harness.client import ConnectionLost, connect
from harness.expectations import expect, expect_equal
from harness.records import Record


def follow(port, state, cursor, target, limit, seconds):
    """Follows /v1/changes until `target`, a shared number, is known and reached; reconnects with its cursor.

    Returns the record, and how often the connection was lost.
    """
    record = Record(state, cursor)
    losses = 0
    client = None
    end = time.monotonic() + seconds
    while not 0 <= target.value <= record.version:
        expect(time.monotonic() < end, f"a follower is at version {record.version}, not at {target.value}")
        client = client or connect(lambda: port.value)
        try:
            answer = client.get(f"/v1/changes?since={record.epoch}.{record.version}&wait=2&limit={limit}")
        except ConnectionLost:
            losses, client = losses + 1, None
            continue
        expect(answer.status == 200, "a follower was answered", answer)
        page = answer.json
        expect(len(page["changes"]) <= limit, f"{len(page['changes'])} changes, asked for {limit}")
        record.take(page)
        if answer.closes:
            client = None
    return record, losses


def read_history(client, since, limit=1000):
    """Every change after a cursor, by plain requests, as pages."""
    while True:
        answer = client.get(f"/v1/changes?since={since}&limit={limit}")
        expect(answer.status == 200, "the history was answered", answer)
        page = answer.json
        yield page
        if not page["more"]:
            return
        since = page["next"]


def judge_history(client, state, cursor):
    """Reads everything after a cursor, and compares where it leads with the server's state. Returns the record."""
    record = Record(copy.deepcopy(state), cursor)
    for page in read_history(client, cursor):
        record.take(page)
    now = client.get("/v1/state")
    expect_equal(now.version, record.version, "the version of the state after the whole history")
    expect_equal(record.state, now.json, "the state that the patches lead to")
    # As text too: the order of keys is part of the ETag.
    expect_equal(json.dumps(record.state["counter"]), json.dumps(now.json["counter"]), "the counter as text")
    return record
