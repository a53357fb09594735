"""The client of the Durable Streams protocol from PyPI, through kill -9."""

import asyncio
import time

import httpx
import pytest

from harness.expectations import expect
from harness.kills import change_through_kills, copies_of, judge_commits, judge_copies
from harness.mirror import version_of_offset
from harness.worker import processes

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


@pytest.mark.rounds(4, long=20)
def test_every_reader_has_every_commit_once_and_in_order_through_kills(workspace, rounds, figures):
    server = workspace.server()
    port, target = processes.Value("i", server.port), processes.Value("q", -1)
    seconds = 20 * rounds
    commits = [
        workspace.worker(read, port, "/v1/streams/commits", mode, target, is_asynchronous, seconds)
        for mode in MODES
        for is_asynchronous in (False, True)
    ]
    states = [workspace.worker(read, port, "/v1/streams/state", mode, target, False, seconds) for mode in MODES]
    target.value = latest = change_through_kills(workspace, server, port, rounds)
    losses, compared = 0, []
    for worker in commits:
        batches, lost = worker.result(60)
        judge_commits(batches, latest)
        losses += lost
    with server.client() as client:
        for worker in states:
            batches, _ = worker.result(60)
            compared.append(judge_copies(client, copies_of(batches, latest), latest))
    expect(losses >= rounds, f"the readers lost their connections only {losses} times")
    figures(f"{latest} commits, {rounds} kills, {losses} losses; the mirrors equal the state at {compared} versions")
