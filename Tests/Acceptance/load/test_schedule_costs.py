"""What 100,000 scheduled actions cost in memory, and at a start."""

import random
import time

import pytest

from harness.actions import action, bulk
from harness.expectations import expect
from harness.figures import mebibytes
from harness.schedules import DOCUMENT

COUNT = 100_000
ACTION = ("document/increment", {"path": "/n/0000000"})
# What an action is to take beside its JSON; a tenth is for what the allocator rounds up.
BYTES = 400 * 1.1


def filled(workspace, is_scheduled):
    """A server with so many commits, each of which has scheduled an action or none.

    It keeps few commits in memory, so that these do not count.
    """
    server = workspace.server(**DOCUMENT, history_commits_max=1000)
    chance = random.Random(workspace.seed)

    def line(number):
        if not is_scheduled:
            return action("document/increment", {"path": "/n"})
        after = 86_400 + round(chance.uniform(0, 60), 3)
        return action(*ACTION, schedule={"after": after, "name": f"name-{number:06}"})

    with server.client() as client:
        for start in range(0, COUNT, 5000):
            bulk(client, map(line, range(start, start + 5000)))
    return server


@pytest.mark.alone
@pytest.mark.parametrize("is_started", [False, True], ids=["as scheduled", "after a start"])
def test_a_scheduled_action_takes_400_bytes_beside_its_json(workspace, figures, is_started):
    sides = []
    for is_scheduled in (False, True):
        server = filled(workspace, is_scheduled)
        if is_started:
            server.stop()
            server.start()
        time.sleep(1.5)  # The allocator gives back what is free.
        sides.append(server.memory_bytes())
    json = len(action(*ACTION))
    each = (sides[1] - sides[0]) / COUNT - json
    text = f"{mebibytes(sides[0])} without, {mebibytes(sides[1])} with them: {each:.0f} bytes beside {json} of JSON"
    expect(each <= BYTES, text)
    figures(text)


@pytest.mark.alone
def test_a_start_with_100000_scheduled_actions_costs_a_second_more(workspace, figures):
    """A second of a processor; how long it takes is a figure."""
    sides = []
    for is_scheduled in (False, True):
        server = filled(workspace, is_scheduled)
        server.stop()
        begun = time.monotonic()
        server.start()
        sides.append((server.cpu_seconds(), time.monotonic() - begun))
    without, with_them = (f"{cpu:.2f} s of a processor in {seconds:.2f} s" for cpu, seconds in sides)
    expect(sides[1][0] - sides[0][0] < 1, without, with_them)
    figures(f"{without} without, {with_them} with them")
