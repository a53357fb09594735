"""What an operator does to the etcds while servers use them."""

import threading
import time

import pytest

from harness.actions import add
from harness.etcd import Etcds
from harness.expectations import expect_equal, wait_until
from harness.nodes import Nodes


@pytest.mark.alone
@pytest.mark.rounds(1, long=3)
def test_each_etcd_is_replaced_by_an_empty_one_and_no_action_is_refused(workspace, rounds, figures):
    """And defragmented, and compacted up to the newest revision, under load."""
    etcds = Etcds(workspace)
    nodes = Nodes(workspace, etcds, "maintained", are_led=True)
    finished, statuses = threading.Event(), []

    def post(index):
        with nodes.client(index, timeout=20) as client:
            while not finished.is_set():
                statuses.append(client.post(add(1)).status)
                time.sleep(0.005)

    clients = [threading.Thread(target=post, args=(index,)) for index in range(3)]
    for client in clients:
        client.start()
    try:
        for index in range(rounds):
            etcds.replace(index)
            for other in range(3):
                etcds.call(other, "/v3/maintenance/defragment", {})
            revision = etcds.put("beside", b"")["header"]["revision"]
            etcds.call(0, "/v3/kv/compaction", {"revision": revision, "physical": True})
            time.sleep(1)
    finally:
        finished.set()
        for client in clients:
            client.join()
    count = len(statuses)
    expect_equal(set(statuses), {200}, "the answers to all actions")
    wait_until(lambda: len(set(nodes.states())) == 1, "all servers have one state")
    with nodes.client(0) as client:
        expect_equal(client.get("/v1/state/counter/value").json, count, "what is recorded")
    figures(f"{count} actions, each recorded once")
