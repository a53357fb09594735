"""A server that many writers change while it is killed, and what readers of its streams must have at the end."""

import random

from harness.actions import action
from harness.client import ConnectionLost, connect
from harness.expectations import expect_equal, wait_until
from harness.mirror import Mirror, entities_of, version_of_offset
from harness.worker import processes
from harness.writers import write_through_kills

# How many commits there are at least between two kills.
COMMITS = 500


def change_tasks(port, finished, seed):
    """Changes tasks at random until `finished`; an action whose answer is lost is given up."""
    chance, client, known, number = random.Random(seed), None, [], 0
    while not finished.is_set():
        client = client or connect(lambda: port.value, timeout=20)
        try:
            number += 1
            kind = chance.random()
            if kind < 0.4 or len(known) < 5:
                sent = action("tasks/add", {"id": number, "title": f"title {number} ä ~ / \""}, id=f"task-{number}")
                known.append(number)
            elif kind < 0.6:
                sent = action("tasks/rename", {"id": chance.choice(known), "title": f"renamed {number}"})
            elif kind < 0.75:
                sent = action("tasks/favourite", {"id": chance.choice(known)})
            else:
                sent = action("tasks/remove", {"id": known.pop(chance.randrange(len(known)))})
            client.post(sent)
        except ConnectionLost:
            client = None


def change_through_kills(workspace, server, port, kills):
    """Kills the server so many times while it is changed; returns its last version.

    `port` is a shared value, which holds the port of the server also after its next start. The last commit has the ID
    "last", and the state stream has messages for it.
    """
    finished, acknowledged = processes.Event(), [processes.Value("q", 0) for _ in range(2)]
    writers = [
        workspace.worker(write_through_kills, port, f"w{name}", False, finished, acknowledged[name], workspace.seed)
        for name in range(2)
    ]
    writers.append(workspace.worker(change_tasks, port, finished, workspace.seed))
    for kill in range(1, kills + 1):
        wait_until(
            lambda: max(value.value for value in acknowledged) > kill * COMMITS, "the writers go on", 40)
        port.value = server.restart().port
    finished.set()
    for writer in writers:
        writer.result(30)
    with server.client() as client:
        client.commit(b'{"type":"counter/add","payload":{"amount":1},"id":"last"}')
        return client.get("/v1").json["version"]


def judge_commits(batches, latest):
    """Whether a reader has every commit once and in order; a batch is an offset and the messages before it."""
    versions = [commit["version"] for _, batch in batches for commit in batch]
    for index, version in enumerate(versions):
        expect_equal(version, index + 1, f"the version that a reader has behind {versions[max(0, index - 3) : index]}")
    for offset, batch in batches:
        if batch:
            expect_equal(batch[-1]["version"], version_of_offset(offset), "the version of an offset")
    expect_equal(versions[-1], latest, "the last version")


def judge_copies(client, copies, latest):
    """Compares copies of the state with what the server tells; returns at how many versions.

    A copy is an offset, and the value of each entity by type and key.
    """
    types = client.get("/v1/streams").json["streams"][1]["types"]
    versions = []
    for offset, values in copies:
        versions.append(version_of_offset(offset))
        answer = client.get(f"/v1/state?version={versions[-1]}")
        expect_equal(answer.status, 200, f"the status of the state at {versions[-1]}")
        expect_equal(values, entities_of(answer.json, types), f"the copy at {versions[-1]}")
    expect_equal(versions[-1], latest, "the last version of a copy")
    return len(versions)


def copies_of(batches, latest):
    """The copies that a mirror holds behind about a hundred of these batches of the state stream, and at the end."""
    mirror = Mirror()
    step = max(1, len(batches) // 100)
    for number, (offset, batch) in enumerate(batches):
        for message in batch:
            mirror.take(message)
        # Other offsets are amid a snapshot.
        if offset.endswith("_z") and (number % step == 0 or version_of_offset(offset) == latest):
            yield offset, mirror.values


def kill_at_shares(server, count, kills):
    """Kills the server as often, at equal distances of its versions, and starts it again."""
    for kill in range(1, kills + 1):
        with server.client() as client:
            wait_until(
                lambda: client.get("/v1").json["version"] >= kill * count // (kills + 1), "the writers go on", 60)
        server.restart(down=0.1 * (kill % 3))
