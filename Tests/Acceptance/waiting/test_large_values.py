"""Values that take so long to encode that commits come meanwhile."""

import re
import time

from harness.actions import action, add, bulk
from harness.expectations import expect, expect_equal
from harness.waits import begin, parked


def test_a_get_after_a_commit_never_has_the_value_of_before_while_a_large_value_is_encoded_for_a_waiter(
    workspace, figures
):
    """The counter is the number of commits behind the tasks: the value and the cursor of an answer tell each other."""
    server = workspace.server(data="none")
    with server.client() as client, server.client() as reader:
        bulk(client, [action("tasks/add", {"id": number, "title": "one of many"}) for number in range(1500)])
        base = client.get("/v1/state").version
        waiter = begin(server, "/v1/state?wait=50&until=0")
        parked(server, client, 1)
        faults, count = [], 0
        for gap in [0, 0.0005, 0.001, 0.002] * 20:
            client.commit(add(1))
            time.sleep(gap)
            version = client.commit(add(1))["version"]
            end = time.monotonic() + 0.03
            while time.monotonic() < end:
                answer = reader.get("/v1/state")
                value = int(re.search(rb'"counter":\{"value":(\d+)', answer.body)[1])
                expect(answer.version >= version, f"version {answer.version} after {version}")
                if value != answer.version - base:
                    faults.append(f"the value of {base + value} at {answer.version}")
                count += 1
        waiter.close()
    expect_equal(faults[:3], [], f"{len(faults)} of {count} answers")
    figures(f"{count} answers")
