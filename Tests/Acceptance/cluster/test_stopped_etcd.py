"""An etcd that stands still without a word: its connections stay, and nothing comes on them."""

import signal
import time

import pytest

from harness.actions import add
from harness.etcd import Etcds
from harness.expectations import wait_until
from harness.nodes import Nodes


@pytest.mark.alone
def test_a_server_whose_etcd_stands_still_has_what_the_others_acknowledge_or_says_how_old_its_state_is(workspace, figures):
    etcds = Etcds(workspace)
    nodes = Nodes(workspace, etcds, "stopped", count=2)
    took = []
    with nodes.client(0) as client, nodes.client(1) as other:
        # One of the three has the watch of the other server.
        for index in range(3):
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
            time.sleep(1)
    figures(f"it had them, or said so, after {', '.join(f'{seconds:.2f}' for seconds in took)} s")
