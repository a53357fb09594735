"""Actions of the showcase's domains as JSON."""

import json

from harness.expectations import expect, expect_equal, paced
from harness.messages import version_of


def action(kind, payload=None, **others):
    body = {"type": kind, **others}
    if payload is not None:
        body["payload"] = payload
    return json.dumps(body, separators=(",", ":")).encode()


def add(amount, **others):
    return action("counter/add", {"amount": amount}, **others)


def batch(*actions):
    return b"[" + b",".join(actions) + b"]"


def bulk(client, actions, **fields):
    body = b"\n".join(actions)
    answer = client.request("POST", "/v1/actions", body, {"Content-Type": "application/x-ndjson", **fields})
    expect_equal(answer.status, 200, "the status of a bulk load")
    problems = [line for line in answer.body.split(b"\n") if line and b'"version"' not in line]
    expect(not problems, problems[:2])


TITLE = "x" * 8000


def renames(first, count):
    return [action("tasks/rename", {"id": 1, "title": f"{number} {TITLE}"}) for number in range(first, first + count)]


def commit_large_renames(client, counts, seconds_between=0.0):
    """Commits so many renames of one task with 8 kB each, pauses, and repeats; returns the sum of their bytes."""
    first = version_of(client.get("/v1").json["cursor"])
    sent = 0
    for count in paced(counts, seconds_between):
        bulk(client, renames(first, count))
        first, sent = first + count, sent + count * (len(TITLE) + 6)
    return sent
