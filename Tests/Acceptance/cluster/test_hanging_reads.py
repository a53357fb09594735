"""An etcd that holds the reads of old history: what is appended does not wait for them."""

import http.client
import http.server
import threading
import time

import pytest

from harness.actions import add, bulk
from harness.etcd import Etcds
from harness.expectations import expect, expect_equal, wait_until
from harness.server import Server


class Holding(http.server.ThreadingHTTPServer):
    """A gateway before an etcd; while `holds` is set it holds every range request, and passes everything else on."""

    daemon_threads = True

    def __init__(self, port):
        self.target, self.holds, self.held = port, threading.Event(), 0
        super().__init__(("127.0.0.1", 0), Passing)


class Passing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v3/kv/range" and self.server.holds.is_set():
            self.server.held += 1
            while self.server.holds.is_set():
                time.sleep(0.05)
        there = http.client.HTTPConnection("127.0.0.1", self.server.target)
        there.request("POST", self.path, body)
        answer = there.getresponse()
        self.send_response(answer.status)
        if "watch" not in self.path:
            whole = answer.read()
            self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while part := answer.read1(1 << 16):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        except OSError:
            self.close_connection = True


@pytest.fixture
def holding(workspace):
    etcds = Etcds(workspace, 1)
    gateway = Holding(etcds.ports[0])
    threading.Thread(target=gateway.serve_forever, daemon=True).start()
    etcds.reached = [gateway.server_port]
    yield etcds, gateway
    gateway.holds.clear()
    gateway.shutdown()


def test_an_append_does_not_wait_for_a_read_of_old_history_that_hangs(workspace, holding, figures):
    etcds, gateway = holding
    server = Server(workspace, etcds.address("held"), {}).start()
    with server.client() as writer:
        for _ in range(3):
            bulk(writer, [add(1)] * 4000)
        wait_until(lambda: len(etcds.keys("held/snapshots/")) == 2, "there is a snapshot behind 10,000 commits")
    # It begins behind the snapshot, so that it does not know the IDs of the commits before.
    server.stop()
    server.start()
    with server.client() as writer:
        gateway.holds.set()

        def read():
            # The first look for an ID that no commit since the start has reads the old turns.
            with server.client() as reader:
                while gateway.holds.is_set():
                    reader.get("/v1/actions/nowhere")

        readers = [threading.Thread(target=read, daemon=True) for _ in range(3)]
        for reader in readers:
            reader.start()
        end = time.monotonic() + 10
        while not gateway.held and time.monotonic() < end:
            time.sleep(0.01)
        expect(gateway.held, "no read is held")
        took = []
        for _ in range(40):
            begun = time.monotonic()
            writer.commit(add(1))
            took.append(time.monotonic() - begun)
            time.sleep(0.05)
        gateway.holds.clear()
        for reader in readers:
            reader.join(20)
        expect(max(took) < 0.5, f"an append has waited: {max(took):.2f} s")
        expect_equal(writer.get("/v1/state/counter/value").json, 12_040, "what is recorded")
    figures(f"the slowest of 40 appends beside a read that hangs: {1000 * max(took):.0f} ms")
