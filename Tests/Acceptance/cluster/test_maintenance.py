"""What an operator does to the etcds while servers use them."""

import base64
import contextlib
import http.server
import threading

import pytest

from harness.actions import add
from harness.etcd import Etcds
from harness.expectations import expect, expect_equal, wait_until
from harness.nodes import Nodes
from harness.server import Server


@pytest.mark.alone
@pytest.mark.rounds(1, long=3)
def test_each_etcd_is_replaced_by_an_empty_one_and_no_action_is_refused(workspace, rounds, figures):
    """And defragmented, and compacted up to the newest revision, under load."""
    etcds = Etcds(workspace)
    nodes = Nodes(workspace, etcds, "maintained", are_led=True)
    finished, statuses = threading.Event(), []

    def post(index):
        with nodes.client(index, timeout=20) as client:
            while not finished.wait(0.005):
                statuses.append(client.post(add(1)).status)

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
            before = len(statuses)
            wait_until(lambda: len(statuses) > before + 100, "the clients go on")
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


def test_more_commits_than_the_snapshots_span_are_kept_and_etcd_is_compacted_all_the_same(workspace):
    """As with the default settings: the newest commits that are kept reach further back than the oldest snapshot."""
    etcds = Etcds(workspace, 1)
    settings = {"journal_commits_max": 25_000, "journal_snapshots_max": 2, "history_commits_max": 100}
    server = Server(workspace, etcds.address("long"), settings).start()
    begun = etcds.put("beside", b"")["header"]["revision"]
    lines = b"\n".join([add(1)] * 5_000)
    with server.client() as client:
        oldest = lambda: int(min(etcds.keys("long/turns/")).rpartition("/")[2])
        count = 0
        # A snapshot is not saved while another one is.
        while oldest() <= 5_000:
            expect(count < 150_000, "no turn is deleted behind 150,000 commits")
            answer = client.request("POST", "/v1/actions", lines, {"Content-Type": "application/x-ndjson"})
            expect_equal(answer.status, 200, "the status of 5,000 lines")
            count += 5_000
        kept = count - 25_000
        expect(oldest() <= kept + 1, "a turn of the newest 25,000 commits is deleted:", oldest())
        epoch = client.get("/v1").json["cursor"].partition(".")[0]
        expect_equal(client.get(f"/v1/changes?since={epoch}.{kept}&limit=1").status, 200, "the oldest of these commits")
        expect_equal(client.get("/v1/state?version=1").status, 410, "a state whose turns are deleted")
    key = base64.b64encode(b"beside").decode()
    past = lambda: etcds.call(0, "/v3/kv/range", {"key": key, "revision": begun})
    wait_until(lambda: "compacted" in past().get("message", ""), "what was deleted cannot be read at an old revision")


class Learner(http.server.BaseHTTPRequestHandler):
    """Answers as a learner of etcd 3.6 does; those of the versions that tests run with have another status."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"code":9,"message":"etcdserver: rpc not supported for learner","details":[]}'
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_an_etcd_that_is_a_learner_is_passed_over(workspace):
    """Each request begins at one of the four by chance."""
    etcds = Etcds(workspace, 1)
    with http.server.ThreadingHTTPServer(("0.0.0.0", 0), Learner) as learners, contextlib.ExitStack() as ends:
        threading.Thread(target=learners.serve_forever).start()
        ends.callback(learners.shutdown)
        addresses = [f"127.0.0.{number}:{learners.server_port}" for number in (2, 3, 4)]
        waiting = Server(workspace, f"etcd://{addresses[0]}/learner", {}).launch()
        wait_until(lambda: "waiting for etcd" in waiting.log_text(), "a server with learners only says that it waits")
        expect("not supported for learner" in waiting.log_text(), "no word about the learner:", waiting.log_text())
        waiting.kill()
        for value in (1, 2):
            server = Server(workspace, etcds.address("learner").replace("etcd://", f"etcd://{','.join(addresses)},"), {}).start()
            with server.client() as client:
                client.commit(add(1))
                expect_equal(client.get("/v1/state/counter/value").json, value, "what is recorded")
                expect_equal(client.get("/readyz").status, 200, "whether it is ready")
            server.stop()
