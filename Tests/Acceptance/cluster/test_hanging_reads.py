"""An etcd that holds the reads of old history: what is appended does not wait for them."""

import threading
import time

import pytest

from harness.actions import add, bulk
from harness.etcd import Etcds
from harness.expectations import expect, expect_equal, paced, wait_until
from harness.gateway import Gateway
from harness.server import Server


class Holding:
    """While `holds` is set, it holds every range request."""

    def __init__(self):
        self.holds, self.held = threading.Event(), 0

    def __call__(self, path, _):
        if path == "/v3/kv/range" and self.holds.is_set():
            self.held += 1
            wait_until(lambda: not self.holds.is_set(), "it is let go", 100)


@pytest.fixture
def holding(workspace):
    etcds = Etcds(workspace, 1)
    holding = Holding()
    with Gateway(etcds.ports[0], holding) as gateway:
        etcds.reached = [gateway.server_port]
        yield etcds, holding
        holding.holds.clear()


def test_an_append_does_not_wait_for_a_read_of_old_history_that_hangs(workspace, holding, figures):
    etcds, gate = holding
    server = Server(workspace, etcds.address("held"), {}).start()
    with server.client() as writer:
        for _ in range(3):
            bulk(writer, [add(1)] * 4000)
        wait_until(lambda: len(etcds.keys("held/snapshots/")) == 2, "there is a snapshot behind 10,000 commits")
    # It begins behind the snapshot, so that it does not know the IDs of the commits before.
    server.stop()
    server.start()
    with server.client() as writer:
        gate.holds.set()

        def read():
            # The first look for an ID that no commit since the start has reads the old turns.
            with server.client() as reader:
                while gate.holds.is_set():
                    reader.get("/v1/actions/nowhere")

        readers = [threading.Thread(target=read, daemon=True) for _ in range(3)]
        for reader in readers:
            reader.start()
        wait_until(lambda: gate.held, "a read is held")
        took = []
        for _ in paced(range(40), 0.05):
            begun = time.monotonic()
            writer.commit(add(1))
            took.append(time.monotonic() - begun)
        gate.holds.clear()
        for reader in readers:
            reader.join(20)
        expect(max(took) < 0.5, f"an append has waited: {max(took):.2f} s")
        expect_equal(writer.get("/v1/state/counter/value").json, 12_040, "what is recorded")
    figures(f"the slowest of 40 appends beside a read that hangs: {1000 * max(took):.0f} ms")
