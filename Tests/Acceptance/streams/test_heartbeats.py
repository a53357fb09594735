"""Streams on which nothing happens."""

import copy
import os
import select
import time

import pytest

from harness.actions import action, add
from harness.expectations import expect, expect_equal
from harness.figures import spread
from harness.records import StreamRecord
from harness.streams import EVENTS, LINES, open_stream


@pytest.mark.prompt
def test_a_silent_stream_has_heartbeats_at_its_own_pace_and_a_filtered_one_has_progress(workspace):
    server = workspace.server(data="none", heartbeat_seconds=1)
    with server.client() as client:
        streams = [open_stream(server, "/v1/changes?since=now") for _ in range(40)]
        retries = [stream.reader.retries[0] for stream in streams]
        expect(all(1000 <= retry <= 3000 for retry in retries), "retry is not always from 1000 to 3000:", retries)
        expect(len(set(retries)) > 20 and spread(retries) > 500, "retry does not vary:", sorted(retries))
        beats = heartbeats(streams, 3.2)
        for times in beats:
            expect(len(times) >= 2, f"{len(times)} heartbeats in 3.2 s")
            gaps = [after - before for before, after in zip(times, times[1:])]
            expect(min(gaps) > 0.7 and max(gaps) < 1.25, f"the gaps between heartbeats: {gaps}")
        firsts = [times[0] for times in beats]
        expect(spread(firsts) > 0.1, f"all heartbeats within {spread(firsts):.3f} s")

        start = client.get("/v1/state")
        filtered = [
            open_stream(server, "/v1/changes?since=now&types=tasks/add&path=/tasks", form=form)
            for form in (EVENTS, LINES)
        ]
        values = open_stream(server, "/v1/state/tasks")
        records = [StreamRecord(start.json, start.cursor, is_filtered=True) for _ in filtered]
        values.next()
        for _ in range(2):
            client.commit(add(1))
            here = client.commit(add(1))["cursor"]
            for stream, record in zip(filtered, records):
                event = record.take_event(stream.next(2))
                expect_equal(
                    (event.name, event.id), ("progress", here), "the event of a commit that the filter leaves out"
                )
        receipt = client.commit(action("tasks/add", {"id": 1, "title": "one"}))
        for stream, record in zip(filtered, records):
            event = record.take_event(stream.next(2))
            expect_equal(
                (event.name, event.id), ("change", receipt["cursor"]), "the event of a commit that the filter takes"
            )
        # A value has progress as well, but nothing that looks like a change.
        events = values.until(lambda event: event.name == "change")
        expect_equal(
            {event.name for event in events[:-1]} - {"progress"}, set(), "other events of a value that did not change"
        )
        for stream in streams:
            events = stream.until(lambda event: event.id == receipt["cursor"])
            StreamRecord(copy.deepcopy(start.json), start.cursor).take_all(events)
        time.sleep(1.3)
        for stream in (*filtered, values):
            expect_equal(stream.watch(0.05), [], "events of a stream where nothing happens")
            expect(stream.reader.comments > 0, "no heartbeat in 1.3 s")


@pytest.mark.parametrize("form", [EVENTS, LINES])
def test_a_filtered_stream_that_resumes_behind_commits_which_do_not_concern_it_has_progress(workspace, form):
    """Nothing is committed afterwards: the stream tells that the server has examined what was there."""
    server = workspace.server(data="none", heartbeat_seconds=1)
    with server.client() as client:
        began = client.commit(action("tasks/add", {"id": 1, "title": "one"}))["cursor"]
        for _ in range(3):
            here = client.commit(add(1))["cursor"]
        with open_stream(server, f"/v1/changes?since={began}&types=tasks/add", form=form) as stream:
            event = stream.next(3)
            expect_equal((event.name, event.id), ("progress", here), "the first event")
            expect_equal(stream.watch(1.5), [], "events after that")


def heartbeats(streams, seconds):
    """When each of the streams had its heartbeats."""
    begun = time.monotonic()
    times = [[] for _ in streams]
    poll = select.poll()
    indices = {stream.socket.fileno(): index for index, stream in enumerate(streams)}
    for number in indices:
        poll.register(number, select.POLLIN)
    while (left := begun + seconds - time.monotonic()) > 0:
        for number, _ in poll.poll(1000 * left):
            data = streams[indices[number]].chunks.take(os.read(number, 1 << 16))
            expect_equal(data, b":\n\n", "what comes on a silent stream")
            times[indices[number]].append(time.monotonic() - begun)
    return times
