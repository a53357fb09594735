"""Streams whose clients do not read or read slowly, and streams that only look slow."""

import copy
import threading
import time

import pytest

from harness.actions import action, add, bulk, commit_large_renames
from harness.crowd import Crowd
from harness.expectations import expect, expect_equal, wait_until
from harness.figures import mebibytes
from harness.messages import version_of
from harness.records import StreamRecord
from harness.streams import EVENTS, LINES, open_stream, read_events


@pytest.mark.prompt
def test_20_stalled_streams_cost_little_memory_delay_no_other_stream_and_begin_again_with_a_snapshot(
    workspace, figures
):
    """The server commits 100 MB while the 20 clients do not read."""
    server = workspace.server(data="none", history_bytes_max=8 << 20)
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "one"}))
        commit_large_renames(client, [100] * 40)  # the history is full, and so is what the allocator keeps
        here = client.get("/v1/state")
        stalled = [
            open_stream(server, "/v1/changes?since=now", receive_bytes=8192, form=(EVENTS, LINES)[number % 2])
            for number in range(18)
        ]
        # Streams of a value, too: they send the newest value when the client reads again.
        watching = [open_stream(server, "/v1/state/tasks/entities/1", receive_bytes=8192) for _ in range(2)]
        live = open_stream(server, "/v1/changes?since=now")
        record = StreamRecord(copy.deepcopy(here.json), here.cursor)
        before, begun = server.memory_bytes(), time.monotonic()
        delays, peak, sent = [], 0, 0
        while sent < 100e6 or time.monotonic() < begun + 6.5:
            sent += commit_large_renames(client, [100] if sent < 100e6 else [1])
            posted = time.monotonic()
            version = client.commit(add(1))["version"]
            record.take_all(live.until(lambda event: event.version == version))
            delays.append(time.monotonic() - posted)
            peak = max(peak, server.memory_bytes())
            time.sleep(0.02)
        # A server that kept the 100 MB once would need 100 MB more, one that kept them for each stream 2 GB. The bound
        # allows a chunk of 256 KiB for each of 20, and as much again that the allocator does not give back.
        growth = peak - before
        expect(growth < 20 << 20, f"memory grew by {mebibytes(growth)} beside 20 stalled streams")
        expect(max(delays) < 0.5, f"another stream had a commit only after {max(delays):.2f} s")
        backlog = 0
        for stream in stalled:
            mine = StreamRecord(copy.deepcopy(here.json), here.cursor)
            latest = version_of(client.get("/v1").json["cursor"])
            mine.take_all(stream.until(lambda event: event.id and event.version >= latest))
            expect_equal(mine.resets, ["slow-reader"], "resets of a stream that stalled")
            backlog = max(backlog, next(index for index, seen in enumerate(mine.seen) if seen[0] == "snapshot"))
            receipt = client.commit(add(1))
            mine.take_all(stream.until(lambda event: event.id == receipt["cursor"]))
            expect_equal(mine.state, client.get("/v1/state").json, "the state of a stream that began again")
            stream.close()
        final = client.get("/v1/state/tasks/entities/1")
        for stream in watching:
            events = stream.until(lambda event: event.data == final.body.decode().rstrip())
            expect_equal(events[0].name, "snapshot", "the first event")
            expect(len(events) < 100, f"{len(events)} values were kept for a stream that stalled")
        live.close()
        wait_until(lambda: server.metric(client, "waiters") == 2, "the streams that were closed to be noticed", 5)
        figures(
            f"memory grew by {mebibytes(growth)} from {mebibytes(before)} while {mebibytes(sent)} came;"
            f" another stream had each commit within"
            f" {1000 * max(delays):.0f} ms; {backlog} commits were on their way to a stalled one"
        )


def test_a_stream_that_catches_up_slowly_has_everything_and_no_reset(workspace, figures):
    """Most of what the stream catches up with is in the journal only."""
    server = workspace.server(history_commits_max=300)
    with server.client() as client:
        start = client.get("/v1/state")
        client.commit(action("tasks/add", {"id": 1, "title": "one"}))
        commit_large_renames(client, [200] * 5)
        slow = [
            open_stream(server, "/v1/changes?since=oldest", receive_bytes=8192, form=form) for form in (EVENTS, LINES)
        ]
        # This stream is up to date and stalls behind a few commits: that is no reason for a reset either.
        brief = open_stream(server, "/v1/changes?since=now", receive_bytes=8192)
        here = client.get("/v1/state")
        for pause in (0.1, 5.5):
            time.sleep(pause)
            client.commit(add(1))
        commit_large_renames(client, [20])
        final = client.get("/v1/state")
        for stream, begin in [*((stream, start) for stream in slow), (brief, here)]:
            record = StreamRecord(copy.deepcopy(begin.json), begin.cursor)
            # Now and then it takes a break.
            while record.version < final.version:
                record.take_event(stream.next())
                if record.version % 100 == 0:
                    time.sleep(0.05)
            expect_equal((record.resets, record.state), ([], final.json), "resets, and the state that was reached")
    figures(f"{final.version} commits, {mebibytes(8 * final.version << 10)}")


def test_a_stream_whose_client_reads_all_the_time_is_never_reset_when_a_burst_meets_a_heartbeat(workspace):
    server = workspace.server(data="none", heartbeat_seconds=1)
    count, rounds, size = 300, 2, 1200
    crowd = Crowd(server, "/v1/changes?since=now")
    try:
        with server.client() as client:
            start = client.get("/v1/state")
            crowd.join(count - 40)
            # These streams debounce for a while after each heartbeat.
            debounced = crowd.join(40, "/v1/changes?since=now&debounce=900")
            epoch = start.cursor.rpartition(".")[0]
            last = 1 + rounds * size
            # A stream that begins behind the first commit would not have it.
            crowd.read_until(b"retry: ", 20)
            client.commit(add(1))
            crowd.read_until(f"id: {epoch}.1\n".encode(), 5)
            patient = debounce_for_long(workspace)
            time.sleep(5.5)
            # Each burst is more than one piece. Of 300 streams one has its heartbeat every 3 ms.
            poster = threading.Thread(
                target=lambda: [bulk(client, [add(1)] * size) for _ in range(rounds)], daemon=True
            )
            poster.start()
            seconds = crowd.read_until(f"id: {epoch}.{last}\n".encode(), 20)
            poster.join(10)
            # A client that reads everything in less than this has not stalled for the 5 s that make a reader slow.
            expect(seconds < 4.5, f"NOT CHECKED, this machine takes {seconds:.1f} s to read")
            counts = {number: buffer.count(b"event: reset") for number, buffer in crowd.received.items()}
            resets = {
                "260 that read all the time": sum(counts.values()) - sum(counts[number] for number in debounced),
                "40 that do, and debounce for 0.9 s": sum(counts[number] for number in debounced),
                "3 that do, and debounce for 5.5 s": resets_of_patient(*patient),
            }
            expect(not any(resets.values()), "streams were reset as slow readers:", resets)
            for _, text in crowd.stories():
                record = StreamRecord(copy.deepcopy(start.json), start.cursor).take_all(read_events(text))
                expect_equal(record.version, last, "where a stream ends")
    finally:
        crowd.close()


def debounce_for_long(workspace):
    """Streams that debounce a burst for 5.5 s, each read by a thread of its own all the time."""
    server = workspace.server(data="none")
    with server.client() as client:
        start = client.get("/v1/state")
        streams = [open_stream(server, "/v1/changes?since=now&debounce=5500") for _ in range(3)]
        resets = []
        readers = [
            threading.Thread(target=lambda stream=stream: resets.append(resets_until(stream, start, 2000)), daemon=True)
            for stream in streams
        ]
        for reader in readers:
            reader.start()
        client.commit(add(1))
        bulk(client, [add(1)] * 1999)
    return readers, resets


def resets_until(stream, start, version):
    """How often a stream is reset on its way to a version."""
    events = stream.until(lambda event: event.id is not None and event.version == version, 20)
    return len(StreamRecord(copy.deepcopy(start.json), start.cursor).take_all(events).resets)


def resets_of_patient(readers, resets):
    """How often these streams were reset: the time of its own debounce does not make a reader slow."""
    for reader in readers:
        reader.join(20)
    expect_equal(len(resets), len(readers), "streams that debounce and have sent everything")
    return sum(resets)
