"""The judges of followers and pollers notice what they exist for."""

import copy

from harness.actions import add
from harness.expectations import expect, passes
from harness.pollers import Poller
from harness.records import Record


def test_the_judges_notice_a_change_that_is_dropped_repeated_swapped_or_altered_and_a_needless_wake(workspace):
    server = workspace.server(data="none")
    with server.client() as client:
        start = client.get("/v1/state")
        for number in range(1, 21):
            client.commit(add(number))
        page = client.get(f"/v1/changes?since={start.cursor}").json
        final = client.get("/v1/state").json
        tag = client.get("/v1/state/counter").fields["etag"]

        def judged(alter):
            altered = copy.deepcopy(page)
            alter(altered["changes"])
            record = Record(copy.deepcopy(start.json), start.cursor)
            record.take(altered)
            return record.state == final

        def swap(changes):
            changes[4], changes[5] = changes[5], changes[4]

        def falsify(changes):
            changes[-1]["patch"][0]["value"] += 1

        expect(judged(lambda changes: None), "an undamaged history does not lead to the final state")
        for name, alter in [
            ("dropped", lambda changes: changes.pop(7)),
            ("the last dropped", lambda changes: changes.pop()),
            ("repeated", lambda changes: changes.insert(7, changes[7])),
            ("swapped", swap),
            ("falsified", falsify),
        ]:
            expect(not passes(judged, alter), f"a change that was {name} went unnoticed")

        unchanged = client.get("/v1/state/counter")
        waiter = Poller("/counter", wait=5)
        waiter.tag = tag
        expect(not passes(lambda: waiter.take(unchanged, 5) or True), "a needless 200 went unnoticed")
        timeout = client.get("/v1/state/counter", If_None_Match=tag)
        expect(
            timeout.status == 304 and not passes(lambda: waiter.take(timeout, 1) or True), "an early 304 went unnoticed"
        )
