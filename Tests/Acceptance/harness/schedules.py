"""Scheduled actions, and a judge of when and how often a history has them."""

import datetime
import json

from harness.expectations import expect, expect_equal

DOCUMENT = {"domain": "document"}


def later(uid, after, name=None, **more):
    """Counts a number of its own, so many seconds later."""
    schedule = {"after": after} if name is None else {"after": after, "name": name}
    return json.dumps({"type": "document/increment", "payload": {"path": f"/n/{uid}"}, "schedule": schedule, **more}).encode()


def milliseconds(text):
    return round(datetime.datetime.fromisoformat(text).timestamp() * 1000)


def changes(client):
    """Every commit that the server keeps."""
    found, cursor = [], "oldest"
    while True:
        page = client.get(f"/v1/changes?since={cursor}&limit=1000").json
        found += page["changes"]
        cursor = page["next"]
        if not page["more"]:
            return found


def judge(commits):
    """Follows the commits: each scheduled action is committed once, in the order of the times, and never early.

    Returns how many milliseconds late each was, and the names that are still to come.
    """
    pending, late = {}, []
    for commit in commits:
        actions = commit["action"] if isinstance(commit["action"], list) else [commit["action"]]
        time = milliseconds(commit["time"])
        for action in actions:
            payload = action.get("payload", {})
            if action["type"] == "storekeeper/schedule":
                due = time + round(payload["after"] * 1000)
                name = payload.get("name", commit["cursor"])
                pending[name] = (due, commit["version"], payload["action"]["payload"])
            elif action["type"] == "storekeeper/unschedule":
                expect(payload["name"] in pending, f"version {commit['version']} takes back what is not there")
                del pending[payload["name"]]
            elif "cause" in commit:
                name, first = min(pending.items(), key=lambda entry: entry[1][:2])
                expect_equal(payload, first[2], f"the action of version {commit['version']}, which is not the one that was due,")
                expect(time >= first[0], f"version {commit['version']} is {first[0] - time} ms early")
                late.append(time - first[0])
                del pending[name]
    return late, pending
