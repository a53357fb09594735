"""Uses the client that openapi-python-client has made: dispatches, dry-runs, long-polls a state, and follows.

Usage: python3 generated_client.py URL, with the package storekeeper_client in the path.
"""

import sys
import threading
import time

from storekeeper_client import Client
from storekeeper_client.api.actions import dispatch_actions
from storekeeper_client.api.changes import get_changes
from storekeeper_client.api.state import get_part, get_part_of_part
from storekeeper_client.models import Changes, CounterAdd, CounterAddPayload, DryRun, Problem, Receipt

client = Client(base_url=sys.argv[1], timeout=30)


def add(amount, **options):
    body = CounterAdd(type_="counter/add", payload=CounterAddPayload(amount=amount))
    return dispatch_actions.sync_detailed(client=client, body=body, **options)


def check(what, condition):
    if not condition:
        raise SystemExit(f"not so: {what}")


# Dispatch, and the same again with its key.
first = add(2, idempotency_key='"a"')
check("a receipt", first.status_code == 200 and isinstance(first.parsed, Receipt) and first.parsed.version == 1)
again = add(2, idempotency_key='"a"')
check("a replay", again.parsed == first.parsed and again.headers["Idempotency-Replayed"] == "true")

# Dry-run.
trial = add(40, dry_run=True)
check("a dry run", isinstance(trial.parsed, DryRun) and trial.parsed.patch[0].path == "/counter/value")
check("its value", trial.parsed.patch[0].value == 42)

# A refusal.
refused = add(2**63 - 1)
check("a problem", refused.status_code == 409 and isinstance(refused.parsed, Problem))
check("its code", refused.parsed.code == "counter.overflow")

# Long-poll: nothing new, then something new.
now = get_part.sync_detailed("counter", client=client)
check("a tag", now.status_code == 200 and now.parsed == {"value": 2} and now.headers["ETag"])
same = get_part.sync_detailed("counter", client=client, if_none_match=now.headers["ETag"], wait=0.3)
check("304 when the time is up", same.status_code == 304 and same.parsed is None)
began = time.monotonic()
threading.Timer(0.5, add, [40]).start()
news = get_part.sync_detailed("counter", client=client, if_none_match=now.headers["ETag"], wait=20)
check("the new value", news.status_code == 200 and news.parsed == {"value": 42})
check("that it came when it was there", 0.4 < time.monotonic() - began < 10)
check("a part of a part", get_part_of_part.sync("counter", "value", client=client) == 42)

# Compare and set.
guarded = add(1, path="/counter", if_match=now.headers["ETag"])
check("412", guarded.status_code == 412 and guarded.parsed.code == "precondition-failed")

# Follow.
page = get_changes.sync(client=client, since="oldest", limit=1)
check("a page", isinstance(page, Changes) and page.more and page.changes[0].patch[0].value == 2)
page = get_changes.sync(client=client, since=page.next_)
check("the next page", [commit.version for commit in page.changes] == [2] and not page.more)
threading.Timer(0.5, add, [1]).start()
page = get_changes.sync(client=client, since=page.next_, wait=20)
check("a commit that it waits for", [commit.version for commit in page.changes] == [3])
print("dispatched, dry-run, long-polled, followed")
