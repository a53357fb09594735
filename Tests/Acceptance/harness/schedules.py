"""Scheduled actions, and a judge of when and how often a history has them."""

import datetime
import heapq
import json
import math

from harness.expectations import expect, expect_equal

# A client has a quarter of the schedule.
DOCUMENT = {"domain": "document", "schedule_max": 400_000, "schedule_bytes_max": 1 << 28}


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


class Pending:
    """What is scheduled, as the commits of a history say it."""

    def __init__(self):
        # By name: the time, the version and the position in its commit; and the payload.
        self.orders, self.payloads = {}, {}
        self.queue = []
        # The scheduled actions that were committed: name, payload, the time that was wanted, and that of the commit.
        self.fired = []

    def take(self, commit):
        """Follows a commit: a scheduled action is the one whose turn it was, and is not early."""
        time, version = milliseconds(commit["time"]), commit["version"]
        actions = commit["action"] if isinstance(commit["action"], list) else [commit["action"]]
        for index, action in enumerate(actions):
            payload = action.get("payload", {})
            if action["type"] == "storekeeper/schedule":
                name = payload.get("name", commit["cursor"])
                at = time + math.ceil(payload["after"] * 1000) if "after" in payload else milliseconds(payload["at"])
                due = max(time, at)
                self.orders[name], self.payloads[name] = (due, version, index), payload["action"]["payload"]
                heapq.heappush(self.queue, (self.orders[name], name))
            elif action["type"] == "storekeeper/unschedule":
                expect(payload["name"] in self.orders, f"version {version} takes back what is not there")
                del self.orders[payload["name"]]
            elif "cause" in commit:
                order, name = self.first()
                expect_equal(
                    payload, self.payloads[name],
                    f"the action of version {version}, against the one of {name}, which was due first")
                expect(time >= order[0], f"version {version} is {order[0] - time} ms early")
                self.fired.append((name, payload, order[0], time))
                del self.orders[name]

    def first(self):
        """The order and the name of what is due first."""
        while self.queue and self.orders.get(self.queue[0][1]) != self.queue[0][0]:
            heapq.heappop(self.queue)
        expect(self.queue, "an action was dispatched, and none was scheduled")
        return self.queue[0]


def judge(commits):
    """Follows the commits: each scheduled action is committed once, in the order of the times, and never early.

    Returns how many milliseconds late each was, and the names that are still to come.
    """
    pending = Pending()
    for commit in commits:
        pending.take(commit)
    return [time - due for _, _, due, time in pending.fired], pending.orders
