"""An action's outcome by the ID that its client gave, at servers that were not there when it was recorded."""

from harness.actions import action, add, bulk
from harness.etcd import Etcds
from harness.expectations import expect_equal, wait_until
from harness.server import Server, codes


def test_an_id_is_found_at_a_server_that_began_behind_its_commit(workspace):
    etcds = Etcds(workspace, 1)
    first, second = (Server(workspace, etcds.address("ids"), {}).start() for _ in range(2))
    with first.client() as client:
        for start in range(0, 12_000, 4_000):
            bulk(client, [action("counter/add", {"amount": 1}, id=f"id {number}") for number in range(start, start + 4_000)])
        wait_until(lambda: len(etcds.keys("ids/snapshots/")) == 2, "there is a snapshot behind 10,000 commits")
        cursor = client.commit(add(1))["cursor"]
    second.stop()
    second.start()
    with first.client() as client, second.client() as other:
        other.get(f"/v1/state?at-least={cursor}&wait=10")
        for each in (client, other):
            for number in (0, 5, 9_998, 11_999):
                answer = each.get(f"/v1/actions/id%20{number}")
                expect_equal((answer.status, answer.json["version"]), (200, number + 1), f"the outcome of ID {number}")
            expect_equal(codes(each.get("/v1/actions/id%2012000")), (404, "no-such-action"), "an ID that nobody gave")
        version = client.commit(action("counter/add", {"amount": 1}, id="id 5"))["version"]
        other.get(f"/v1/state?at-least={cursor.partition('.')[0]}.{version}&wait=10")
        for each in (client, other):
            expect_equal(each.get("/v1/actions/id%205").json["version"], version, "the newest commit with an ID")
