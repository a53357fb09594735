"""An etcd that stands still without a word, so that its connections stay and nothing comes on them; and none at all."""

import signal
import time

import pytest

from harness.actions import add
from harness.etcd import Etcds
from harness.expectations import expect_equal, paced, wait_until
from harness.nodes import Nodes
from harness.server import Server, codes


@pytest.mark.alone
def test_a_server_whose_etcd_stands_still_has_what_the_others_acknowledge_or_says_how_old_its_state_is(workspace, figures):
    etcds = Etcds(workspace)
    nodes = Nodes(workspace, etcds, "stopped", count=2)
    took = []
    with nodes.client(0) as client, nodes.client(1) as other:
        # One of the three has the watch of the other server.
        for index in paced(range(3), 1):
            etcds.signal(index, signal.SIGSTOP)
            time.sleep(4)  # The others have a leader then, and each server has found them.
            wait_until(lambda: client.post(add(1)).status == 200, "an action is acknowledged", seconds=20)
            begun, version = time.monotonic(), client.get("/v1").json["version"]

            def knows():
                answer = other.get("/v1/state/counter")
                return "state-age" in answer.fields or answer.version >= version

            try:
                wait_until(knows, f"it has version {version}, or says that its state is old", seconds=6)
            finally:
                etcds.signal(index, signal.SIGCONT)
            took.append(time.monotonic() - begun)
            wait_until(lambda: other.get("/v1").json["version"] >= version, "it has the version", seconds=20)
    figures(f"it had them, or said so, after {', '.join(f'{seconds:.2f}' for seconds in took)} s")


def test_an_action_while_no_etcd_takes_a_connection_is_refused_in_its_time_and_the_server_goes_on(workspace):
    etcds = Etcds(workspace, 1)
    server = Server(workspace, etcds.address("gone"), {}).start()
    with server.client() as client:
        client.commit(add(1))
        etcds.kill(0)
        # Each attempt ends at once: some hundreds of them fit into the time of one append.
        begun = time.monotonic()
        expect_equal(codes(client.post(add(1))), (503, "not-durable"), "the answer while there is no etcd")
        took = time.monotonic() - begun
        expect_equal(4 < took < 9, True, f"whether it has been tried for five seconds: {took:.1f} s")
        etcds.start(0)
        etcds.wait()
        wait_until(lambda: client.post(add(1)).status == 200, "an action is acknowledged again", seconds=20)
        expect_equal(client.get("/v1/state/counter/value").json, 2, "what is recorded")
