"""Turns of almost a megabyte each, which no request for hundreds of them can have in one answer."""

import base64
import random
import signal

import pytest

from harness.actions import action
from harness.etcd import Etcds
from harness.expectations import expect, expect_equal, wait_until
from harness.gateway import Gateway
from harness.server import Server

TASKS, COMMITS = 50, 120


@pytest.mark.alone
def test_the_past_of_large_turns_is_read_and_a_server_that_stood_still_takes_them_over(workspace):
    etcds = Etcds(workspace, 1)
    writer, other = (Server(workspace, etcds.address("large"), {}).start() for _ in range(2))
    with writer.client() as client:
        client.commit(b"[%s]" % b",".join(action("tasks/add", {"id": number, "title": "t"}) for number in range(1, TASKS + 1)))
        other.process.send_signal(signal.SIGSTOP)
        for count in range(COMMITS):
            title = f"{count}".ljust(8_000, "x")
            client.commit(b"[%s]" % b",".join(action("tasks/rename", {"id": number, "title": title}) for number in range(1, TASKS + 1)))
        other.process.send_signal(signal.SIGCONT)
        latest = client.get("/v1").json["cursor"]
    writer.stop()
    writer.start()
    with writer.client() as client, other.client() as follower:
        for each in (client, follower):
            wait_until(lambda: each.get("/v1").json["cursor"] == latest, "the server has the newest version", seconds=20)
        seen, since = [], "oldest"
        while len(seen) <= COMMITS:
            page = follower.get(f"/v1/changes?since={since}&limit=1000")
            expect_equal(page.status, 200, f"the status of the page behind {len(seen)} commits")
            seen += [change["version"] for change in page.json["changes"]]
            since = page.json["next"]
        expect_equal(seen, list(range(1, COMMITS + 2)), "the versions of the past")


def test_the_part_of_a_turn_that_has_landed_is_shown_by_the_server_whose_append_failed_behind_it(workspace):
    etcds = Etcds(workspace, 1)
    turns, appends = base64.b64encode(b"parts/turns/"), []

    def refuse_the_second(path, body):
        """Looks at etcd name turns, too, and are short."""
        if path != "/v3/kv/txn" or turns not in body or len(body) < 100_000:
            return None
        appends.append(len(body))
        return (400, b'{"code":8,"message":"no room for a second one"}') if len(appends) > 1 else None

    with Gateway(etcds.ports[0], refuse_the_second) as gateway:
        other = Server(workspace, etcds.address("parts"), {"domain": "document"}).start()
        etcds.reached = [gateway.server_port]
        writer = Server(workspace, etcds.address("parts"), {"domain": "document"}).start()
        chance = random.Random(workspace.seed)
        # Eight make one turn of more than a transaction takes.
        values = [base64.b64encode(chance.randbytes(200_000)).decode() for _ in range(8)]
        lines = [action("document/set", {"path": f"/{number}", "value": value}) for number, value in enumerate(values)]
        with writer.client() as client, other.client() as reader:
            client.request("POST", "/v1/actions", b"\n".join(lines), {"Content-Type": "application/x-ndjson"})
            expect(len(appends) > 1, "there was one transaction:", appends)
            landed = wait_until(lambda: int(reader.get("/v1").json["cursor"].partition(".")[2]), "a part has landed")
            shown = lambda: int(client.get("/v1").json["cursor"].partition(".")[2])
            wait_until(lambda: shown() == landed, "the server that has sent it shows it")
        writer.stop()
