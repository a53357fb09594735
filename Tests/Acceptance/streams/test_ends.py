"""Streams that end, and clients that come back to them."""

import copy
import threading
import time

from harness.actions import add, bulk
from harness.client import ConnectionLost
from harness.expectations import Failure, expect, expect_equal
from harness.figures import spread
from harness.records import StreamRecord
from harness.streams import EVENTS, LINES, open_stream, read_to_the_end


def test_streams_end_at_different_times_behind_a_whole_event_and_a_client_that_resumes_misses_nothing(
    workspace, figures
):
    """The server ends each stream when it has lived for `stream_seconds_max`, less a random part."""
    server = workspace.server(data="none", stream_seconds_max=3, heartbeat_seconds=1)
    with server.client() as client:
        start = client.get("/v1/state")
        begun = time.monotonic()
        streams = [
            open_stream(server, "/v1/changes?since=now", form=(EVENTS, LINES)[number % 2]) for number in range(40)
        ]
        finished = threading.Event()
        poster = threading.Thread(target=post_until, args=(server, finished), daemon=True)
        poster.start()
        lives = []
        ended = read_to_the_end(streams, begun, 6)
        finished.set()
        poster.join(10)
        client.commit(add(1))  # behind the end of every stream, so that each of them has something to resume for
        final = client.get("/v1/state")
        latest = final.version
        for stream, (life, events) in zip(streams, ended):
            expect_equal(stream.reader.rest, b"", "an event that was begun")
            record = StreamRecord(copy.deepcopy(start.json), start.cursor).take_all(events)
            lives.append(life)
            expect(start.version < record.version < latest, f"a stream of {life:.2f} s ended at {record.version}")
            since, last = (record.cursor, None) if stream.form == LINES else ("now", record.cursor)
            with open_stream(server, f"/v1/changes?since={since}", last, stream.form) as again:
                record.take_all(again.until(lambda event: event.id and event.version >= latest))
            expect_equal((record.version, record.state), (latest, final.json), "version and state at the end")
        expect(
            2.2 < min(lives) and max(lives) < 4.2,
            f"streams of at most 3 s lived {min(lives):.2f} to {max(lives):.2f} s",
        )
        expect(spread(lives) > 0.3, f"all streams ended within {spread(lives):.2f} s")
    figures(f"lives from {min(lives):.2f} to {max(lives):.2f} s")


def post_until(server, finished):
    with server.client() as client:
        while not finished.wait(0.02):
            client.commit(add(1))


def test_a_stream_that_resumes_in_a_new_history_begins_with_reset_and_snapshot(workspace):
    """Without a journal each start of the server begins a new history."""
    server = workspace.server(data="none")
    with server.client() as client:
        start = client.get("/v1/state")
        for _ in range(5):
            client.commit(add(1))
        stream = open_stream(server, f"/v1/changes?since={start.cursor}")
        record = StreamRecord(start.json, start.cursor).take_all(stream.until(lambda event: event.version == 5))
    server.kill()
    try:
        stream.next()
        raise Failure("a stream of a killed server went on")
    except ConnectionLost:
        server.start()
    with server.client() as client:
        client.commit(add(7))
        state = client.get("/v1/state")
        for target, last, form in (
            ("/v1/changes?since=now", record.cursor, EVENTS),
            ("/v1/changes", record.cursor, EVENTS),
            (f"/v1/changes?since={record.cursor}", None, EVENTS),
            (f"/v1/changes?since={record.cursor}", None, LINES),
            ("/v1/changes?since=oldest", "not a cursor", EVENTS),
            (f"/v1/changes?since={state.cursor}000", None, LINES),
            ("/v1/changes", state.cursor + "000", EVENTS),
        ):
            with open_stream(server, target, last, form) as again:
                mine = copy.deepcopy(record).take_all([again.next(), again.next()])
                expect_equal(
                    (mine.resets, mine.state, mine.cursor),
                    (["cursor-lost"], state.json, state.cursor),
                    f"resets, state and cursor of {target} after {last} as {form}",
                )
                receipt = client.commit(add(0))
                expect_equal(mine.take_event(again.next()).id, receipt["cursor"], "the next event")
                state = client.get("/v1/state")
        with open_stream(server, "/v1/state/counter", record.cursor) as again:
            reset, snapshot = again.next(), again.next()
            expect_equal(
                (reset.name, reset.id, reset.json, snapshot.name, snapshot.json),
                ("reset", None, {"reason": "cursor-lost"}, "snapshot", {"value": 7}),
                "a value's stream",
            )
        with open_stream(server, "/v1/state/counter", state.cursor) as again:
            expect_equal(
                (again.next().name, len(again.events)), ("snapshot", 0), "a value's stream in the same history"
            )


def test_a_stream_that_begins_before_the_kept_history_begins_with_reset_and_snapshot_and_goes_on(workspace):
    server = workspace.server(data="none", history_commits_max=100)
    with server.client() as client:
        start = client.get("/v1/state")
        bulk(client, [add(1)] * 400)
        for form in (EVENTS, LINES):
            with open_stream(server, f"/v1/changes?since={start.cursor}", form=form) as stream:
                record = StreamRecord(start.json, start.cursor).take_all([stream.next(), stream.next()])
                expect_equal(
                    (record.resets, record.state), (["cursor-expired"], client.get("/v1/state").json), "resets, state"
                )
                client.commit(add(1))
                record.take_event(stream.next())
        with open_stream(server, f"/v1/changes?since={start.cursor}", record.cursor) as stream:
            client.commit(add(1))
            expect_equal(record.take_event(stream.next()).name, "change", "the first event: Last-Event-ID beats since")
