"""An action that traps in the reducer, on three servers of one history: it ends two of them at most.

It needs a program whose domain traps, which is that of Tests/Adopter:

    python3 -m pytest Tests/Acceptance/cluster/test_poison.py --inventory-server=.build/debug/inventory-server
"""

import os

import pytest

from harness.actions import action
from harness.client import ConnectionLost
from harness.etcd import Etcds
from harness.expectations import Failure, expect, expect_equal, paced, wait_until
from harness.nodes import Nodes

BOLT = action("inventory/receive", {"item": "bolt", "quantity": 5})
TRAP = {"STOREKEEPER_INVENTORY_TRAP": "bomb", "SWIFT_BACKTRACE": "enable=no"}
BOMB = {"item": "bomb", "quantity": 1}


@pytest.fixture
def trapping(workspace, pytestconfig):
    program = pytestconfig.getoption("--inventory-server")
    if not program:
        pytest.skip("--inventory-server is not given")
    workspace.binary = os.path.abspath(program)
    return workspace


@pytest.mark.long_form
@pytest.mark.parametrize("key", [None, '"order 7"'])
@pytest.mark.parametrize("are_led", [False, True])
def test_an_action_that_traps_ends_two_servers_at_most_and_the_others_go_on(trapping, key, are_led):
    nodes = Nodes(trapping, Etcds(trapping), "poison", are_led=are_led, environment=TRAP, domain=None)
    with nodes.client(0) as client:
        expect_equal(client.post(BOLT).status, 200, "the status of an action that does not trap")
    fields = {"Idempotency_Key": key} if key else {}
    ends, answers = 0, []
    # A client that sends it again and again, each time to another server, and a supervisor that starts what has ended.
    for number in paced(range(12), 0.3):
        try:
            with nodes.client(number % 3, timeout=20) as client:
                answers.append(client.post(action("inventory/receive", BOMB), **fields).status)
        except (ConnectionLost, Failure):
            answers.append(None)
        for index, server in enumerate(nodes.servers):
            if server.process.poll() is not None:
                expect(server.process.returncode < 0, f"it ended with {server.process.returncode}")
                ends += 1
                nodes.restart(index)
    expect(1 <= ends <= 2, f"{ends} servers ended; the answers were {answers}")
    expect_equal(set(answers[-6:]), {422}, "the last answers")
    for index in range(3):
        with nodes.client(index) as client:
            expect_equal(client.post(BOLT).status, 200, "the status of an action that does not trap")
    wait_until(lambda: len(set(nodes.states())) == 1, "the servers have one state")
