"""A refusal is of the newest state of the history, as an acknowledgement is."""

import signal

from harness.actions import action
from harness.etcd import Etcds
from harness.expectations import expect, expect_equal
from harness.server import Server

PLACE = "/tasks/entities/0/title"


def test_a_server_that_does_not_know_the_newest_version_refuses_no_action_by_an_older_one(workspace):
    etcds = Etcds(workspace)
    # Each server has one etcd, so that only the second one misses what the first one writes.
    leader = etcds.leader()
    ports = [etcds.ports[leader], etcds.ports[(leader + 1) % 3]]
    one, other = (Server(workspace, f"etcd://127.0.0.1:{port}/refused", {}).start() for port in ports)
    with one.client() as client, other.client(timeout=10) as behind:
        added = client.commit(action("tasks/add", {"id": 0, "title": "a"}))["cursor"]
        expect_equal(behind.get(f"/v1/state{PLACE}?at-least={added}&wait=10").json, "a", "what the other server has")
        etcds.signal((leader + 1) % 3, signal.SIGSTOP)
        client.commit(action("tasks/rename", {"id": 0, "title": "b"}))
        client.commit(action("tasks/add", {"id": 1, "title": "new"}))
        done = action("tasks/rename", {"id": 1, "title": "newer"})
        client.commit(done, Idempotency_Key='"done"')

        # The newest state takes the first two, and the third is recorded already.
        swap = action("tasks/rename", {"id": 0, "title": "c"}, expect=[{"path": PLACE, "value": "b"}])
        answers = {
            "a set of the value": behind.post(swap),
            "a rename of a new task": behind.post(action("tasks/rename", {"id": 1, "title": "newest"})),
            "a repeated action with its key": behind.post(done, Idempotency_Key='"done"'),
        }
        etcds.signal((leader + 1) % 3, signal.SIGCONT)

    wrong = {name: answer.status for name, answer in answers.items() if answer.status not in (200, 503)}
    expect(not wrong, "refused by a state that is not the newest:", wrong)
