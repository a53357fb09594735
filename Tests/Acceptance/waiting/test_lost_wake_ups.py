"""Commits that race with clients that begin to wait."""

import json
import random
import time

import pytest

from harness.actions import add, bulk
from harness.client import Client
from harness.expectations import Failure, expect, expect_equal, passes, wait_until
from harness.records import Record, StreamRecord, ValueRecord, counter_at
from harness.streams import EVENTS, LINES, NothingCame, StreamClient
from harness.waits import parked
from harness.worker import processes


@pytest.mark.rounds(20_000, long=100_000)
def test_no_client_that_begins_to_wait_closes_or_comes_back_sleeps_through_a_commit(workspace, figures, rounds):
    """So many commits race with clients of six kinds, and each client has each commit once."""
    server = workspace.server(data="none", history_commits_max=200_000, history_bytes_max=256 << 20)
    figures(race(workspace, server, rounds))


def test_no_client_of_two_loops_that_begins_to_wait_sleeps_through_a_commit(workspace, figures):
    figures(race(workspace, workspace.server(data="none", loops=2), 5000))


def test_no_client_of_a_value_that_takes_long_to_encode_sleeps_through_a_commit(workspace, figures):
    """The server encodes such a value on another thread than the one that serves its clients."""
    server = workspace.server(data="none")
    with server.client() as client:
        client.commit(
            json.dumps(
                [{"type": "tasks/add", "payload": {"id": number, "title": "one of many"}} for number in range(1500)]
            ).encode()
        )
        state = client.get("/v1/state").json

    def truth(version):
        return state | {"counter": counter_at(version - 1)}

    kinds = [(race_values, "/v1/state", truth)] * 2 + [(race_value_stream, "/v1/state", truth)] * 3
    text = race(workspace, server, 600, kinds)
    with server.client() as client:
        parked(server, client, 0)
    figures(text)


def test_the_race_notices_a_follower_that_sleeps_one_that_fails_and_one_that_receives_nothing(workspace):
    sleeper, failed = workspace.worker(time.sleep, 5), workspace.worker(fail)
    wait_until(failed.receiver.poll, "a worker to fail")
    expect(all_reach([sleeper, failed], [8, 9], 8) < 1, "two that have come far enough are not taken")
    expect(not passes(all_reach, [sleeper], [7], 8, 0.1), "a sleeper went unnoticed")
    expect(not passes(all_reach, [sleeper, failed], [8, 7], 8), "a failed follower went unnoticed")
    server = workspace.server(data="none", wait_seconds_default=1, wait_seconds_max=1)
    follower = Follower(server.port, [0], 0, 1, workspace.seed)
    expect(
        not passes(race_values, follower, "/v1/state/counter", counter_at),
        "a wait that ended with nothing went unnoticed",
    )


def fail():
    raise Failure("on purpose")


def race(workspace, server, total, kinds=None):
    """Commits in rounds. A round begins when each client has the commits before it: no later commit wakes a client."""
    chance = random.Random(workspace.seed)
    with server.client() as client:
        start = client.get("/v1/state")
        value = "/v1/state/counter"
        kinds = kinds or [
            (race_values, value, counter_at),
            (race_values, value, counter_at),
            (race_pages, start.json, start.cursor),
            (race_stream, start.json, start.cursor, EVENTS),
            (race_stream, start.json, start.cursor, LINES),
            (race_value_stream, value, counter_at),
        ]
        progress = processes.Array("q", len(kinds), lock=False)
        workers = [
            workspace.worker(function, Follower(server.port, progress, index, total, workspace.seed), *arguments)
            for index, (function, *arguments) in enumerate(kinds)
        ]
        version, rounds, slowest = start.version, 0, 0.0
        while version < total:
            if rounds % 40 == 39:
                count = min(2000, total - version)
                bulk(client, [add(1)] * count)
                version += count
            else:
                for _ in range(min(chance.choice((1, 2, 5)), total - version)):
                    version = client.commit(add(1))["version"]
            slowest = max(slowest, all_reach(workers, progress, version))
            rounds += 1
        counts = [
            f"{kind[0].__name__.removeprefix('race_')} {worker.result(20)}" for kind, worker in zip(kinds, workers)
        ]
    return f"{rounds} rounds, the slowest {1000 * slowest:.0f} ms; answers or streams: {', '.join(counts)}"


def all_reach(workers, progress, version, patience=5):
    """Waits until every follower has come to a version; returns how long that took."""
    begun = time.monotonic()
    while min(progress) < version:
        late = time.monotonic() - begun
        for index, worker in enumerate(workers):
            if progress[index] < version and (late > patience or worker.receiver.poll()):
                found = worker.result(0) if worker.receiver.poll() else "it sleeps"
                raise Failure(f"{worker.name} is at version {progress[index]} of {version} after {late:.1f} s: {found}")
        time.sleep(0.0005)
    return time.monotonic() - begun


class Follower:
    """What a client of the race knows: the version to stop at, and where to store the version that it has."""

    def __init__(self, port, progress, index, total, seed):
        self.port, self.progress, self.index, self.total = port, progress, index, total
        self.chance = random.Random(f"{seed}/{index}")

    def reached(self, version):
        self.progress[self.index] = version


def race_values(follower, path, truth):
    """Form A: the value again and again, by its tag. Every commit adds 1, so the value is its version."""
    tag, version, answers = None, -1, 0
    with Client(follower.port) as client:
        while version < follower.total:
            answer = client.get(f"{path}?wait=8", **({"If_None_Match": tag} if tag else {}))
            expect(answer.status == 200, f"a wait ended with nothing at version {version}:", answer)
            expect(answer.version > version and answer.fields["etag"] != tag, f"an old value after {version}:", answer)
            expect_equal(answer.json, truth(answer.version), f"the value at {answer.cursor}")
            tag, version, answers = answer.fields["etag"], answer.version, answers + 1
            follower.reached(version)
    return answers


def race_pages(follower, state, cursor):
    """Form B: every commit, in pages of any size."""
    record, answers = Record(state, cursor), 0
    with Client(follower.port) as client:
        while record.version < follower.total:
            limit = follower.chance.choice((1, 10, 1000))
            answer = client.get(f"/v1/changes?since={record.epoch}.{record.version}&wait=8&limit={limit}")
            expect(
                answer.status == 200 and answer.json["changes"],
                f"a wait ended with nothing at {record.version}:",
                answer,
            )
            record.take(answer.json)
            answers += 1
            follower.reached(record.version)
    expect_equal(record.state["counter"], counter_at(record.version), "the state that the pages lead to")
    return answers


def race_stream(follower, state, cursor, form):
    """A stream that is closed and opened again all the time, often in the middle of an event."""
    record, opened = StreamRecord(state, cursor), 0
    while record.version < follower.total:
        since, last = (record.cursor, None) if form == LINES else ("now", record.cursor)
        with StreamClient(follower.port, f"/v1/changes?since={since}", last, form).begin() as stream:
            opened += 1
            leaves = record.version + follower.chance.choice((1, 3, 100, 500))
            while record.version < min(leaves, follower.total):
                try:
                    record.take_event(stream.next(8))
                except NothingCame:
                    raise Failure(f"nothing came for 8 s at {record.version}") from None
                follower.reached(record.version)
    expect_equal(record.state["counter"], counter_at(record.version), "the state that the stream leads to")
    return opened


def race_value_stream(follower, path, truth):
    """A stream of the value, closed and opened again: it begins where the value is, and ends on the last."""
    version, opened = -1, 0
    while version < follower.total:
        with StreamClient(follower.port, path, form=EVENTS).begin() as stream:
            opened += 1
            record = ValueRecord(truth)
            most = follower.chance.choice((1, 2, 20))
            while record.count < most and version < follower.total:
                event = record.take_event(stream.next(8))
                expect(event.version >= version, f"a value of {event.version} after one of {version}")
                version = event.version
                follower.reached(version)
    return opened
