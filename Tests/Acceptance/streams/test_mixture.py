"""Streams of every kind at once, whose clients pause, go away and come back."""

import copy
import random
import select
import time

import pytest

from harness.actions import action, add, bulk
from harness.client import Client
from harness.expectations import expect, expect_equal, lasting, paced
from harness.followers import judge_history
from harness.records import StreamRecord
from harness.streams import EVENTS, LINES, StreamClient


@pytest.mark.prompt
@pytest.mark.rounds(3, long=5)
def test_60_streams_of_every_kind_left_and_resumed_at_random_have_each_commit_that_concerns_them_once(
    workspace, figures, rounds
):
    """There are commits for so many seconds; the server ends streams that are older than 4 s less a random part."""
    server = workspace.server(history_commits_max=300, heartbeat_seconds=1, stream_seconds_max=4)
    figures(mingle(workspace, server, rounds))


@pytest.mark.prompt
def test_60_streams_of_two_loops_left_and_resumed_at_random_have_each_commit_that_concerns_them_once(
    workspace, figures
):
    figures(mingle(workspace, workspace.server(history_commits_max=300, heartbeat_seconds=1, loops=2), 2))


def mingle(workspace, server, seconds):
    """Lets 60 clients read, leave and resume while there are commits, and until each is up to date; judges each."""
    with server.client() as client:
        start = client.get("/v1/state")
    chance = random.Random(workspace.seed)
    wanderers = [Wanderer(server.port, start.json, start.cursor, random.Random(chance.random())) for _ in range(60)]
    poster = workspace.worker(post_mixture, server.port, seconds, workspace.seed)
    wander(wanderers, lambda: poster.receiver.poll(), lambda one: False, seconds + 20)
    poster.result(1)
    with server.client() as client:
        history = judge_history(client, start.json, start.cursor)
    wander(
        wanderers,
        lambda: all(one.record.version == history.version for one in wanderers),
        lambda one: one.record.version == history.version,
        30,
    )
    for one in wanderers:
        kind = FILTERS[one.filter]
        expect_equal(one.record.resets, [], f"resets of a stream{one.filter}{one.debounce}")
        wanted = [seen for seen in history.seen if kind in (None, seen[1]["type"])]
        if one.filter == "&types=counter/add":
            expect(any(what["payload"]["amount"] == 0 for _, what in wanted), "no commit without a change")
        expect(
            one.record.seen == wanted,
            f"a stream{one.filter} has sent {len(one.record.seen)} commits, not {len(wanted)}",
        )
        expect(one.filter or one.record.state == history.state, "the patches lead elsewhere")
        if one.stream:
            one.leave()
    return f"{history.version} commits, streams opened {sum(one.opened for one in wanderers)} times"


def wander(wanderers, is_over, is_done, seconds):
    """Reads what the streams send, until it is over."""
    end = time.monotonic() + seconds
    while not is_over():
        late = [f"{one.record.version}{one.filter}{one.debounce}" for one in wanderers if not is_done(one)]
        now = time.monotonic()
        expect(
            now < end,
            f"after {seconds} s {len(late)} streams are not at the version that they should have reached: {late[:5]}",
        )
        for one in wanderers:
            if one.stream is None and not is_done(one):
                one.open()
        awake = {one.stream.socket.fileno(): one for one in wanderers if one.stream and one.resumes < now}
        for number in select.select(list(awake), [], [], 0.02)[0]:
            one = awake[number]
            one.read()
            if one.stream:
                one.wander()


def post_mixture(port, seconds, seed):
    """Posts small and large actions, one by one and in bursts."""
    chance = random.Random(f"{seed}/mixture")
    with Client(port) as client:
        last = client.get("/v1").json["version"]  # no task has an ID above it
        for number in paced(lasting(seconds), lambda _: chance.choice((0, 0, 0.001, 0.02))):
            kind = chance.random()
            if kind < 0.05:
                bulk(client, [add(1)] * chance.choice((20, 200)))
            elif kind < 0.5:
                title = "x" * chance.choice((1, 100, 8000))
                client.commit(action("tasks/add", {"id": last + number + 1, "title": title}))
            else:
                client.commit(add(chance.choice((0, 1))))


FILTERS = {"": None, "&types=counter/add": "counter/add", "&types=tasks/add": "tasks/add", "&path=/tasks": "tasks/add"}


class Wanderer:
    """A client of a stream that reads, pauses for less than a stall, and comes back where it was."""

    def __init__(self, port, state, cursor, chance):
        self.port, self.chance = port, chance
        self.form = chance.choice((EVENTS, LINES))
        self.filter = chance.choice(["", *FILTERS])
        self.debounce = chance.choice(("", "", "&debounce=50", "&debounce=400"))
        self.record = StreamRecord(copy.deepcopy(state), cursor, is_filtered=bool(self.filter))
        self.stream, self.resumes, self.opened = None, 0.0, 0

    def open(self):
        since, last = (self.record.cursor, None) if self.form == LINES else ("now", self.record.cursor)
        self.stream = StreamClient(
            self.port,
            f"/v1/changes?since={since}{self.filter}{self.debounce}",
            last,
            self.form,
            receive_bytes=self.chance.choice((None, 8192)),
        ).begin()
        self.opened += 1
        self.take(self.stream.events)

    def read(self):
        try:
            data = self.stream.socket.recv(self.chance.choice((100, 4096, 1 << 18)))
        except ConnectionResetError:
            data = b""
        if not data:
            return self.leave()
        self.take(self.stream.reader.take(self.stream.chunks.take(data)))

    def take(self, events):
        for event in events:
            self.record.take_event(event)

    def leave(self):
        self.stream.close()
        self.stream = None

    def wander(self):
        """Now and then the client goes away, or pauses for a while."""
        if self.chance.random() < 0.01:
            self.leave()
        elif self.chance.random() < 0.01:
            self.resumes = time.monotonic() + self.chance.choice((0.1, 1.5))
