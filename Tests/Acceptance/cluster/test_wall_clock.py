"""A wall clock that is set back in a cluster."""

import signal

from harness.actions import add
from harness.etcd import Etcds
from harness.expectations import expect_equal, remains, wait_until
from harness.server import Server
from harness.shims import Clocks


def test_a_wall_clock_that_is_set_back_holds_up_neither_the_looks_at_etcd_nor_a_stop(workspace):
    etcds = Etcds(workspace, 1)
    server = Server(workspace, etcds.address("clock"), {})
    clocks = Clocks(workspace, server)
    server.start()
    with server.client() as client:
        # The kernel's clock stays as it is, which to a wait for a moment of the wall clock is a clock that is set back.
        clocks.move(86_400)
        remains(lambda: client.get("/readyz").status == 200, "the server is ready", 1)
        expect_equal(client.commit(add(1))["version"], 1, "the version")
        etcds.signal(0, signal.SIGSTOP)
        wait_until(lambda: client.get("/readyz").status == 503, "the server has seen that etcd does not answer", seconds=6)
        etcds.signal(0, signal.SIGCONT)
        wait_until(lambda: client.get("/readyz").status == 200, "the server is ready again")
    server.stop()
