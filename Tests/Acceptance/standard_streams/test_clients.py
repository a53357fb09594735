"""The client of the Durable Streams protocol from PyPI, through kill -9."""

import asyncio
import time

import httpx
import pytest

from harness.client import ConnectionLost
from harness.expectations import expect, expect_equal, wait_until
from harness.mirror import Mirror, entities_of, version_of_offset
from harness.worker import processes
from harness.writers import write_through_kills

durable_streams = pytest.importorskip("durable_streams")

LOSSES = (httpx.HTTPError, durable_streams.DurableStreamError, durable_streams.FetchError, OSError)

MODES = ("catch-up", "long-poll", "sse")


class Reader:
    """A loop around the client: it comes back to the offset behind the last batch that it took."""

    def __init__(self, port, path, mode, target, seconds):
        self.port, self.path, self.mode, self.target = port, path, mode, target
        self.offset, self.batches, self.losses = "-1", [], 0
        self.end = time.monotonic() + seconds

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port.value}{self.path}"

    @property
    def live(self):
        return False if self.mode == "catch-up" else self.mode

    @property
    def is_done(self):
        expect(time.monotonic() < self.end, f"a {self.mode} reader is at {self.offset}, not at {self.target.value}")
        return self.offset != "-1" and 0 <= self.target.value <= version_of_offset(self.offset)

    def take(self, event):
        self.batches.append((event.next_offset, event.data))
        self.offset = event.next_offset

    def run(self):
        while not self.is_done:
            try:
                with durable_streams.stream(self.url, offset=self.offset, live=self.live, timeout=2) as response:
                    for event in response.iter_events(mode="json_batches"):
                        self.take(event)
                        if self.is_done:
                            break
            except LOSSES as error:
                self.lose(error)
                time.sleep(0.01)
        return self

    async def run_asynchronously(self):
        while not self.is_done:
            try:
                response = await durable_streams.astream(self.url, offset=self.offset, live=self.live, timeout=2)
                async with response:
                    async for event in response.iter_events(mode="json_batches"):
                        self.take(event)
                        if self.is_done:
                            break
            except LOSSES as error:
                self.lose(error)
                await asyncio.sleep(0.01)
        return self

    def lose(self, error):
        status = getattr(error, "status", None)
        expect(status is None or status >= 500, f"the server refuses {self.offset} with {status}:", repr(error))
        self.losses += 1


def read(port, path, mode, target, is_asynchronous, seconds):
    reader = Reader(port, path, mode, target, seconds)
    asyncio.run(reader.run_asynchronously()) if is_asynchronous else reader.run()
    return reader.batches, reader.losses


def write_tasks(port, finished, seed):
    """Changes tasks at random until `finished`; an action whose answer is lost is given up."""
    import random

    from harness.actions import action
    from harness.client import Client

    chance, client, known, number = random.Random(seed), None, [], 0
    while not finished.is_set():
        try:
            client = client or Client(port.value, timeout=20)
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
            time.sleep(0.005)


@pytest.mark.rounds(4, long=20)
@pytest.mark.seconds(long=900)
def test_every_reader_has_every_commit_once_and_in_order_through_kills(workspace, rounds, figures):
    server = workspace.server()
    port, target = processes.Value("i", server.port), processes.Value("q", -1)
    finished, count = processes.Event(), rounds * 500
    acknowledged = [processes.Value("q", 0) for _ in range(2)]
    writers = [
        workspace.worker(write_through_kills, port, f"w{name}", False, finished, acknowledged[name], workspace.seed)
        for name in range(2)
    ]
    changer = workspace.worker(write_tasks, port, finished, workspace.seed)
    seconds = 20 * rounds
    commits = [
        workspace.worker(read, port, "/v1/streams/commits", mode, target, is_asynchronous, seconds)
        for mode in MODES
        for is_asynchronous in (False, True)
    ]
    states = [workspace.worker(read, port, "/v1/streams/state", mode, target, False, seconds) for mode in MODES]
    for kill in range(1, rounds + 1):
        wait_until(
            lambda: max(value.value for value in acknowledged) > kill * count // rounds, "the writers go on", 40)
        server.kill()
        server.start()
        port.value = server.port
    finished.set()
    for worker in [*writers, changer]:
        worker.result(30)
    with server.client() as client:
        # A last change, for which the state stream has messages.
        client.commit(b'{"type":"counter/add","payload":{"amount":1}}')
        target.value = client.get("/v1").json["version"]
        losses = sum(judge_commits(client, *worker.result(60)) for worker in commits)
        types = client.get("/v1/streams").json["streams"][1]["types"]
        compared = [judge_state(client, types, *worker.result(60)) for worker in states]
    expect(losses >= rounds, f"the readers lost their connections only {losses} times")
    figures(
        f"{target.value} commits, {rounds} kills, {losses} losses; the mirrors equal the state at {compared} versions"
    )


def judge_commits(client, batches, losses):
    versions = [commit["version"] for _, batch in batches for commit in batch]
    expect_equal(versions, list(range(1, len(versions) + 1)), "the versions that a reader has")
    for offset, batch in batches:
        if batch:
            expect_equal(batch[-1]["version"], version_of_offset(offset), "the version of an offset")
    expect_equal(versions[-1], client.get("/v1").json["version"], "the last version")
    return losses


def judge_state(client, types, batches, _):
    """Compares a mirror with the state at up to a hundred versions; returns at how many."""
    mirror, compared = Mirror(), 0
    step = max(1, len(batches) // 100)
    latest = client.get("/v1").json["version"]
    for number, (offset, batch) in enumerate(batches):
        for message in batch:
            mirror.take(message)
        version = version_of_offset(offset)
        if offset.endswith("_z") and (number % step == 0 or version == latest):
            answer = client.get(f"/v1/state?version={version}")
            expect_equal(answer.status, 200, f"the status of the state at {version}")
            expect_equal(mirror.values, entities_of(answer.json, types), f"the mirror at {version}")
            compared += 1
    expect_equal(version_of_offset(batches[-1][0]), latest, "the last version of a mirror")
    return compared
